"""Checks a range of a thread's steps.

A check starts from a `Seam`, the state of the check between two steps, and ends with another one. So ranges
can be checked separately (see `processes`), and are joined if the end of one is the start of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.audit.findings import Kind, Mismatch
from hitl_tui.engine.audit.gate_trace import GateFinding, GateTrace
from hitl_tui.engine.audit.tracing import Followed, Standing, TaintTrace, Trace
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.records import Checkpoint, UpdateRecord
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.taint import Tainted
from hitl_tui.engine.nodes.children import threads_of_step
from hitl_tui.engine.state.canonical import GrowingHashes, channel_hash, show_hash, state_hash
from hitl_tui.engine.state.channel import BoundChannel
from hitl_tui.engine.thread.hashes import chained, checkpoint_hash, record_hash
from hitl_tui.engine.thread.rebuild import decode_snapshot, state_at
from hitl_tui.errors import LogCorrupt

Link = tuple[bytes, bytes]
"""A hash as it is stored, and as it should be."""
Watch = Callable[[int, int], object]
Step = tuple[int, Checkpoint | None, list[UpdateRecord]]

WINDOW = 256
"""Steps that are read at a time; ranges start at multiples of it."""


class Seam(msgspec.Struct, frozen=True):
    """The state of a check between two steps.

    Args:
        seq: the newest record.
        previous, link: the hashes to which the next record and checkpoint are chained; None after a gap.
        channels: the channels as far as they were followed, by name.
        written: the channels that a record has named.
        private: the private channels.
        reported: changed reducers that were reported.
        tainted: the tainted channels, None if they are not known.
        complete: all channels are known, so that a state can be hashed.
        unreadable: unreadable snapshots that were reported.
    """

    seq: int = 0
    previous: Link | None = (b"", b"")
    link: Link | None = (b"", b"")
    channels: dict[str, Standing] = {}
    written: frozenset[str] = frozenset()
    private: frozenset[str] = frozenset()
    reported: frozenset[tuple[str, str]] = frozenset()
    tainted: Tainted | None = {}
    complete: bool = False
    unreadable: str = ""

    @classmethod
    def first(cls, channels: Mapping[str, BoundChannel] | None) -> Seam:
        """Return the seam at the start of a thread, with the defaults of the given channels."""
        known = (channels or {}).values()
        return cls(
            channels={
                channel.name: Standing(channel.default_hash, channel.default_hash, True, channel.default)
                for channel in known
            },
            private=frozenset(channel.name for channel in known if channel.visibility == "private"),
            complete=channels is not None,
        )

    def is_same_as(self, other: Seam, *, loosely: bool) -> bool:
        """Whether two seams are the same; known values are compared by their hashes.

        Args:
            loosely: ignore which channels were written and which are private.
        """
        facts = (
            self.seq,
            self.previous,
            self.link,
            self.tainted,
            self.reported,
            self.complete,
            self.unreadable,
        )
        others = (
            *(other.seq, other.previous, other.link, other.tainted, other.reported),
            *(other.complete, other.unreadable),
        )
        return (
            facts == others
            and {name: standing[:3] for name, standing in self.channels.items()}
            == {name: standing[:3] for name, standing in other.channels.items()}
            and (loosely or (self.written, self.private) == (other.written, other.private))
        )


class Task(msgspec.Struct, frozen=True):
    """A range of steps to be checked.

    Args:
        entry: the seam before it; None reads that from the snapshot before it.
        declared: whether the channels of the graph are given.
        private: the graph's private channels.
        new_channels_at: the steps from which on there are exactly the channels of their snapshot.
        decision_by_hash: the number of a decision by its ledger hash; None if the ledger is not known.
        has_graph: the thread was started with a graph, so its first step has a snapshot.
    """

    thread_id: str
    first: int
    last: int
    entry: Seam | None
    declared: bool
    private: frozenset[str]
    new_channels_at: frozenset[int]
    decision_by_hash: dict[bytes, int] | None
    has_graph: bool


class RangeReport(msgspec.Struct, frozen=True):
    """The result of the check of a range, from `entry` to `end`.

    Args:
        loose: it does not depend on which channels were written and private before.
        inner: child threads that its steps name, each with the step.
    """

    entry: Seam
    end: Seam
    mismatches: tuple[Mismatch, ...]
    records: int
    checkpoints: int
    unchecked: int
    loose: bool
    inner: tuple[tuple[str, int], ...]

    def follows(self, seam: Seam) -> bool:
        """Whether a check that starts at a seam would have this result."""
        return self.entry.is_same_as(seam, loosely=self.loose)

    def end_after(self, seam: Seam) -> Seam:
        """Return the seam after it for a check that started at the given seam."""
        return replace(
            self.end, written=self.end.written | seam.written, private=self.end.private | seam.private
        )


def check_range(
    store: Store,
    task: Task,
    *,
    channels: Mapping[str, BoundChannel] | None = None,
    gates: GateTrace | None = None,
    watch: Callable[[int], object] | None = None,
) -> RangeReport:
    """Check a range of a thread's steps.

    Args:
        channels: those of the graph, to reduce every update again; None uses stored results.
        gates: follows the steps; the caller must call its `end`.
        watch: called with the next step now and then; an error that it raises ends the check.

    Raises:
        LogCorrupt: the task has no entry, and none can be read.
    """
    entry = task.entry or seam_before(store, task)
    check = RangeCheck(store, task, entry, channels, gates)
    check.run(task.first, task.last, watch)
    return RangeReport(
        entry,
        check.seam(),
        tuple(check.mismatches),
        check.records,
        check.checkpoints,
        check.unchecked,
        not check.mismatches and not check.trace.depends,
        tuple(check.inner),
    )


def seam_before(store: Store, task: Task) -> Seam:
    """Return the seam before a range, as a check of the whole log would have it without findings.

    It is made from the newest snapshot before the range whose step has records, by checking the steps from
    there on.

    Raises:
        LogCorrupt: there is no such snapshot, or it can't be read.
    """
    before = task.first
    while before > 0 and (snapshot := store.snapshot(task.thread_id, before - 1)):
        before, data = snapshot
        point = store.checkpoint(task.thread_id, before)
        records = list(store.records(task.thread_id, before, before))
        if point is None or not records or records[-1].seq != point.last_seq:
            continue
        values = decode_snapshot(data)
        hashes = {name: channel_hash(value) for name, value in values.items()}
        seam = Seam(
            seq=point.last_seq,
            previous=(records[-1].record_hash,) * 2,
            link=(point.checkpoint_hash,) * 2,
            channels={
                name: Standing(hashes[name], hashes[name], True, value) for name, value in values.items()
            },
            private=task.private,
            tainted={taint.channel: taint for taint in point.tainted},
            complete=True,
        )
        check = RangeCheck(store, task, seam)
        if before + 1 < task.first:
            check.run(before + 1, task.first - 1)
        return check.seam()
    raise LogCorrupt(f"thread {task.thread_id!r} has no snapshot before step {task.first}")


class RangeCheck:
    """One pass over a range of steps."""

    def __init__(
        self,
        store: Store,
        task: Task,
        entry: Seam,
        channels: Mapping[str, BoundChannel] | None = None,
        gates: GateTrace | None = None,
    ) -> None:
        self.store = store
        self.task = task
        self.thread_id = task.thread_id
        self.gates = gates
        self.trace = Trace(
            *(entry.channels, entry.written, entry.private, entry.reported),
            strict=channels,
            before=self._before,
        )
        self.taint = TaintTrace(entry.tainted)
        self.seq, self.previous, self.link = entry.seq, entry.previous, entry.link
        self.complete, self.unreadable = entry.complete, entry.unreadable
        # The facts of threads, by the first of their own steps.
        self._begins: dict[int, list[bytes]] = {}
        for part in store.parts(task.thread_id):
            self._begins.setdefault(part.after_step + 1, []).append(part.facts)
        self.mismatches: list[Mismatch] = []
        self.records = self.checkpoints = self.unchecked = 0
        self.inner: list[tuple[str, int]] = []
        self._hashes = GrowingHashes()

    def _before(self, record: UpdateRecord) -> Any:
        """Return the value of a record's channel before its step, from snapshots and log."""
        values = state_at(self.store, self.thread_id, record.step - 1, only=(record.channel,))
        return values.get(record.channel)

    def seam(self) -> Seam:
        """Return the current seam."""
        trace = self.trace
        return Seam(
            seq=self.seq,
            previous=self.previous,
            link=self.link,
            channels=trace.standings(),
            written=frozenset(trace.written),
            private=frozenset(trace.private),
            reported=frozenset(trace.reported),
            tainted=self.taint.known,
            complete=self.complete,
            unreadable=self.unreadable,
        )

    def run(self, first: int, last: int, watch: Callable[[int], object] | None = None) -> None:
        """Check the steps of a range."""
        while first <= last:
            if watch:
                watch(first)
            end = min(first + WINDOW - first % WINDOW - 1, last)
            snapshots = self._snapshots(first, end)
            # Values that no record names are only in the first snapshot.
            if first == 0 and self.task.has_graph and 0 not in snapshots and not self.unreadable:
                self._add("gap", "snapshot", 0, None, step=0)
            for step, point, records in self._window(first, end):
                self._step(step, point, records, snapshots.get(step))
                if step in snapshots:
                    self._snapshot(step, snapshots.pop(step), point)
            first = end + 1

    def _add(self, kind: Kind, field: str, expected: Any, actual: Any, **place: Any) -> None:
        self.mismatches.append(mismatch(kind, field, expected, actual, **place))

    # -- steps ------------------------------------------------------------------------------------

    def _window(self, first: int, last: int) -> Iterable[Step]:
        """Yield the steps of a range, one by one if the range can't be read as a whole."""
        try:
            return self._read(first, last)
        except LogCorrupt as error:
            if first < last:
                middle = (first + last) // 2
                return self._halves(first, middle, last)
            self._add("unreadable", "step", None, error.message, step=first)
            self._lose()
            return ()

    def _halves(self, first: int, middle: int, last: int) -> Iterator[Step]:
        # A generator, so that what can't be read is reported in its place, after the steps before it.
        yield from self._window(first, middle)
        yield from self._window(middle + 1, last)

    def _read(self, first: int, last: int) -> list[Step]:
        points = self.store.checkpoints(self.thread_id, last + 1, last + 1 - first)[::-1]
        records = list(self.store.records(self.thread_id, first, last))
        return _in_order(first, last, points, records) or _with_moved_records(first, last, points, records)

    def _step(
        self, step: int, point: Checkpoint | None, records: list[UpdateRecord], snapshot: bytes | None
    ) -> None:
        if step in self._begins:
            self.enter(step)
        if self.previous is None and point is not None:
            self.seq = point.first_seq - 1
        first = self.seq + 1
        intact = True
        for record in records:
            intact = self._record(step, record) and intact
        if step in self.task.new_channels_at and snapshot is not None:
            with suppress(Exception):  # reported by the check of the snapshot
                self.trace.keep(decode_snapshot(snapshot))
        if point is None:
            self._add("gap", "step", step, None, step=step)
            self.taint.lose()
            if self.gates:
                self.gates.lose()
            self.link = None
            return
        self.checkpoints += 1
        if point.branches:
            self.inner += [(name, step) for name in threads_of_step(point)]
        wrong = self._place(point, records, first)
        if (state := self._state(point)) is not None:
            wrong = {**wrong, "state_hash": state}
        if not self.taint.is_plain(point, records):
            self._taint(point, records, intact)
        self._linked(point, wrong)
        if self.gates:
            decided = (self.task.decision_by_hash or {}).get(point.ledger_hash)
            self._gates(step, self.gates.follow(point, records, decided))

    def _place(self, point: Checkpoint, records: Sequence[UpdateRecord], first: int) -> Mapping[str, Any]:
        """Check a checkpoint against its neighbours and its records.

        Return wrong fields as they should be.
        """
        step, record = point.step, records[0] if records else None
        if (
            point.parent_step == step - 1
            and point.first_seq == first
            and point.last_seq == self.seq
            and record is not None
            and point.invocation == record.invocation
            and point.node == record.node
            and point.at == record.at
        ):
            return _NOTHING
        facts: dict[str, Any] = {"parent_step": step - 1, "first_seq": first, "last_seq": self.seq}
        if record is not None:
            facts |= {"invocation": record.invocation, "node": record.node, "at": record.at}
        if point.last_seq > self.seq:
            self._add("gap", "seq", point.last_seq, self.seq, step=step)
            self._lose()
            self.seq = point.last_seq
            facts.pop("last_seq")
        wrong = {name: value for name, value in facts.items() if getattr(point, name) != value}
        for name, expected in wrong.items():
            self._add("checkpoint", name, expected, getattr(point, name), step=step)
        return wrong

    def _taint(self, point: Checkpoint, records: Sequence[UpdateRecord], intact: bool) -> None:
        for record, name, should, actual in self.taint.follow(point, records, intact):
            place = {"seq": record.seq, "channel": record.channel} if record else {}
            private = record is not None and record.visibility == "private" and name.endswith("hash")
            shown = (PRIVATE, PRIVATE) if private else (should, actual)
            self._add("taint", name, *shown, step=point.step, **place)

    def _gates(self, step: int, findings: Iterable[GateFinding]) -> None:
        self.mismatches += gate_mismatches(step, findings)

    def enter(self, step: int) -> None:
        """Go on to a step: the chains include the facts of threads that start with it."""
        for facts in self._begins.get(step, ()):
            self.previous, self.link = with_facts(self.previous, facts), with_facts(self.link, facts)

    def _linked(self, point: Checkpoint, wrong: Mapping[str, Any]) -> None:
        """Check a checkpoint's own hash, and the decision that it names.

        Args:
            wrong: fields that were reported already, as they should be.
        """
        decision_by_hash = self.task.decision_by_hash
        names_none = decision_by_hash is not None and point.ledger_hash not in decision_by_hash
        if names_none:
            self._add("checkpoint", "ledger_hash", None, point.ledger_hash, step=point.step)
        own = point.checkpoint_hash
        if self.link is None or self.previous is None:
            self.link = (own, own)
            return
        if not wrong and checkpoint_hash(point, self.link[0], self.previous[0]) == own:
            self.link = (own, own)
            return
        corrected = replace(point, **wrong) if wrong else point
        chains = product((corrected,) if corrected is point else (corrected, point), self.link, self.previous)
        true = b""
        for candidate, link, record in chains:
            computed = checkpoint_hash(candidate, link, record)
            true = true or computed
            if computed == own:
                true = own
                break
        else:
            if not names_none:
                self._add("checkpoint", "checkpoint_hash", true, own, step=point.step)
        self.link = (own, true)

    def _state(self, point: Checkpoint) -> bytes | None:
        """Check a checkpoint's state_hash; return it as it should be if it was reported."""
        trace = self.trace
        expected = trace.state_hash()
        if not expected:
            self.unchecked += 1
        elif point.state_hash == expected:
            self.complete = True
        elif self._was_saved(point):
            return None
        elif self.complete:
            self._add("checkpoint", "state_hash", expected, point.state_hash, step=point.step)
            return expected
        else:
            self.unchecked += 1
        return None

    def _was_saved(self, point: Checkpoint) -> bool:
        """Whether a state has only channels that were written, as in a thread made by `save`."""
        if not self.task.declared:
            return False
        self.trace.depends = True
        return point.state_hash == state_hash(self.trace.written_digests())

    def _lose(self) -> None:
        """Continue after a gap: only later steps show how it ended."""
        self.previous = self.link = None
        self.trace.lose()
        self.taint.lose()
        if self.gates:
            self.gates.lose()

    # -- records ----------------------------------------------------------------------------------

    def _record(self, step: int, record: UpdateRecord) -> bool:
        """Check a record; return whether it is unchanged."""
        self.records += 1
        true = record_hash(record)
        intact = true == record.record_hash
        follows = (
            record.seq == self.seq + 1
            and record.step == step
            and record.prev_record_hash in (self.previous or ())
        )
        if not (intact and follows):
            return self._altered(step, record, true, intact)
        traced = self.trace.follow(record, intact)
        self.seq, self.previous = record.seq, (true, true)
        if traced is not None:
            self._report(step, record, traced.expected, traced)
        return True

    def _altered(self, step: int, record: UpdateRecord, true: bytes, intact: bool) -> bool:
        """Check a record that was changed or does not follow the one before it."""
        place = {"seq": record.seq, "step": step, "channel": record.channel}
        expected: dict[str, Any] = {"seq": self.seq + 1, "step": step}
        if record.seq > self.seq + 1 and record_hash(replace(record, seq=self.seq + 1)) != record.record_hash:
            self._add("gap", "seq", self.seq + 1, record.seq, **place)
            self._lose()
            # A store that derives the hash of the record before it has lost that, too.
            intact = True
        if intact:
            expected = {"step": step}
            self.seq = record.seq
        else:
            self.seq += 1
        stored, should = self.previous or (record.prev_record_hash,) * 2
        if record.prev_record_hash not in (stored, should):
            expected["prev_record_hash"] = should
        traced = self.trace.follow(record, intact)
        expected |= traced.expected if traced else {}
        wrong = {name: value for name, value in expected.items() if getattr(record, name) != value}
        if not intact:
            corrected = replace(record, **wrong)
            if should != stored and not wrong:
                corrected = replace(record, prev_record_hash=should)
            corrected_hash = record_hash(corrected)
            if corrected_hash != record.record_hash:
                wrong["record_hash"] = true = corrected_hash
            else:
                true = record.record_hash
        self._report(step, record, wrong, traced)
        self.previous = (record.record_hash, true)
        return intact

    def _report(
        self, step: int, record: UpdateRecord, wrong: Mapping[str, Any], traced: Followed | None
    ) -> None:
        place = {"seq": record.seq, "step": step, "channel": record.channel}
        private = record.visibility == "private"
        for name, value in wrong.items():
            kind: Kind = "channel" if name == "previous_hash" else "value" if name in _VALUES else "record"
            actual = getattr(record, name)
            self._add(kind, name, *((PRIVATE, PRIVATE) if private else (value, actual)), **place)
        for finding in traced.findings if traced else ():
            shown = (PRIVATE, PRIVATE) if private else (finding.expected, finding.actual)
            self._add(finding.kind, finding.field, *shown, **place)

    # -- snapshots ----------------------------------------------------------------------------------

    def _snapshots(self, first: int, last: int) -> dict[int, bytes]:
        """Return the snapshots of a range of steps, one by one if they can't be read as a whole."""
        hashes: dict[int, bytes] = {}
        with suppress(LogCorrupt):
            return dict(self.store.snapshots(self.thread_id, first, last))
        step = last
        while step >= first:
            try:
                newest = self.store.snapshot(self.thread_id, step)
            except LogCorrupt as error:
                if error.message != self.unreadable:
                    self.unreadable = error.message
                    self._add("unreadable", "snapshot", None, self.unreadable, step=step)
                step -= 1 + step // 8
                continue
            if newest is None or newest[0] < first:
                break
            hashes[newest[0]] = newest[1]
            step = newest[0] - 1
        return hashes

    def _snapshot(self, step: int, data: bytes, point: Checkpoint | None) -> None:
        known = len(self.mismatches)
        try:
            values = decode_snapshot(data)
        except Exception as error:
            self._add("unreadable", "snapshot", None, f"{type(error).__name__}: {error}", step=step)
            return
        trace = self.trace
        digests = {name: self._hashes.of(name, value) for name, value in values.items()}
        for name, value in values.items():
            digest = digests[name]
            expected = trace.digest(name)
            if expected is not None and digest != expected:
                shown = (PRIVATE, PRIVATE) if name in trace.private else (expected, digest)
                self._add("snapshot", "value", *shown, step=step, channel=name)
            elif expected is None:
                trace.set_from_snapshot(name, value, digest)
            else:
                trace.set_value(name, value)
        for name in trace.missing(values):
            self._add("snapshot", "channel", name, None, step=step, channel=name)
        reported = any(mismatch.step == step for mismatch in self.mismatches[known - 1 if known else 0 :])
        if point is not None and not reported and state_hash(digests) != point.state_hash:
            self._add("snapshot", "state_hash", point.state_hash, state_hash(digests), step=step)


