"""Where a node failed, on screen: lines and locals in the place of the value, and the way to the editor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hitl_tui import END, START, Channel, StateGraph
from hitl_tui.stores import MemoryCheckpointer
from hitl_tui.ui.editor import EditorFailed, command_at, open_at
from hitl_tui.ui.widgets.value import ValuePane
from tests.engine.building import chain
from tests.ui.harness import live


def halves(state: Any, config: Any) -> Any:
    counts = [state["n"], 0]
    return {"n": counts[0] / counts[1]}


def flow() -> Any:
    channels = {"n": Channel(1), "words": Channel("as they were")}
    return chain(channels, halves).compile(checkpointer=MemoryCheckpointer())


@pytest.mark.slow
@pytest.mark.parametrize(
    "size", [(80, 24), (120, 40), pytest.param((200, 60), marks=pytest.mark.slow)], ids=str
)
async def test_a_failure_is_shown_until_a_value_is_asked_for(size: tuple[int, int]) -> None:
    async with live(flow(), inputs={}, ready="n1 is next", size=size) as it:
        await it.press("c")
        await it.shows(
            "Where n1 failed", "in halves(state, config)", '│     return {"n": counts[0] / counts[1]}'
        )
        await it.shows("E opens it in your editor")
        await it.press("3")
        await it.until(lambda: it.run.query_one(ValuePane).border_title != "Where n1 failed")
        await it.press("5")
        await it.shows("Where n1 failed")


@pytest.mark.slow
async def test_the_line_that_failed_stays_in_its_pane_whatever_rows_that_has() -> None:
    async with live(flow(), inputs={}, ready="n1 is next", size=(120, 40)) as it:
        await it.press("c")
        pane = it.run.query_one(ValuePane)
        for size in ((80, 20), (120, 40), (80, 24), (80, 19)):
            await it.pilot.resize_terminal(*size)

            def seen() -> bool:
                region = pane.content_region
                rows = it.text().split("\n")[region.y : region.bottom]
                return any('→ 20 │     return {"n": counts[0] / counts[1]}' in row for row in rows)

            await it.until(seen, f"the line at {size}")


@pytest.mark.slow
async def test_moving_to_a_channel_shows_its_value_and_the_locals_are_there_again_at_the_next_failure() -> (
    None
):
    async with live(flow(), inputs={}, ready="n1 is next") as it:
        await it.press("c")
        await it.shows("counts = [1, 0]")
        await it.press("up")
        await it.gone("counts = [1, 0]")
        await it.press("s")
        await it.shows("counts = [1, 0]")


def calls_outside() -> Any:
    graph = StateGraph({"n": Channel(1)}).add_node("pay", halves, external="the bank")
    return graph.add_edge(START, "pay").add_edge("pay", END).compile(checkpointer=MemoryCheckpointer())


@pytest.mark.parametrize("key", ["s", "c"])
@pytest.mark.slow
async def test_a_node_with_side_effects_is_retried_only_after_a_warning(key: str) -> None:
    async with live(calls_outside(), inputs={}, ready="pay is next") as it:
        await it.press("c")
        await it.shows("pay failed", "runs pay · side effects: pay brings in the bank")
        failures = it.session.view.last_event
        await it.press(key)
        await it.shows("Try again", "pay has side effects: brings in the bank.")
        await it.press("escape")
        await it.until(lambda: it.app.screen is it.run)
        assert it.session.view.last_event == failures
        await it.press(key, key)
        await it.until(lambda: it.session.view.last_event > failures and not it.session.running)


@pytest.mark.slow
async def test_a_node_without_side_effects_is_retried_at_once() -> None:
    async with live(flow(), inputs={}, ready="n1 is next") as it:
        await it.press("c")
        await it.shows("n1 failed", "runs n1 · no side effects known")
        failures = it.session.view.last_event
        await it.press("s")
        await it.until(lambda: it.session.view.last_event > failures and not it.session.running)


@pytest.mark.slow
async def test_a_fork_says_beforehand_which_nodes_run_and_have_side_effects() -> None:
    graph = StateGraph({"n": Channel(1)}).add_node("count", lambda state: {"n": state["n"] + 1})
    graph.add_node("pay", lambda state: {}, external="the bank")
    graph.add_edge(START, "count").add_edge("count", "pay").add_edge("pay", END)
    async with live(graph.compile(checkpointer=MemoryCheckpointer()), inputs={}, ready="count is next") as it:
        await it.press("c")
        await it.shows("reached the end")
        await it.press("[")
        await it.shows("not the newest")
        for key, dialog in (("f", "A new thread begins at step 1"), ("e", "Makes a new thread from step 1")):
            await it.press(key)
            await it.shows(dialog, "The fork will run: pay.", "pay has side effects: brings in the bank.")
            await it.press("escape")
            await it.until(lambda: it.app.screen is it.run, "the run")


FORMS = {
    "vim": ["+7", "/a/f.py"],
    "/usr/bin/nano": ["+7", "/a/f.py"],
    "emacs": ["+7", "/a/f.py"],
    "code": ["-g", "/a/f.py:7"],
    "hx": ["/a/f.py:7"],
    "zed": ["/a/f.py:7"],
    "subl": ["/a/f.py:7"],
    "somebody-elses": ["/a/f.py"],
}


@pytest.mark.parametrize("editor", FORMS)
def test_each_editor_is_given_the_line_in_its_own_way(editor: str) -> None:
    assert command_at([editor, "-x"], "/a/f.py", 7) == [editor, "-x", *FORMS[editor]]


@pytest.mark.parametrize(
    "file", ["missing.py", "/nowhere/at/all.py", "-c quit", "<string>", "/dev/null", "/"]
)
def test_a_missing_file_is_never_given_to_an_editor(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "false")
    app: Any = None  # not asked for anything
    with pytest.raises(EditorFailed, match="there is no file"):
        open_at(app, file, 1)


def test_the_command_of_an_editor_keeps_its_own_options(tmp_path: Path) -> None:
    assert command_at(["code", "--wait"], str(tmp_path), 3) == ["code", "--wait", "-g", f"{tmp_path}:3"]
