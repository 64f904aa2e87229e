"""One step at a time; what others wrote in between counts, whoever has the thread open."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import threading
from contextlib import closing
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, LogCorrupt, SQLiteCheckpointer, StateGraph
from hitl_tui.engine.run.loop import RunLoop
from hitl_tui.engine.thread.session import Session, now_us
from hitl_tui.errors import ThreadBusy
from hitl_tui.stores import Checkpointer
from tests.support.spec import spec

pytestmark = [spec("5"), spec("11")]

LAST = 5


def counter(store: Checkpointer | None, node: Any = None) -> GraphRunner:
    """A node that counts up to `LAST`."""
    return (
        StateGraph({"n": Channel(0), "log": Channel([], reducer="append")})
        .add_node("count", node or (lambda state: {"n": state["n"] + 1, "log": state["n"]}))
        .add_edge(START, "count")
        .add_conditional_edge("count", lambda s: s["n"] < LAST, {"true": "count", "false": END})
        .compile(checkpointer=store)
    )


def test_stepping_equals_one_run(store: Checkpointer) -> None:
    runner, whole = counter(store), counter(store)
    stops = []
    for _ in range(LAST):
        result = runner.step(thread_id="t")
        assert runner.get_state("t") == dict(result) == counter(store).get_state("t")
        assert store.lease("t") is None
        stops.append((result.status, result.reason, result.step, result["n"]))
    paused = [("waiting", "paused", step, step) for step in range(1, LAST)]
    assert stops == [*paused, ("completed", "end", LAST, LAST)]
    whole.invoke(thread_id="u")
    assert [(p.step, p.node, p.state_hash) for p in runner.history("t")] == [
        (p.step, p.node, p.state_hash) for p in runner.history("u")
    ]
    assert runner.verify("t", strict=True).ok


def test_a_watched_step_equals_an_unwatched_one(store: Checkpointer) -> None:
    runner = counter(store)
    for thread_id, events in (("t", None), ("u", [])):
        for _ in range(3):
            runner.step(thread_id=thread_id, on_event=None if events is None else events.append)
    unseen, seen = (store.cursor(name) for name in "tu")
    assert unseen is not None
    assert seen is not None
    for name in ("status", "reason", "position", "head", "iteration", "visits", "attempt"):
        assert getattr(unseen, name) == getattr(seen, name)
    for mine, other in zip(runner.history("t"), runner.history("u"), strict=True):
        assert (mine.status, mine.position, mine.state_hash) == (
            other.status,
            other.position,
            other.state_hash,
        )
    assert all(runner.verify(name, strict=True).ok for name in "tu")


@pytest.mark.parametrize("limit", [2, 3])
def test_a_limit_that_a_step_reaches_stops_it_and_not_the_pause(store: Checkpointer, limit: int) -> None:
    runner = counter(store)
    runner.step(thread_id="t")
    runner.extend_limits("t", max_iterations=limit)
    stops = [runner.step(thread_id="t").reason for _ in range(2)]
    assert stops == (["limit", "limit"] if limit == 2 else ["paused", "limit"])


def test_what_another_runner_wrote_in_between_counts(store: Checkpointer) -> None:
    runner, other = counter(store), counter(store)
    runner.step(thread_id="t")
    other.update_state("t", {"n": 3})
    assert runner.get_state("t")["n"] == 3
    assert runner.step(thread_id="t")["n"] == 4
    assert other.step(thread_id="t")["n"] == runner.get_state("t")["n"] == LAST
    assert runner.step(thread_id="t").status == "completed"
    assert runner.verify("t", strict=True).ok


@pytest.mark.parametrize("held", [False, True])
def test_what_was_written_after_a_thread_was_opened_counts_as_it_is_taken(
    store: Checkpointer, held: bool
) -> None:
    runner = counter(store)
    runner.step(thread_id="t")
    session = runner.open("t")
    runner.update_state("t", {"n": 3})
    if held:
        lease = store.new_lease(now_us())
        store.acquire("t", lease, now_us())
        with pytest.raises(ThreadBusy, match="already running in this process"):
            asyncio.run(finished(session))
        store.release("t", lease.token)
    asyncio.run(finished(session))
    assert (session.cursor.status, session.state.values["n"]) == ("waiting", 4)
    assert store.lease("t") is None
    assert runner.verify("t", strict=True).ok


async def finished(session: Session) -> None:
    """One step of an open thread."""
    async for _ in RunLoop(session, once=True).steps():
        pass


def test_what_the_runner_itself_wrote_in_between_counts(store: Checkpointer) -> None:
    runner = counter(store)
    runner.step(thread_id="t")
    runner.update_state("t", {"n": 2})
    runner.step(thread_id="u")
    assert (runner.get_state("t")["n"], runner.get_state("u")["n"]) == (2, 1)
    assert runner.step(thread_id="t")["n"] == 3


def test_another_connection_to_the_same_file_is_seen(tmp_path: Path) -> None:
    with closing(SQLiteCheckpointer(tmp_path / "a.db")) as first:
        runner = counter(first)
        runner.step(thread_id="t")
        with closing(SQLiteCheckpointer(tmp_path / "a.db")) as second:
            counter(second).update_state("t", {"n": 3})
        assert runner.get_state("t")["n"] == 3
        assert runner.step(thread_id="t")["n"] == 4


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE checkpoint SET node = 'other' WHERE id = (SELECT max(id) FROM checkpoint)",
        "UPDATE cursor SET body = replace(CAST(body AS TEXT), '\"head\":2', '\"head\":1')",
        "UPDATE record SET change = '7' WHERE channel = 'n' AND step = 2",
    ],
)
def test_a_store_that_was_changed_from_outside_is_refused_by_the_next_step(
    tmp_path: Path, change: str
) -> None:
    with closing(SQLiteCheckpointer(tmp_path / "a.db")) as store:
        runner = counter(store)
        runner.step(thread_id="t")
        runner.step(thread_id="t")
        with closing(sqlite3.connect(tmp_path / "a.db")) as db, db:
            db.execute(change)
        with pytest.raises(LogCorrupt):
            runner.step(thread_id="t")


def test_each_step_finds_the_context_of_its_caller() -> None:
    who: ContextVar[str] = ContextVar("who", default="nobody")
    seen: list[str] = []
    runner = counter(None, lambda state: seen.append(who.get()) or {"n": state["n"] + 1})
    for name in ("ann", "ben"):
        token = who.set(name)
        runner.step(thread_id="t")
        who.reset(token)
    assert seen == ["ann", "ben"]


@pytest.mark.skipif(os.name != "posix", reason="there is no SIGINT to send to oneself")
def test_ctrl_c_ends_the_node_and_the_next_call_continues_the_thread(store: Checkpointer) -> None:
    hangs = True

    async def wait(state: Any) -> dict[str, Any]:
        if hangs:
            asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGINT)
            await asyncio.sleep(60)
        return {"n": state["n"] + 1}

    runner = counter(store, wait)
    with pytest.raises(KeyboardInterrupt):
        runner.step(thread_id="t")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    hangs = False
    assert runner.get_state("t")["n"] == 0
    assert runner.step(thread_id="t")["n"] == 1


def test_what_a_node_leaves_on_the_loop_is_ended_with_its_call() -> None:
    left: list[asyncio.Task[None]] = []

    async def leave(state: Any) -> dict[str, Any]:
        left.append(asyncio.get_running_loop().create_task(asyncio.sleep(60)))
        return {"n": state["n"] + 1}

    runner = counter(None, leave)
    for _ in range(2):
        runner.step(thread_id="t")
        assert left.pop().cancelled()


def test_os_threads_sharing_a_runner_each_keep_their_own_thread(store: Checkpointer) -> None:
    runner = counter(store)
    failures: list[BaseException] = []

    def work(thread_id: str) -> None:
        try:
            for step in range(1, LAST + 1):
                assert runner.step(thread_id=thread_id)["n"] == step
                assert runner.get_state(thread_id)["n"] == step
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(f"t{place}",)) for place in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []
