"""Subgraph: a child that somebody else runs or writes to when its parent wants to run it."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

from hitl_tui.engine.log.events import AttemptDropped, Event, NodeStarted
from hitl_tui.engine.nodes.children import outdated, refresh
from hitl_tui.stores import Checkpointer
from tests.engine.nodes.graphs import Events
from tests.engine.nodes.subgraphs import gated, inner, outer
from tests.support.spec import spec

pytestmark = spec("7")


def test_a_child_that_runs_elsewhere_lets_its_parent_wait_and_nothing_is_lost(store: Checkpointer) -> None:
    runner, events = gated(store), Events()
    (request,) = runner.invoke({"task": "why?"}, thread_id="t").pending
    runner.answer("t", request.id, "ok", step=request.step)
    child = runner.open("t/team#1")
    with child.writing():
        result = runner.invoke(thread_id="t", on_event=events)
    assert (result.status, result.reason) == ("waiting", "paused")
    (dropped,) = events.of(AttemptDropped)
    assert dropped.why == (
        "thread 't/team#1' is already running in this process; continue once that has ended"
    )
    assert store.ledger("t")[-1].note == "t/team#1 was busy"
    assert runner.invoke(thread_id="t")["results"] == ["re: why?"]
    assert store.info("t/team#2") is None
    assert runner.verify("t", strict=True).ok


async def test_who_writes_to_the_child_for_a_moment_stops_nobody(store: Checkpointer) -> None:
    def node(_state: Any, config: Any) -> dict[str, Any]:
        return {"draft": config.interrupt("sure?")}

    runner = outer(inner(node), store)
    (request,) = (await runner.ainvoke(thread_id="t")).pending
    runner.answer("t", request.id, "yes", step=request.step)
    with ExitStack() as holding:

        def let_go(event: Event) -> None:
            # It is heard once the run waits for the first time, which is for the child's thread.
            if isinstance(event, NodeStarted):
                asyncio.get_running_loop().call_soon(holding.close)

        child = runner.open("t/team#1")
        holding.enter_context(child.writing())
        result = await runner.ainvoke(thread_id="t", on_event=let_go)
    assert (result.status, result["results"]) == ("completed", ["yes"])


def test_a_parent_that_is_paused_asks_what_its_child_has_come_to_ask_on_its_own(store: Checkpointer) -> None:
    runner = outer(
        inner(lambda _s, c: {"seen": c.interrupt("one?")}, lambda _s, c: {"draft": c.interrupt("two?")}),
        store,
    )
    (request,) = runner.invoke(thread_id="t").pending
    runner.answer("t", request.id, "yes", step=request.step)
    session = runner.open("t")
    assert (session.cursor.reason, session.cursor.pending, outdated(session)) == ("paused", (), False)
    runner.invoke(thread_id="t/team#1")
    assert outdated(session)
    with session.writing():
        refresh(session)
    (request,) = session.cursor.pending
    assert (request.title, request.thread) == ("two?", "t/team#1")
    assert not outdated(session)
    runner.answer("t", request.id, "fine", step=request.step)
    assert runner.invoke(thread_id="t")["results"] == ["fine"]
