"""The family of a thread on screen: the page of the tree, and what a fork is compared with."""

from __future__ import annotations

import pytest

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph
from tests.ui.harness import live


@pytest.fixture
def family() -> GraphRunner:
    """The thread t of six steps, a fork of it, a fork of that, and a thread that is none of the family."""
    graph = StateGraph({"n": Channel(0)}).add_node("count", lambda state: {"n": state["n"] + 1})
    graph.add_edge(START, "count").add_conditional_edge(
        "count", lambda state: "on" if state["n"] % 100 < 5 else "end", {"on": "count", "end": END}
    )
    runner = graph.compile(checkpointer=MemoryCheckpointer())

    def fork(parent: str, step: int, name: str, n: int) -> None:
        runner.fork(parent, step, name, changes={"n": n}, actor="ada")
        runner.invoke(thread_id=name)

    runner.invoke({}, thread_id="t")
    fork("t", 2, "t-b", 102)
    fork("t-b", 4, "t-b-b", 203)
    runner.invoke({"n": 3}, thread_id="stranger")
    return runner


@pytest.mark.slow
async def test_the_page_of_the_family_is_a_tree_and_goes_to_the_thread_that_is_chosen(
    family: GraphRunner,
) -> None:
    async with live(family, ready="reached the end") as it:
        await it.press("H")
        await it.shows("3 threads of the family", "differs after step 2: edited by ada")
        tree = it.text()
        assert tree.index("│ t ") < tree.index("│ ╰─ t-b ") < tree.index("│    ╰─ t-b-b ")
        assert "stranger" not in tree
        await it.press("escape")
        await it.gone("of the family")
        assert it.session.thread_id == "t"
        await it.press("H")
        await it.shows("3 threads of the family")
        await it.press("end", "enter")
        await it.until(lambda: it.session.thread_id == "t-b-b", "the fork of the fork")
        await it.press("H")
        await it.shows("3 threads of the family")
        await it.press("up", "enter")
        await it.until(lambda: it.session.thread_id == "t-b", "its parent")


@pytest.mark.slow
async def test_a_fork_is_compared_with_its_parents_end_and_any_other_thread_is_chosen_from_a_list(
    family: GraphRunner,
) -> None:
    async with live(family, ready="reached the end") as it:
        await it.press("H")
        await it.shows("3 threads of the family")
        await it.press("end", "enter")
        await it.until(lambda: it.session.thread_id == "t-b-b", "the fork of the fork")
        await it.press("=")
        await it.shows("◂ t-b @ 6 ▸", "t-b-b @ 7")
        await it.press("slash")
        await it.shows("of the family", "stranger")
        await it.press("home", "enter")
        await it.shows("◂ t @ 5 ▸", "t-b-b @ 7")
        await it.press("slash", "end")
        await it.shows("stranger")
        await it.press("enter")
        await it.shows("◂ stranger @ 2 ▸", "t-b-b @ 7", "5 → 205")


@pytest.mark.slow
async def test_from_40_rows_on_the_timeline_has_a_row_for_each_of_the_family() -> None:
    graph = StateGraph({"n": Channel(0)}).add_node("count", lambda state: {"n": state["n"] + 1})
    graph.add_edge(START, "count").add_conditional_edge(
        "count", lambda state: "on" if state["n"] < 20 else "end", {"on": "count", "end": END}
    )
    runner = graph.compile(checkpointer=MemoryCheckpointer())
    runner.invoke({}, thread_id="t")
    runner.fork("t", 2, "t-b", changes={"n": 18})
    runner.invoke(thread_id="t-b")
    async with live(runner, ready="reached the end", size=(80, 40)) as it:
        await it.shows("‹ differs after 2, ends at 5")
        assert "more line" not in it.text()
        await it.pilot.resize_terminal(80, 39)
        await it.shows("1 more line: J K, H all")
        assert "differs after 2" not in it.text()