_VALUES = ("update_hash", "next_hash")
_NOTHING: Mapping[str, Any] = {}


def mismatch(kind: Kind, field: str, expected: Any, actual: Any, **place: Any) -> Mismatch:
    """Make a finding; hashes are shown as text."""
    shown = [show_hash(value) if isinstance(value, bytes) else value for value in (expected, actual)]
    at: dict[str, Any] = {"seq": None, "step": None, "channel": None, **place}
    return Mismatch(kind=kind, field=field, expected=shown[0], actual=shown[1], **at)


def gate_mismatches(step: int, findings: Iterable[GateFinding]) -> list[Mismatch]:
    """Yield findings about gates as findings of a step."""
    return [
        mismatch("gate", finding.field, finding.expected, finding.actual, step=step, seq=finding.n)
        for finding in findings
    ]


def with_facts(link: Link | None, facts: bytes) -> Link | None:
    """Return a link chained to the facts of a thread that starts after it."""
    return link and (chained(link[0], facts), chained(link[1], facts))


def _in_order(
    first: int, last: int, points: Sequence[Checkpoint], records: list[UpdateRecord]
) -> list[Step] | None:
    """Return the steps of a range if each record belongs to its step; None if something is out of place."""
    if len(points) != last + 1 - first or points[0].step != first or points[-1].step != last:
        return None
    steps: list[Step] = []
    place = 0
    for point in points:
        step, begin = point.step, place
        place += point.last_seq - point.first_seq + 1
        own = records[begin:place] if begin <= place else None
        if own is None or len(own) != place - begin:
            return None
        if own and (own[0].seq != point.first_seq or own[-1].seq != point.last_seq):
            return None
        for record in own:
            if record.step != step:
                return None
        steps.append((step, point, own))
    return steps if place == len(records) else None


def _with_moved_records(
    first: int, last: int, points: Sequence[Checkpoint], records: Iterable[UpdateRecord]
) -> list[Step]:
    """Return the steps of a range whose records may have been moved."""
    by_step = {point.step: point for point in points}
    own: dict[int, list[UpdateRecord]] = {step: [] for step in range(first, last + 1)}
    by_seq = _steps_by_seq([by_step[step] for step in sorted(by_step)])
    step = first
    for record in records:
        # Either its step or its seq may have been changed, but not both consistently.
        reported = (record.step, by_seq.get(record.seq, record.step))
        step = min((candidate for candidate in reported if step <= candidate <= last), default=step)
        own[step].append(record)
    return [(step, by_step.get(step), some) for step, some in own.items()]


def _steps_by_seq(points: list[Checkpoint]) -> dict[int, int]:
    """Return the step of each seq, from checkpoints that start where the one before them ended."""
    steps: dict[int, int] = {}
    for before, point, following in zip([None, *points], points, [*points[1:], None], strict=False):
        joined = before is None or before.last_seq + 1 == point.first_seq
        if joined and (following is None or following.first_seq == point.last_seq + 1):
            steps |= dict.fromkeys(range(point.first_seq, point.last_seq + 1), point.step)
    return steps
