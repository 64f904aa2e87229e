"""A thread is deleted from the list, after a question that names what goes."""

from __future__ import annotations

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph
from tests.ui.harness import live


def counter(store: MemoryCheckpointer) -> GraphRunner:
    graph = StateGraph({"n": Channel(0, reducer="sum")}, name="counter")
    graph.add_node("count", lambda _state: {"n": 1}).add_edge(START, "count").add_edge("count", END)
    return graph.compile(checkpointer=store)


def names(store: MemoryCheckpointer) -> set[str]:
    return {row.info.thread_id for row in store.threads()}


async def test_what_goes_is_named_first_and_enter_keeps_it() -> None:
    store = MemoryCheckpointer()
    runner = counter(store)
    for name in ("t", "old"):
        runner.invoke({}, thread_id=name)
    runner.fork("old", 0, "old-b", changes={"n": 5})
    runner.invoke(thread_id="old-b")
    async with live(runner, ready=" t ") as it:
        await it.press("t")
        await it.shows("old-b", "Delete")
        await it.press("down")
        await it.press("delete")
        await it.shows("Delete?", "old: 2 steps", "old-b: ", "a fork of old", "2 threads for good")
        await it.press("enter", "enter")
        await it.gone("Delete?")
        assert names(store) == {"t", "old", "old-b"}
        await it.press("X")
        await it.shows("why (optional), then enter")
        await it.press(*"done with", "enter", "d")
        await it.until(lambda: names(store) == {"t"}, "deleted")
        await it.gone("old-b")
    assert {entry.thread_id for entry in store.store_ledger()} == {"old", "old-b"}
    assert {entry.note for entry in store.store_ledger()} == {"done with"}
    assert {entry.actor for entry in store.store_ledger()} == {it.run.actor}


async def test_what_is_open_and_what_waits_stay() -> None:
    store = MemoryCheckpointer()
    runner = counter(store)
    runner.invoke({}, thread_id="t")
    runner.fork("t", 0, "waits")
    async with live(runner, ready=" t ") as it:
        await it.press("t")
        await it.shows("waits")
        await it.press("X")
        await it.shows("'waits' waits: nothing is deleted")
    assert names(store) == {"t", "waits"}
