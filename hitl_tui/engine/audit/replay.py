"""Replay: runs the graph on the recorded results of its nodes.

Routes and termination conditions are really called, and updates go through the current reducers. No node, no
handler and no model is called, and nothing is written. What did not come from a node (input, edits, answers,
forks, undone steps) is taken from the log, together with the position that it left.

Specified in docs/spec/log.md.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.audit.findings import Kind, Mismatch
from hitl_tui.engine.audit.tracing import ReplayedChannels
from hitl_tui.engine.graph.compiled import CompiledGraph
from hitl_tui.engine.graph.termination import WrittenChannels
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.records import END, ROLLBACK, Checkpoint, Cursor, Source, UpdateRecord
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.state.canonical import channel_hash, show_hash, state_hash
from hitl_tui.engine.state.changes import reduced, set_values
from hitl_tui.engine.state.channel import BoundChannel
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.thread.rebuild import next_value, update_of
from hitl_tui.engine.thread.run_inputs import inputs_at, inputs_at_steps
from hitl_tui.engine.thread.session import ThreadState, length_of
from hitl_tui.errors import HitlError, ReplayMismatch, UnknownThread

Watch = Callable[[int, int], object]

_WINDOW = 256
_RUN: tuple[Source, ...] = ("node", "map", "subgraph")


class ReplayReport(msgspec.Struct, frozen=True):
    """What a replay found.

    Args:
        mismatches: `expected` is what was recorded, `actual` is the result of the current graph. Kind "node":
            it takes another route, and the replay ends there; "value": an update gives another value;
            "reducer": the channel has another reducer now; "checkpoint": the state's hash differs.
        steps, records, nodes: how many were replayed; nodes are those whose results were used.
    """

    mismatches: tuple[Mismatch, ...] = ()
    steps: int = 0
    records: int = 0
    nodes: int = 0

    @property
    def ok(self) -> bool:
        """Whether the current graph does what it did then."""
        return not self.mismatches

    @property
    def changed_reducers(self) -> tuple[str, ...]:
        """Return the channels whose reducer has changed since they were written."""
        return tuple(mismatch.channel or "" for mismatch in self.mismatches if mismatch.field == "reducer")

    def check(self) -> None:
        """Raise `ReplayMismatch` if the graph took another route."""
        for mismatch in self.mismatches:
            if mismatch.kind == "node":
                raise ReplayMismatch(
                    f"step {mismatch.step}: the log has {mismatch.expected}, "
                    f"the graph goes to {mismatch.actual}",
                    "the routes, the conditions or the nodes of the graph have changed since",
                    step=mismatch.step or 0,
                    recorded=str(mismatch.expected),
                    replayed=str(mismatch.actual),
                )


def replay(store: Store, graph: CompiledGraph, thread_id: str, watch: Watch | None = None) -> ReplayReport:
    """Replay a thread; the first different node ends it.

    Args:
        watch: called with (steps done, steps in all).

    Raises:
        UnknownThread: there is no such thread.
        LogCorrupt: its log can't be read.
    """
    cursor = store.cursor(thread_id)
    if cursor is None:
        raise UnknownThread(f"there is no thread {thread_id!r}", "list the threads to see what there is")
    return _Replay(store, graph, cursor).run(watch)


def first_other_route(
    store: Store, graph: CompiledGraph, cursor: Cursor, after: Container[int], last: int
) -> int | None:
    """Return the first step to which the current routes of a graph do not lead.

    Args:
        after: the steps after which the route is called.
        last: the last step that is checked; the one after the newest is where the thread goes next.
    """
    return _Routes(store, graph, cursor).first_other(after, last)


class _Replay(ThreadState):
    """The replay of one thread, from its first step on."""

    def __init__(self, store: Store, graph: CompiledGraph, cursor: Cursor) -> None:
        self.store = store
        self.graph = graph
        self.recorded = cursor
        ledger = store.ledger(cursor.thread_id)
        self.given = inputs_at_steps(ledger)
        self.channels = ReplayedChannels(store, cursor.thread_id, graph.channels, ledger)
        self.cursor = Cursor(cursor.thread_id, **inputs_at(-1, self.given, cursor))
        self.state = LiveState.initial(graph.channels)
        self.mismatches: list[Mismatch] = []
        self.records = self.nodes = 0
        self._position = ""
        self._reported: set[tuple[str, str]] = set()

    def run(self, watch: Watch | None) -> ReplayReport:
        head = self.recorded.head
        for point, records in self._steps(head):
            if watch and point.step % _WINDOW == 0:
                watch(point.step, head + 1)
            if point.source in _RUN and not self._goes_to(point):
                return self._report()
            self._serve(point, records)
        if self.recorded.status == "completed":
            self._ends(head)
        if watch:
            watch(head + 1, head + 1)
        return self._report()

    def _report(self) -> ReplayReport:
        return ReplayReport(tuple(self.mismatches), self.cursor.head + 1, self.records, self.nodes)

    def _steps(self, head: int) -> Iterator[tuple[Checkpoint, list[UpdateRecord]]]:
        thread_id = self.cursor.thread_id
        for first in range(0, head + 1, _WINDOW):
            last = min(first + _WINDOW - 1, head)
            records: dict[int, list[UpdateRecord]] = {}
            for record in self.store.records(thread_id, first, last):
                records.setdefault(record.step, []).append(record)
            for point in reversed(self.store.checkpoints(thread_id, last + 1, last + 1 - first)):
                yield point, records.get(point.step, [])

    # -- where it goes ------------------------------------------------------------------------------

    def _goes_to(self, point: Checkpoint) -> bool:
        """Whether the graph runs the recorded node next."""
        node = self._next_node()
        if node == point.node:
            self.nodes += 1
            return True
        self._add("node", "node", _name(point.node), _name(node), step=point.step)
        return False

    def _next_node(self) -> str:
        """Return what the graph would run next, or END with the reason if it would stop."""
        position = self.cursor.position
        if position == ROLLBACK:
            # Only a fork continues from there, and after a rollback the graph starts again.
            position = f"node:{self.graph.entry}"
        try:
            target, ended = self.next_target(position)
        except HitlError as error:
            return f"an error: {error.message}"
        return f"{END} ({ended})" if ended else target or "no way on"

    def _ends(self, head: int) -> None:
        # The cost of failed attempts is only in the cursor, and a condition may have counted it.
        self.cursor = replace(self.cursor, cost=self.recorded.cost)
        node = self._next_node()
        if not node.startswith(END):
            self._add("node", "node", _name(END), _name(node), step=head)

    def _moved(self, point: Checkpoint) -> str:
        """Return the position after a step: after a node, that of the graph; otherwise the recorded one."""
        before, self._position = self._position, point.position
        if point.source in _RUN and point.node in self.graph.nodes:
            return f"route:{point.node}"
        begins = point.source == "input" and point.invocation != self.cursor.invocation
        if begins and point.position.startswith("node:"):
            return f"node:{self.graph.entry}"
        return self.cursor.position if point.position == before else point.position

    # -- what it makes of the results ---------------------------------------------------------------

    def _serve(self, point: Checkpoint, records: list[UpdateRecord]) -> None:
        values, digests = self.state.values.copy(), self.state.digests.copy()
        new = point.invocation != self.cursor.invocation or point.step == 0
        begins = point.source == "input" and new
        written = self._written
        if written is None or written.invocation != point.invocation:
            written = self._written = WrittenChannels(point.invocation, point.step)
        written.step = point.step
        for record in records:
            self.records += 1
            if self.channels.lost(record):
                continue
            channel = self.graph.channels.get(record.channel)
            if channel is None:
                self._add(
                    "channel", "channel", record.channel, None,
                    step=point.step, seq=record.seq, channel=record.channel,
                )  # fmt: skip
                continue
            name, before = channel.name, values[channel.name]
            values[name], digests[name] = self._reduce(channel, before, digests[name], record)
            if begins:
                written.given.add(name)
            else:
                reducer = channel.reducer if record.op == "reduce" else None
                written.note(name, reducer, length_of(before), length_of(values[name]))
        self.channels.follow(point.step, {record.channel for record in records}, values, digests)
        self.state = LiveState(values, digests)
        now = state_hash(self.channels.hashed(digests))
        if now != point.state_hash and not self._known_to_differ():
            self._add("checkpoint", "state_hash", point.state_hash, now, step=point.step)
        self.cursor = replace(
            self.cursor,
            head=point.step,
            position=self._moved(point),
            invocation=point.invocation,
            iteration=point.iteration,
            cost=self.cursor.cost + sum(use.cost or 0.0 for use in point.uses),
            **self.given.get(point.step, {}),
        )

    def _known_to_differ(self) -> bool:
        """Note that the state differs, so that it is not reported again at each later step."""
        return any(mismatch.kind in ("channel", "checkpoint") for mismatch in self.mismatches)

    def _reduce(
        self, channel: BoundChannel, before: Any, before_hash: bytes, record: UpdateRecord
    ) -> tuple[Any, bytes]:
        """Return the value and its hash after a record; the recorded ones if they differ."""
        place = {"step": record.step, "seq": record.seq, "channel": channel.name}
        private = "private" in (record.visibility, channel.visibility)
        known = (channel.name, record.reducer)
        signature = channel.reducer.signature
        if record.op == "reduce" and signature != record.reducer and known not in self._reported:
            self._reported.add(known)
            self._add("reducer", "reducer", record.reducer, signature, **place)
        try:
            update = update_of(record, before)
            if record.op == "set":
                state = LiveState({channel.name: before}, {channel.name: before_hash})
                change = set_values(state, {channel.name: channel}, {channel.name: update})[0]
            else:
                change = reduced(channel, before, channel.accept(update, before), before_hash)
        except Exception as error:
            message = error.message if isinstance(error, HitlError) else f"{type(error).__name__}: {error}"
            self._add("value", "update", "an update that fits", PRIVATE if private else message, **place)
        else:
            if change.after_hash == record.next_hash:
                return change.after, change.after_hash
            shown = (PRIVATE, PRIVATE) if private else (record.next_hash, change.after_hash)
            self._add("value", "next_hash", *shown, **place)
        value = next_value(record, before)
        return value, channel_hash(value)

    def _add(self, kind: Kind, field: str, expected: Any, actual: Any, **place: Any) -> None:
        shown = [show_hash(value) if isinstance(value, bytes) else value for value in (expected, actual)]
        at: dict[str, Any] = {"seq": None, "step": None, "channel": None, **place}
        self.mismatches.append(Mismatch(kind=kind, field=field, expected=shown[0], actual=shown[1], **at))


class _Routes(_Replay):
    """Calls only the routes: termination conditions are ignored, since the recorded steps were made."""

    def terminated(self, state: LiveState | None = None, cursor: Cursor | None = None) -> str:
        """Return "": no condition counts."""
        return ""

    def first_other(self, after: Container[int], last: int) -> int | None:
        """Return the first step, up to `last`, to which the routes do not lead."""
        head = self.recorded.head
        for point, records in self._steps(min(last, head)):
            asked = point.source in _RUN and point.step - 1 in after
            if asked and self._next_node() != point.node:
                return point.step
            self._serve(point, records)
        return head + 1 if last > head and head in after and self._leads_elsewhere() else None

    def _leads_elsewhere(self) -> bool:
        """Whether the thread would continue from its newest step in another way than recorded."""
        kind, _, target = self.recorded.position.partition(":")
        if kind == "end":
            return self.recorded.reason == "end" and self._next_node() != END
        return kind == "node" and self._next_node() != target


def _name(node: str) -> str:
    return node if node.startswith((END, "an error:")) else repr(node)
