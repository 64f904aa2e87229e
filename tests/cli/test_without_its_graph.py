"""A thread whose graph file has gone: its log is the truth, and all that looks at it still works."""

from __future__ import annotations

import io
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui import END, START, Channel, StateGraph
from hitl_tui.stores import open_store
from tests.support.commands import App
from tests.support.spec import spec

pytestmark = spec("10")

GRAPH = """
from hitl_tui import END, START, Channel, StateGraph, append
def write(state):
    return {"lines": f"line {state['n'] + 1}", "n": state["n"] + 1, "key": "SECRET"}
graph = StateGraph({
    "lines": Channel([], reducer=append()), "n": Channel(0), "key": Channel("", visibility="private"),
}, name="lost")
graph.add_node("write", write).add_edge(START, "write")
graph.add_conditional_edge("write", lambda s: s["n"] < 2, {"true": "write", "false": END})
"""


@pytest.fixture
def lost(app: App, tmp_path: Path) -> App:
    """The command line with a thread `t` of three steps whose graph has gone."""
    path = tmp_path / "lost.py"
    path.write_text(GRAPH)
    app.expect(0, "run", str(path), "--headless", "--thread", "t")
    path.unlink()
    return app


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "t"), "line 2"),
        (("show", "t@1"), "line 1"),
        (("log", "t"), "Step 2 by write"),
        (("diff", "t@1", "t"), "n: changed"),
        (("blame", "t", "lines"), "line 2"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_thread_without_its_graph_can_be_viewed(lost: App, arguments: tuple[str, ...], said: str) -> None:
    done = lost.expect(0, *arguments)
    assert said in done.out
    assert done.err == ""
    found = lost.expect(0, *arguments, "--json").document
    assert "SECRET" not in done.out + str(found)


def test_a_thread_without_its_graph_can_be_verified_and_exported(lost: App, tmp_path: Path) -> None:
    assert lost.expect(0, "verify", "t", "--json").document["ok"] is True
    file = tmp_path / "t.jsonl"
    lost.expect(0, "export", "t", str(file), "--private")
    elsewhere = f"files:{tmp_path / 'elsewhere'}"
    lost.expect(0, "import", str(file), "--store", elsewhere)
    assert "line 2" in lost.expect(0, "show", "t", "--store", elsewhere).out
    assert open_store(elsewhere).load_latest("t")[1]["n"] == 2  # type: ignore[index]


@pytest.mark.parametrize(
    "arguments",
    [("resume", "t", "--headless"), ("step", "t"), ("update-state", "t", "n=9"), ("fork", "t", "u"),
     ("verify", "t", "--strict")],
    ids=" ".join,
)  # fmt: skip
def test_what_needs_the_graph_says_so_and_changes_nothing(lost: App, arguments: tuple[str, ...]) -> None:
    assert "lost.py" in lost.expect(2, *arguments).err
    assert lost.expect(0, "show", "t", "--json").document["step"] == 2


@pytest.mark.parametrize(
    "lines",
    [["s", "s"], ["c", "c"], ["e n", "e n"], ["f", "f"]],
    ids=["step", "continue", "edit", "fork"],
)
def test_a_thread_without_its_graph_is_read_only_in_plain_text_mode(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str]
) -> None:
    path = tmp_path / "lost.py"
    path.write_text(GRAPH)
    app.expect(3, "run", str(path), "--headless", "--thread", "w", "--break", "write:n == 1")
    path.unlink()
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(["v lines", *lines, "q", ""])))
    said = " ".join(app.expect(3, "resume", "w", "--plain").out.replace("\n  | ", " ").split())
    assert "its graph can't be built: " in said
    assert "lost.py was moved or deleted" in said
    assert "hitl-tui run GRAPH --thread w" in said
    assert "line 1" in said
    assert "thread 'w' is read-only" in said
    assert app.expect(0, "show", "w", "--json").document["step"] == 1
    assert len(app.expect(0, "threads", "--json").document["threads"]) == 1


def test_the_graph_is_drawn_from_the_log(lost: App) -> None:
    output = lost.expect(0, "graph", "--thread", "t").out
    assert "write -> write  when true" in output
    assert "key (text, overwrite, private)" in output
    assert "ran 2 times" in output


def test_a_thread_started_in_python_says_which_command_opens_it(app: App, tmp_path: Path) -> None:
    file = tmp_path / "own.db"
    with closing(open_store(str(file))) as store:
        graph = StateGraph({"n": Channel(0)}).add_node("one", lambda state: {"n": 1})
        graph.add_edge(START, "one").add_edge("one", END).compile(checkpointer=store).invoke(thread_id="p")
    for command in ("replay", "resume --headless"):
        stderr = app.expect(2, *command.split(), "p", "--store", str(file)).err
        assert "was started from Python or imported" in stderr
        assert f"hitl-tui run GRAPH --thread p --store {file}" in stderr
