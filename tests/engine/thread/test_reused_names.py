"""A thread's name used again after its deletion: nothing of the old thread is in the new one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    Agent,
    Channel,
    Gate,
    GateChoice,
    GraphRunner,
    MemoryCheckpointer,
    ScriptedModel,
    SQLiteCheckpointer,
    StateGraph,
    UnknownThread,
    UsageError,
)
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.thread.session import Session
from hitl_tui.stores import Checkpointer, FileCheckpointer
from hitl_tui.stores.deletion import delete_in_batches, plan_deletion

GONE = r"was deleted|there is no thread"


@pytest.fixture(params=["memory", "sqlite", "files"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Checkpointer, Checkpointer]]:
    """One store as two processes have it open."""
    if request.param == "memory":
        one: Checkpointer = MemoryCheckpointer()
        yield one, one
        return
    kind = SQLiteCheckpointer if request.param == "sqlite" else FileCheckpointer
    one, other = kind(tmp_path / "runs"), kind(tmp_path / "runs")
    yield one, other
    one.close()
    other.close()


def chat_graph(store: Checkpointer | None = None) -> GraphRunner:
    """A graph whose node chats once and keeps how many turns its agent had before."""
    graph = StateGraph({"seen": Channel(default=0), "said": Channel(default="")})

    def talk(state: Any, config: Any) -> dict[str, Any]:
        agent = config.agents["clerk"]
        turns = len(agent.turns)
        return {"said": agent.chat("hello"), "seen": turns}

    graph.add_node("talk", talk).add_edge(START, "talk").add_edge("talk", END)
    clerk = Agent("clerk", ScriptedModel(["hi"] * 20))
    gate = Gate("talk", "Right?", [GateChoice("yes", "Yes")])
    if store is None:
        return graph.compile(agents={"clerk": clerk})
    return graph.compile(checkpointer=store, agents={"clerk": clerk}, interrupt_after=gate)


def delete(store: Checkpointer, thread_id: str) -> None:
    plan = plan_deletion(store, [thread_id], force=True)
    assert [
        len(batch) for batch in delete_in_batches(store, plan.going, actor="ann", note=None, at=1, force=True)
    ]
    assert store.info(thread_id) is None


def test_the_next_thread_of_a_name_begins_with_empty_memories(
    stores: tuple[Checkpointer, Checkpointer],
) -> None:
    ours, theirs = stores
    runner = chat_graph(ours)
    assert runner.invoke({}, thread_id="t").state["seen"] == 0
    request = runner.invoke(thread_id="t").pending[0]
    runner.answer("t", request.id, "yes", step=request.step)
    assert runner.invoke({"said": "again"}, thread_id="t").state["seen"] == 2  # the same thread remembers
    delete(theirs, "t")
    assert runner.invoke({}, thread_id="t").state["seen"] == 0
    delete(ours, "t")
    assert runner.invoke({}, thread_id="t").state["seen"] == 0
    assert runner.verify("t").ok


def test_threads_of_a_runner_without_a_store_begin_with_empty_memories() -> None:
    runner = chat_graph()
    assert [runner.invoke({}, thread_id="t").state["seen"] for _ in range(2)] == [0, 0]


def test_the_next_thread_of_a_name_has_other_idempotency_keys(
    stores: tuple[Checkpointer, Checkpointer],
) -> None:
    keys: list[str] = []
    graph = StateGraph({"n": Channel(0)})
    graph.add_node("work", lambda _state, config: keys.append(config.idempotency_key))
    runner = graph.add_edge(START, "work").add_edge("work", END).compile(checkpointer=stores[0])
    runner.invoke(thread_id="t")
    delete(stores[1], "t")
    runner.invoke(thread_id="t")
    assert len(set(keys)) == len(keys) == 2


def test_what_was_open_of_a_deleted_thread_writes_nothing_into_the_next_of_its_name(
    stores: tuple[Checkpointer, Checkpointer],
) -> None:
    ours, theirs = stores
    runner = chat_graph(ours)
    runner.invoke({}, thread_id="t")
    old: Session = runner.open("t")
    delete(theirs, "t")
    other = chat_graph(theirs)
    other.invoke({}, thread_id="t")
    assert theirs.cursor("t").version == old.cursor.version  # type: ignore[union-attr]
    for _ in range(2):
        with pytest.raises(UnknownThread, match=GONE), old.writing(old.cursor):
            pass
        with pytest.raises(UnknownThread, match=GONE), old.writing():
            pass
    assert theirs.cursor("t").version == old.cursor.version  # type: ignore[union-attr]
    assert theirs.lease("t") is None
    assert other.verify("t").ok
    request = runner.invoke(thread_id="t").pending[0]
    assert runner.answer("t", request.id, "yes", step=request.step)


def test_a_driver_that_is_open_is_of_the_thread_and_not_of_its_name(
    stores: tuple[Checkpointer, Checkpointer],
) -> None:
    ours, theirs = stores

    async def look() -> None:
        runner = chat_graph(ours)
        hub = LocalHub(ours, lambda info: runner)
        try:
            runner.invoke({}, thread_id="t")
            assert (await (await hub.open("t")).snapshot()).progress.head == 1
            delete(theirs, "t")
            other = chat_graph(theirs)
            other.invoke({}, thread_id="t")
            request = other.invoke(thread_id="t").pending[0]
            other.answer("t", request.id, "yes", step=request.step)
            async with hub.borrow("t") as driver:
                assert (await driver.snapshot()).progress.status == "completed"
            assert (await (await hub.open("t")).snapshot()).progress.status == "completed"
        finally:
            await hub.close()

    asyncio.run(look())


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201, 5, b"t"])
def test_a_name_that_no_thread_can_have_is_refused(name: Any) -> None:
    for runner in (chat_graph(), chat_graph(MemoryCheckpointer())):
        for run in (runner.invoke, runner.step, runner.stream):
            with pytest.raises(UsageError, match="thread id"):
                list(run(thread_id=name))  # type: ignore[call-overload]
    runner.invoke({}, thread_id="t")
    with pytest.raises(UsageError, match="thread id"):
        runner.fork("t", 0, name)
    with pytest.raises((UsageError, UnknownThread)):
        runner.get_state(name)
    assert runner.store is not None
    assert [row.info.thread_id for row in runner.store.threads()] == ["t"]
