"""Inside a node on screen: branches as a list, the thread of a subgraph as a run of its own."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from hitl_tui.engine.commands import Answer
from tests.support import nested
from tests.support.spec import spec
from tests.support.watching import PATIENCE
from tests.ui.real import answer, asked, real

pytestmark = spec("7")


@pytest.mark.slow
async def test_the_branches_of_a_step_open_as_a_list_and_esc_closes_it():
    async with real(nested.settled) as it:
        await it.press("c")
        await it.shows("DONE", "✔ scan[0]", "✗ scan[1]", "overwritten by scan[2]")
        await it.shows("but 1 branch of scan failed", "◉ scan ✗1", "│ scan ✗1")
        await it.press("I")
        await it.shows("scan, step 1: 2 of 3 done, 1 failed", "“ants”", "they sting", "looking at ants")
        await it.press("f")
        await it.shows("looking at bees", "ValueError: they sting")
        await it.press("o")
        await it.shows("slowest first")
        await it.press("o")
        await it.gone("slowest first")
        await it.press("escape")
        await it.shows("Timeline")


@pytest.mark.slow
async def test_enter_at_the_shown_step_opens_it_too():
    async with real(nested.settled, size=(80, 24)) as it:
        await it.press("c")
        await it.shows("DONE")
        await it.press("enter")
        await it.shows("scan, step 1: 2 of 3 done, 1 failed")


@pytest.mark.slow
async def test_a_branch_that_asks_is_decided_from_the_list():
    def node(_state: Any, config: Any) -> dict[str, Any]:
        return {"found": config.interrupt("May I?")} if config.item != "bees" else {"found": "bees"}

    async with real(lambda store: nested.mapped(store, node)) as it:
        await it.press("s")
        await it.shows("WAITING", "1/3 ‖2", "1 more after it")
        await it.press("I", "down", "down")
        await it.shows("May I?")
        await it.press("enter")
        await it.shows("Your answer", "2 of 2")


async def test_the_graph_pane_shows_the_parts_of_the_selected_node():
    async with real(nested.team) as it:
        it.run.query_one("#graph").focus()
        await it.shows("graph inner", "task → question", "draft → results")


@pytest.mark.slow
async def test_the_card_of_a_parent_names_the_thread_and_the_node_that_ask():
    async with real(nested.team) as it:
        await it.press("c")
        await it.shows("Your answer", "is it good?", "node write of thread t/team#1", "all about moss")


@pytest.mark.slow
async def test_a_subgraph_thread_opens_with_a_way_back_to_its_parent():
    async with real(lambda store: nested.team(store, deeper=True)) as it:
        await it.press("s")
        await it.shows("WAITING")
        await it.press("I")
        await it.shows("t › team#1", "inside team of t")
        await it.press("I")
        await it.shows("t › team#1 › desk#1", "all about moss")
        await it.press("backspace")
        await it.shows("inside team of t")
        await it.press("escape")
        await it.gone("inside team of t")
        await it.shows("outer")


@pytest.mark.slow
async def test_a_child_that_ends_on_its_own_lets_its_parent_continue():
    async with real(nested.team) as it:
        await it.press("s")
        await it.shows("WAITING")
        await it.press("I")
        await it.shows("t › team#1")
        session = it.session
        request = session.requests[0]
        await session.driver.execute(Answer(request.id, "ok", step=request.step, actor="anna"))
        await it.shows("DONE")
        await it.press("escape")
        await it.shows("PAUSED", "outer")
        await it.press("c")
        await it.shows("DONE", "reached the end")


@pytest.mark.slow
async def test_a_child_opened_while_its_parent_runs_shows_what_is_written_there_and_pauses_both():
    may_continue = threading.Event()

    def write(state: Any, config: Any) -> dict[str, Any]:
        config.emit(f"thinking about {state['question']}")
        may_continue.wait(PATIENCE)
        return {"draft": "done"}

    def build(store: Any) -> Any:
        return nested.around(nested.chain(write, lambda _s: {}), store)

    async with real(build) as it:
        await it.press("c")
        await it.shows("thinking about moss")
        await it.press("5")
        await it.shows("Where team is now", "may_continue.wait(PATIENCE)")
        await it.press("5")
        await it.press("I")
        await it.shows("inside team of t", "RUNNING", "thinking about moss")
        assert "runs this thread" not in it.text()
        await it.press("p")
        await it.shows("pausing after n1")
        may_continue.set()
        await it.shows("PAUSED", "n2 is next")
        await it.press("escape")
        await it.shows("outer", "PAUSED", "in t/team#1")
        await it.press("c")
        await it.shows("DONE", "“done”")


@pytest.mark.slow
async def test_a_parent_says_that_its_child_runs_on_its_own_and_what_to_do():
    may_continue = threading.Event()

    def build(store: Any) -> Any:
        return nested.around(
            nested.chain(
                lambda _s, c: {"draft": c.interrupt({"kind": "approve", "title": "Begin?"})},
                lambda _s: {"draft": str(may_continue.wait(PATIENCE))},
            ),
            store,
        )

    async with real(build) as it:
        await it.press("s")
        await it.shows("WAITING")
        await it.press("I")
        await it.shows("inside team of t")
        await it.press("d")
        await asked(it, "Begin?")
        await answer(it, "a")
        await it.press("c")
        await it.shows("RUNNING", "n2")
        await it.press("escape")
        await it.gone("inside team of t")
        await it.press("c")
        await it.shows("t/team#1 was busy — press s to step or c to continue", "continue once that has ended")
        may_continue.set()
        await it.press("I")
        await it.shows("inside team of t", "DONE")
        await it.press("escape")
        await it.gone("inside team of t")
        await it.press("c")
        await it.shows("DONE", "“True”")


@pytest.mark.slow
async def test_contracts_are_shown_for_branches_and_subgraph_nodes():
    def build(store: Any) -> Any:
        return nested.around(nested.chain(lambda _s: {"draft": "done"}), store)

    async with real(nested.settled) as it:
        await it.press("c")
        await it.shows("DONE")
        await it.press("I")
        await it.shows("may read", "may write", "what it wrote")
    async with real(build) as it:
        await it.press("c")
        await it.shows("DONE")
        await it.press("I")
        await it.shows("inside team of t", "DONE")
        await it.press("i")
        await it.shows("n1 made step 1", "may read", "step 1: wrote   draft")
