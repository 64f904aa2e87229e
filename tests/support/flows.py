"""Small graphs, a clock that is set by hand, and the one check after everything: the log is the truth."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hitl_tui import END, START, Channel, GraphRunner, StateGraph, append
from hitl_tui.engine.commands import Command, execute
from hitl_tui.engine.log.events import Event
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.run.loop import RunLoop
from hitl_tui.engine.state.canonical import channel_hash, equal, state_hash
from hitl_tui.engine.state.channel import BoundChannel
from hitl_tui.engine.thread.hashes import chained, checkpoint_hash, ledger_hash, record_hash
from hitl_tui.engine.thread.rebuild import next_value
from hitl_tui.engine.thread.session import Session
from hitl_tui.stores import Checkpointer

SECOND = 1_000_000


class Clock:
    """Microseconds since the epoch, as a test wants them; every look moves it by one."""

    def __init__(self, now: int = 1_763_000_000_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        self.now += 1
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)


def channels() -> dict[str, Channel]:
    return {
        "log": Channel([], reducer=append()),
        "draft": Channel("", schema={"type": "string"}),
        "verdict": Channel("revise", schema={"enum": ["revise", "approved"]}),
        "n": Channel(0, schema={"type": "integer"}),
    }


def write(state: Any, config: Any) -> dict[str, Any]:
    n = state["n"] + 1
    return {"log": f"write {n}", "draft": f"draft {n}", "n": n}


def check(state: Any, config: Any) -> dict[str, Any]:
    return {"log": f"check {state['draft']}"}


def by_verdict(state: Any) -> str:
    return str(state["verdict"])


def review_loop(
    store: Checkpointer | None, nodes: Mapping[str, Any] | None = None, **options: Any
) -> GraphRunner:
    """START -> write -> check -> (approved: END, revise: write)."""
    functions = {"write": write, "check": check, **(nodes or {})}
    return (
        StateGraph(channels(), name="review")
        .add_node("write", functions["write"])
        .add_node("check", functions["check"])
        .add_edge(START, "write")
        .add_edge("write", "check")
        .add_conditional_edge("check", by_verdict, {"approved": END, "revise": "write"})
        .compile(checkpointer=store, **options)
    )


def line(
    store: Checkpointer | None, *functions: Callable[..., Any], retry: Any = None, **options: Any
) -> GraphRunner:
    """START -> a -> b -> c ... -> END over the functions given."""
    graph = StateGraph(channels(), name="line")
    names = [chr(ord("a") + place) for place in range(len(functions))]
    for name, function in zip(names, functions, strict=True):
        graph.add_node(name, function, retry=retry)
    for source, target in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(source, target)
    return graph.compile(checkpointer=store, **options)


def say(text: str) -> Callable[..., Any]:
    """A node that writes one line to the log."""
    return lambda state: {"log": text}


class Desk:
    """One thread under a clock of its own: run it, look at the events it told."""

    def __init__(self, runner: GraphRunner, thread_id: str, clock: Clock | None = None) -> None:
        assert runner.store is not None
        self.clock = clock or Clock()
        self.events: list[Event] = []
        graph, store = runner.graph, runner.store
        options: dict[str, Any] = {"clock": self.clock, "sink": self.events.append}
        if store.info(thread_id) is None:
            self.session = Session.new(graph, store, thread_id, source=runner.source, **options)
        else:
            self.session = Session.open(graph, store, thread_id, **options)

    def run(self, **options: Any) -> Session:
        async def go() -> None:
            async for _ in RunLoop(self.session, **options).steps():
                pass

        asyncio.run(go())
        return self.session

    def do(self, command: Command[Any]) -> Any:
        """Carry out a command that is one commit, with the thread held for writing."""
        with self.session.writing():
            return execute(self.session, command)

    def events_of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def ledger_of(store: Checkpointer, thread_id: str, kind: str) -> list[LedgerEntry]:
    return [entry for entry in store.ledger(thread_id) if entry.kind == kind]


def pending_id(runner: GraphRunner, thread_id: str) -> str:
    return str(runner.open(thread_id).cursor.pending[0].id)


def check_log(runner: GraphRunner, thread_id: str) -> None:
    """The live state is what the log makes of the defaults, and every chain of hashes is whole."""
    store = runner.store
    assert store is not None
    session = runner.open(thread_id)
    bound = runner.graph.channels
    values = {name: channel.default for name, channel in bound.items()}
    by_step: dict[int, dict[str, Any]] = {}
    previous, seq = _chain_starts(store, thread_id, "after_seq", 0, b""), 0
    for record in store.records(thread_id, 0, session.cursor.head):
        seq += 1
        assert record.seq == seq
        assert record.prev_record_hash == previous
        assert record.record_hash == record_hash(msgspec.structs.replace(record, record_hash=b""))
        assert record.previous_hash == channel_hash(values[record.channel])
        values[record.channel] = next_value(record, values[record.channel])
        assert record.next_hash == channel_hash(values[record.channel])
        previous = _chain_starts(store, thread_id, "after_seq", seq, record.record_hash)
        by_step[record.step] = dict(values)
    assert seq == session.cursor.last_seq
    assert equal(values, dict(session.state.values))
    assert {name: channel_hash(value) for name, value in values.items()} == session.state.digests
    _check_checkpoints(store, thread_id, by_step, session.cursor.head, bound)
    _check_ledger(store, thread_id, session)


def _check_checkpoints(
    store: Any,
    thread_id: str,
    by_step: dict[int, dict[str, Any]],
    head: int,
    bound: Mapping[str, BoundChannel],
) -> None:
    points = store.checkpoints(thread_id, None, 10_000)[::-1]
    assert [point.step for point in points] == list(range(head + 1))
    values: dict[str, Any] = {name: channel.default for name, channel in bound.items()}
    seq, link = 0, _chain_starts(store, thread_id, "after_step", -1, b"")
    for point in points:
        values = by_step.get(point.step, values)
        digests = {name: channel_hash(value) for name, value in values.items()}
        assert point.state_hash == state_hash(digests)
        assert point.first_seq == seq + 1
        seq = point.last_seq
        assert point.parent_step == point.step - 1
        records = list(store.records(thread_id, 0, point.step))
        start = _chain_starts(store, thread_id, "after_seq", 0, b"", before=point.step)
        newest = records[-1].record_hash if records else b""
        record = (
            _chain_starts(store, thread_id, "after_seq", seq, newest, before=point.step) if seq else start
        )
        assert point.checkpoint_hash == checkpoint_hash(point, link, record)
        link = _chain_starts(store, thread_id, "after_step", point.step, point.checkpoint_hash)
    assert link == store.cursor(thread_id).checkpoint_hash


def _check_ledger(store: Any, thread_id: str, session: Session) -> None:
    previous, n = _chain_starts(store, thread_id, "after_entry", 0, b""), 0
    for entry in store.ledger(thread_id):
        n += 1
        assert entry.n == n
        assert entry.prev_hash == previous
        assert entry.hash == ledger_hash(msgspec.structs.replace(entry, hash=b""))
        previous = _chain_starts(store, thread_id, "after_entry", n, entry.hash)
    assert (n, previous) == (session.cursor.ledger_n, session.cursor.ledger_hash)


def _chain_starts(
    store: Any, thread_id: str, after_number: str, number: int, link: bytes, *, before: int = 1 << 32
) -> bytes:
    """A link of a chain, and the facts of the threads whose rows begin after its number.

    Args:
        after_number: which number: after_seq, after_step or after_entry.
        before: only those whose steps begin at an earlier one.
    """
    for part in store.parts(thread_id):
        if getattr(part, after_number) == number and part.after_step < before:
            link = chained(link, part.facts)
    return link


def head_hash(runner: GraphRunner, thread_id: str) -> bytes:
    return state_hash(runner.open(thread_id).state.digests)
