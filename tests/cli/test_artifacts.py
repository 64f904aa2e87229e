"""`artifacts`: listed, read and saved, with nothing run and nothing overwritten unasked."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.support.commands import App

FLOW = """
from hitl_tui import END, START, Artifact, Channel, NodeResult, StateGraph

def node(state):
    page = Artifact("report.md", "text/markdown", f"# Report {state['n']}\\x1b[2J")
    return NodeResult({"n": 1}, artifacts=[page, Artifact("dot.png", "image/png", b"\\x00\\x01")])

graph = StateGraph({"n": Channel(0, reducer="sum")}).add_node("a", node).add_node("b", node)
graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", END)
"""


@pytest.fixture
def ran(app: App, tmp_path: Path) -> App:
    (tmp_path / "flow.py").write_text(FLOW)
    app.expect(0, "run", f"{tmp_path}/flow.py:graph", "--headless", "--thread", "t")
    return app


def test_they_are_listed_and_read(ran: App) -> None:
    lines = ran.expect(0, "artifacts", "t").out.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["@1", "report.md", "text/markdown"], ["@1", "dot.png", "image/png"],
        ["@2", "report.md", "text/markdown"], ["@2", "dot.png", "image/png"],
    ]  # fmt: skip
    assert "# Report 0" in ran.expect(0, "artifacts", "t@1", "report.md").out
    newest = ran.expect(0, "artifacts", "t", "report.md").out
    assert "# Report 1" in newest
    assert "\x1b" not in newest
    document = ran.expect(0, "artifacts", "t", "--json").document
    assert [(row["step"], row["size"]) for row in document["artifacts"]] == [(1, 14), (1, 2), (2, 14), (2, 2)]


def test_an_artifact_is_saved_for_its_owner_only_and_never_overwrites_a_file(
    ran: App, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    ran.expect(0, "artifacts", "t", "dot.png", "--save", str(folder))
    file = folder / "dot.png"
    assert file.read_bytes() == b"\x00\x01"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("mine")
    assert "already exists" in ran.expect(2, "artifacts", "t", "dot.png", "--save", str(file)).err
    assert file.read_text() == "mine"
    ran.expect(0, "artifacts", "t", "dot.png", "--save", str(file), "--force")
    assert file.read_bytes() == b"\x00\x01"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("t", "none.txt"), "has no artifact 'none.txt'"),
        (("t", "dot.png"), "is bytes (image/png)"),
        (("t", "--save", "x"), "--save saves one artifact"),
    ],
)
def test_an_impossible_request_for_an_artifact_is_explained(
    ran: App, given: tuple[str, ...], words: str
) -> None:
    assert words in ran.expect(2, "artifacts", *given).err


def test_a_step_that_is_not_there(ran: App) -> None:
    assert "has no step 9" in ran("artifacts", "t@9").err
