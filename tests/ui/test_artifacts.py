"""Files that the screen writes: artifacts, which it lists and shows, too, and a test of the shown step."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import END, START, Artifact, Channel, MemoryCheckpointer, NodeResult, StateGraph
from tests.ui.harness import desk, live


def node(state: Any) -> Any:
    page = Artifact("report.md", "text/markdown", f"# Report {state['n']}\x1b[2J")
    return NodeResult({"n": 1}, artifacts=[page, Artifact("dot.png", "image/png", b"\x00\x01")])


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=str)
@pytest.mark.slow
async def test_artifacts_are_read_and_saved(
    size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = StateGraph({"n": Channel(0, reducer="sum")}).add_node("a", node).add_node("b", node)
    graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", END)
    runner = graph.compile(checkpointer=MemoryCheckpointer())
    runner.invoke({}, thread_id="t")
    async with live(runner, size=size, ready="step 2") as it:
        await it.press("[")
        await it.shows("not the newest")
        await it.press("L")
        await it.shows("step 2", "step 1", "report.md", "text/markdown", "image/png  2 bytes", "# Report 0")
        await it.press("up", "up")
        await it.shows("# Report 1")
        assert "\x1b" not in it.text()
        await it.press("s", "s", "down")
        await it.shows("bytes: save it", "saved as report-2.md")
        await it.press("enter")
        await it.shows("saved as dot.png")
        await it.press("L")
        await it.until(lambda: it.app.screen is it.run)
    files = {name: tmp_path / name for name in ("report.md", "report-2.md", "dot.png")}
    assert files["report.md"].read_bytes() == files["report-2.md"].read_bytes() == b"# Report 1\x1b[2J"
    assert files["dot.png"].read_bytes() == b"\x00\x01"
    assert {stat.S_IMODE(file.stat().st_mode) for file in files.values()} == {0o600}


@pytest.mark.slow
async def test_a_test_of_the_shown_step_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with desk() as it:
        it.driver.results["write_test"] = "def test_it(): ...\n"
        await it.press("[", "ctrl+t")
        await it.shows("saved as test_closure_explainer_3.py")
        assert [each["step"] for each in it.commands("write_test")] == [3]
        await it.press("g", "ctrl+t")
        await it.shows("saved as test_closure_explainer_4.py")
        assert [each["step"] for each in it.commands("write_test")] == [3, None]
    assert (tmp_path / "test_closure_explainer_4.py").read_text() == "def test_it(): ...\n"
