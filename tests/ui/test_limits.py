"""Limits on screen, in a real terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitl_tui import END, START, Channel, Limits, MemoryCheckpointer, StateGraph
from hitl_tui.ui.widgets.footer import FooterBar
from tests.support.program import APP
from tests.support.spec import spec
from tests.support.terminal import Terminal
from tests.ui.harness import live

pytestmark = spec("5")

GRAPH = """
from hitl_tui import END, START, Channel, Limits, StateGraph

graph = (
    StateGraph({"n": Channel(0, reducer="sum")})
    .add_node("count", lambda state: {"n": 1})
    .add_edge(START, "count")
    .add_conditional_edge("count", lambda state: state["n"] < 99, {"true": "count", "false": END})
    .compile(limits=Limits(max_iterations=4))
)
"""


@pytest.mark.slow
async def test_a_note_of_a_limit_goes_with_the_end_of_the_thread() -> None:
    graph = StateGraph({"n": Channel(0, reducer="sum")})
    graph.add_node("count", lambda state: {"n": 1}).add_edge(START, "count")
    graph.add_conditional_edge("count", lambda state: state["n"] < 3, {"true": "count", "false": END})
    runner = graph.compile(checkpointer=MemoryCheckpointer(), limits=Limits(max_iterations=4))
    async with live(runner, inputs={}, ready="READY") as it:
        await it.press("s")
        await it.until(lambda: it.session.view.progress.head == 1)
        await it.press("s")
        await it.shows("50 % of the iterations are used: 2 of 4")
        await it.press("s")
        await it.shows("DONE")
        await it.pilot.pause()
        assert it.run.query_one(FooterBar).message == ()


@pytest.mark.slow
async def test_an_invalid_limit_is_refused_and_a_large_proposal_is_accepted() -> None:
    graph = StateGraph({"n": Channel(0, reducer="sum")})
    graph.add_node("count", lambda state: {"n": 1}).add_edge(START, "count")
    graph.add_conditional_edge("count", lambda state: state["n"] < 99, {"true": "count", "false": END})
    limits = Limits(max_iterations=1, max_tokens=6_000_000)
    runner = graph.compile(checkpointer=MemoryCheckpointer(), limits=limits)
    async with live(runner, inputs={}, ready="READY") as it:
        await it.press("c")
        await it.shows("limit reached")
        for typed in ("inf", "nan", "0"):
            await it.press("m")
            await it.shows("nodes to run in total")
            await it.press("backspace", *typed, "enter", "enter")
            await it.shows(f"'max_iterations={typed}' is not a limit")
            await it.press("escape")
        assert it.session.view.progress.limits == limits
        await it.press("m")
        await it.shows("nodes to run in total")
        await it.press("enter", "enter")
        await it.until(lambda: it.session.view.progress.limits.max_tokens == 12_000_000)
        assert it.session.view.progress.limits.max_iterations == 2


def test_used_up_limits_are_reported_and_can_be_raised(tmp_path: Path) -> None:
    (tmp_path / "limited.py").write_text(GRAPH)
    with Terminal([*APP, "run", str(tmp_path / "limited.py")]) as terminal:
        terminal.wait_for("READY")
        terminal.press("s")
        terminal.wait_for("step 1")
        terminal.press("s")
        terminal.wait_for("50 % of the iterations are used: 2 of 4")
        terminal.press("s")
        terminal.wait_for("75 % of the iterations are used: 3 of 4")
        terminal.press("c")
        terminal.wait_for("100 % of the iterations are used: 4 of 4")
        terminal.wait_for("limit reached")
        terminal.wait_for("m Raise limit")
        terminal.press("m")
        terminal.wait_for("nodes to run in total")
        terminal.press("enter")
        terminal.wait_for("PAUSED")
        terminal.press("s")
        terminal.wait_for("step 5")
        terminal.press("q")
        assert terminal.wait_exit() == 3
