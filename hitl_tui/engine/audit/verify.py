"""Whether the logs of a thread and of the threads below it agree with themselves (SPEC 7, 12)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import product
from typing import Any

from msgspec.structs import replace

from hitl_tui.engine.audit import signatures
from hitl_tui.engine.audit.anchor import Anchor, anchors_of, moved
from hitl_tui.engine.audit.findings import Kind, Mismatch, VerifyReport
from hitl_tui.engine.audit.gate_trace import GateFinding, GateTrace
from hitl_tui.engine.audit.tracing import ChannelSets, TaintTrace, Trace
from hitl_tui.engine.graph.compiled import CompiledGraph
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.records import Checkpoint, Cursor, LedgerEntry, UpdateRecord
from hitl_tui.engine.log.signing import SignedDecision, Signers
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.nodes.children import ChildThread, inner_graph, inside
from hitl_tui.engine.state.canonical import GrowingHashes, show_hash, state_hash
from hitl_tui.engine.state.channel import BoundChannel
from hitl_tui.engine.thread.hashes import chained, checkpoint_hash, ledger_hash, record_hash
from hitl_tui.engine.thread.journal import decode_snapshot
from hitl_tui.engine.thread.rebuild import state_at
from hitl_tui.engine.thread.session import unbound
from hitl_tui.errors import GraphInvalid, LogCorrupt, UnknownThread, UsageError

# Steps read at a time.
_WINDOW = 256


def verify(
    store: Store,
    thread_id: str,
    channels: Mapping[str, BoundChannel] | None = None,
    *,
    strict: bool = False,
    watch: Callable[[int, int], object] | None = None,
    signers: Signers | None = None,
) -> VerifyReport:
    """Check a thread's log and change nothing.

    Args:
        channels: the graph's; without them defaults are taken from the log as far as it tells them.
        strict: reduce every update again, custom reducers included, as the graph does it today; and want an
            answer in the ledger for every gate that the thread has passed.
        signers: checks the signatures of decisions; None checks only that those are there that must be.
        watch: called with (steps done, steps in all) now and then; what it raises ends the check.

    Raises:
        UnknownThread: there is no such thread.
        UsageError: strict without channels.
    """
    cursor = store.cursor(thread_id, unchecked=True)
    if cursor is None:
        raise UnknownThread(f"there is no thread {thread_id!r}", "list the threads to see what there is")
    if strict and channels is None:
        raise UsageError("a strict check needs the graph's channels", "verify with the graph at hand")
    return _Check(store, cursor, channels, strict, signers).run(watch)


class _Check:
    """One pass over one thread."""

    def __init__(
        self,
        store: Store,
        cursor: Cursor,
        channels: Mapping[str, BoundChannel] | None,
        strict: bool,
        signers: Signers | None,
    ) -> None:
        self.store = store
        self.thread_id = cursor.thread_id
        self.cursor = cursor
        self.signers = signers
        self.strict = strict
        # The ledger, and the gates that are followed by it where all of it is there.
        self.decided: list[LedgerEntry] = []
        self.gates: GateTrace | None = None
        self.signed: list[SignedDecision] = []
        self.trace = Trace(channels, strict, self._before)
        self.sets = ChannelSets(store, self.thread_id, self.trace)
        self.taint = TaintTrace()
        self.mismatches: list[Mismatch] = []
        self.seq = 0
        # The hash of the record before, as stored and as it should be; None after a gap.
        self.previous: tuple[bytes, bytes] | None = (b"", b"")
        # The same of the checkpoint before.
        self.link: tuple[bytes, bytes] | None = (b"", b"")
        self.parts = store.parts(self.thread_id)
        # Where the ledger stood at some time, by the hash there; None where that is not known.
        self.stood: dict[bytes, int] | None = {}
        self.records = self.checkpoints = self.unchecked = 0
        # Whether all channels are known, so that a state can be hashed.
        self.complete = channels is not None
        self.hashed: tuple[int, bytes] = (-1, b"")
        # What was said of snapshots that can't be read.
        self.unreadable = ""
        self.hashes = GrowingHashes()

    def run(self, watch: Callable[[int, int], object] | None) -> VerifyReport:
        head = self.cursor.head
        begun = self._threads()
        ledger = self._ledger()
        if self.strict and self.stood is not None:
            self.gates = GateTrace(self.store, self.parts, self.decided)
        for first in range(0, head + 1, _WINDOW):
            if watch:
                watch(first, head + 1)
            last = min(first + _WINDOW - 1, head)
            snapshots = self._snapshots(first, last)
            # Values that no record names are in the first snapshot alone.
            if first == 0 and begun and 0 not in snapshots and not self.unreadable:
                self._add("gap", "snapshot", 0, None, step=0)
            for step, point, records in self._window(first, last):
                self._step(step, point, records, snapshots.get(step))
                if step in snapshots:
                    self._snapshot(step, snapshots.pop(step), point)
        self._enter(head + 1)
        self._gates(head, self.gates.end(self.cursor) if self.gates else ())
        self.mismatches += ledger
        self._cursor()
        self._faults()
        return VerifyReport(
            tuple(self.mismatches),
            self.records,
            self.checkpoints,
            self.unchecked,
            decisions=tuple(self.signed) if self.signers else None,
        )

    def _before(self, record: UpdateRecord) -> Any:
        """What a record's channel held before its step, by the snapshots and the log."""
        values = state_at(self.store, self.thread_id, record.step - 1, only=(record.channel,))
        return values.get(record.channel)

    def _add(self, kind: Kind, field: str, expected: Any, actual: Any, **place: Any) -> None:
        shown = [show_hash(value) if isinstance(value, bytes) else value for value in (expected, actual)]
        at: dict[str, Any] = {"seq": None, "step": None, "channel": None, **place}
        self.mismatches.append(Mismatch(kind=kind, field=field, expected=shown[0], actual=shown[1], **at))

    # -- steps ------------------------------------------------------------------------------------

    def _window(self, first: int, last: int) -> Iterable[tuple[int, Checkpoint | None, list[UpdateRecord]]]:
        """The steps of a range, one by one where the range can't be read as a whole."""
        try:
            return self._read(first, last)
        except LogCorrupt as error:
            if first < last:
                middle = (first + last) // 2
                return self._halves(first, middle, last)
            self._add("unreadable", "step", None, error.message, step=first)
            self._lose()
            return ()

    def _halves(
        self, first: int, middle: int, last: int
    ) -> Iterator[tuple[int, Checkpoint | None, list[UpdateRecord]]]:
        # A generator: what can't be read is noted in its place, after the steps before it.
        yield from self._window(first, middle)
        yield from self._window(middle + 1, last)

    def _read(self, first: int, last: int) -> list[tuple[int, Checkpoint | None, list[UpdateRecord]]]:
        page = self.store.checkpoints(self.thread_id, last + 1, last + 1 - first)
        points = {point.step: point for point in page}
        records: dict[int, list[UpdateRecord]] = {step: [] for step in range(first, last + 1)}
        by_seq = _steps_by_seq([points[step] for step in sorted(points)])
        step = first
        for record in self.store.records(self.thread_id, first, last):
            # Either its step or its seq may have been changed, not both in the same way.
            told = (record.step, by_seq.get(record.seq, record.step))
            step = min((one for one in told if step <= one <= last), default=step)
            records[step].append(record)
        return [(step, points.get(step), own) for step, own in records.items()]

    def _step(
        self, step: int, point: Checkpoint | None, records: list[UpdateRecord], snapshot: bytes | None
    ) -> None:
        self._enter(step)
        if self.previous is None and point is not None:
            self.seq = point.first_seq - 1
        first = self.seq + 1
        intact = [self._record(step, record) for record in records]
        self.sets.follow(step, snapshot)
        if point is None:
            self._add("gap", "step", step, None, step=step)
            self.taint.lose()
            if self.gates:
                self.gates.lose()
            self.link = None
            return
        self.checkpoints += 1
        facts = {"parent_step": step - 1, "first_seq": first, "last_seq": self.seq}
        if records:
            facts |= {name: getattr(records[0], name) for name in ("invocation", "node", "at")}
        if point.last_seq > self.seq:
            self._add("gap", "seq", point.last_seq, self.seq, step=step)
            self._lose()
            self.seq = point.last_seq
            facts.pop("last_seq")
        wrong = {name: value for name, value in facts.items() if getattr(point, name) != value}
        for name, expected in wrong.items():
            self._add("checkpoint", name, expected, getattr(point, name), step=step)
        wrong |= self._state(point)
        for record, name, should, actual in self.taint.follow(point, records, all(intact)):
            place = {"seq": record.seq, "channel": record.channel} if record else {}
            private = record is not None and record.visibility == "private" and name.endswith("hash")
            shown = (PRIVATE, PRIVATE) if private else (should, actual)
            self._add("taint", name, *shown, step=step, **place)
        self._linked(point, wrong)
        if self.gates:
            decided = (self.stood or {}).get(point.ledger_hash)
            self._gates(step, self.gates.follow(point, records, decided))

    def _gates(self, step: int, findings: Iterable[GateFinding]) -> None:
        for finding in findings:
            self._add("gate", finding.field, finding.expected, finding.actual, step=step, seq=finding.n)

    def _enter(self, step: int) -> None:
        """Go on to a step: the chains go on with the facts of threads that begin with it."""
        for part in self.parts:
            if part.after_step == step - 1:
                self.previous = _begun(self.previous, part.facts)
                self.link = _begun(self.link, part.facts)

    def _linked(self, point: Checkpoint, wrong: dict[str, Any]) -> None:
        """Check a checkpoint's own hash, and the decision that it names.

        Args:
            wrong: fields that were told already, as they should be.
        """
        names_none = self.stood is not None and point.ledger_hash not in self.stood
        if names_none:
            self._add("checkpoint", "ledger_hash", None, point.ledger_hash, step=point.step)
        own = point.checkpoint_hash
        if self.link is None or self.previous is None:
            self.link = (own, own)
            return
        mended = replace(point, **wrong) if wrong else point
        chains = product((mended,) if mended is point else (mended, point), self.link, self.previous)
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

    def _state(self, point: Checkpoint) -> dict[str, Any]:
        """Check a checkpoint's state_hash; gives it as it should be where it was told."""
        trace = self.trace
        if self.hashed[0] != trace.changes:
            digests = trace.digests()
            self.hashed = (trace.changes, b"" if digests is None else state_hash(digests))
        expected = self.hashed[1]
        wrong: dict[str, Any] = {}
        if not expected:
            self.unchecked += 1
        elif point.state_hash == expected:
            self.complete = True
        elif trace.channels is not None and point.state_hash == state_hash(trace.written()):
            # A thread made by `save` has no channels but those that were saved.
            return wrong
        elif self.complete:
            self._add("checkpoint", "state_hash", expected, point.state_hash, step=point.step)
            wrong["state_hash"] = expected
        else:
            self.unchecked += 1
        return wrong

    def _lose(self) -> None:
        """Go on after something that is missing: only what follows can tell how it ended."""
        self.previous = self.link = None
        self.trace.lose()
        self.taint.lose()
        if self.gates:
            self.gates.lose()

    # -- records ----------------------------------------------------------------------------------

    def _record(self, step: int, record: UpdateRecord) -> bool:
        """Check a record; True where it is as it was written."""
        self.records += 1
        place = {"seq": record.seq, "step": step, "channel": record.channel}
        true = record_hash(record)
        intact = true == record.record_hash
        expected: dict[str, Any] = {"seq": self.seq + 1, "step": step}
        if record.seq > self.seq + 1 and record_hash(replace(record, seq=self.seq + 1)) != record.record_hash:
            self._add("gap", "seq", self.seq + 1, record.seq, **place)
            self._lose()
            # A store that derives the hash of the record before has lost that, too.
            intact = True
        if intact:
            expected = {}
            self.seq = record.seq
        else:
            self.seq += 1
        stored, should = self.previous or (record.prev_record_hash,) * 2
        if record.prev_record_hash not in (stored, should):
            expected["prev_record_hash"] = should
        traced = self.trace.follow(record, intact)
        expected |= traced.expected
        wrong = {name: value for name, value in expected.items() if getattr(record, name) != value}
        if not intact:
            mended = replace(record, **wrong)
            if should != stored and not wrong:
                mended = replace(record, prev_record_hash=should)
            mended_hash = record_hash(mended)
            if mended_hash != record.record_hash:
                wrong["record_hash"] = true = mended_hash
            else:
                true = record.record_hash
        private = record.visibility == "private"
        for name, value in wrong.items():
            kind: Kind = "channel" if name == "previous_hash" else "value" if name in _VALUES else "record"
            actual = getattr(record, name)
            self._add(kind, name, *((PRIVATE, PRIVATE) if private else (value, actual)), **place)
        for finding in traced.findings:
            shown = (PRIVATE, PRIVATE) if private else (finding.expected, finding.actual)
            self._add(finding.kind, finding.field, *shown, **place)
        self.previous = (record.record_hash, true)
        return intact

    # -- what stands beside the log -----------------------------------------------------------------

    def _snapshots(self, first: int, last: int) -> dict[int, bytes]:
        """The snapshots of a range of steps, one by one where they can't be read as a whole."""
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
        digests = {name: self.hashes.of(name, value) for name, value in values.items()}
        for name, value in values.items():
            digest = digests[name]
            expected = self.trace.digest(name)
            if expected is not None and digest != expected:
                shown = (PRIVATE, PRIVATE) if name in self.trace.private else (expected, digest)
                self._add("snapshot", "value", *shown, step=step, channel=name)
            elif expected is None:
                self.trace.learn(name, value, digest)
        for name in self.trace.written().keys() - values.keys():
            self._add("snapshot", "channel", name, None, step=step, channel=name)
        told = any(mismatch.step == step for mismatch in self.mismatches[known - 1 if known else 0 :])
        if point is not None and not told and state_hash(digests) != point.state_hash:
            self._add("snapshot", "state_hash", point.state_hash, state_hash(digests), step=step)

    def _threads(self) -> bool:
        """What is fixed about the thread, and about those that it was forked from; True where it has begun
        with a graph."""
        begun = False
        for thread_id in dict.fromkeys(part.thread_id for part in self.parts):
            info, facts = self.store.info(thread_id), self.store.facts(thread_id)
            if info is not None and info.graph_digest and info.parent is None:
                begun = self.cursor.head >= 0
            if info is not None and info.facts_hash != facts:
                self._add("thread", "facts_hash", facts, info.facts_hash)
                self.mismatches[-1] = replace(
                    self.mismatches[-1], thread="" if thread_id == self.thread_id else thread_id
                )
        return begun

    def _ledger(self) -> list[Mismatch]:
        """What is wrong with the decisions, and with what waits for one."""
        before, self.mismatches = self.mismatches, []
        try:
            self._decisions(self.store.ledger(self.thread_id))
        except LogCorrupt as error:
            self._add("unreadable", "ledger", None, error.message)
            self.stood = None
        mismatches, self.mismatches = self.mismatches, before
        return mismatches

    def _decisions(self, entries: list[LedgerEntry]) -> None:
        stored = true = b""
        n = 0
        now = self.store.cursor(self.thread_id, unchecked=True)
        if now is not None and now.version != self.cursor.version:
            # The thread has gone on meanwhile: what is new is for the next check.
            entries = entries[: self.cursor.ledger_n]
        stood = {}
        gaps = len(self.mismatches)
        for entry in entries:
            for part in self.parts:
                if part.after_entry == n:
                    stored, true = chained(stored, part.facts), chained(true, part.facts)
                    stood[stored] = stood[true] = n
            n += 1
            place = {"seq": entry.n, "step": entry.step}
            own = ledger_hash(entry)
            if entry.n != n:
                if ledger_hash(replace(entry, n=n)) == entry.hash:
                    self._add("ledger", "n", n, entry.n, **place)
                else:
                    self._add("gap", "n", n, entry.n, **place)
                    n = entry.n
                own = entry.hash
            elif own != entry.hash and ledger_hash(replace(entry, prev_hash=true)) != entry.hash:
                self._add("ledger", "hash", own, entry.hash, **place)
            elif entry.prev_hash not in (stored, true):
                self._add("ledger", "prev_hash", true, entry.prev_hash, **place)
                own = entry.hash
            elif own != entry.hash:
                # Only the hash it is chained to was changed, which was told there.
                own = entry.hash
            stored, true = entry.hash, own
            stood[stored] = stood[true] = n
        for part in self.parts:
            if part.after_entry == n:
                stored, true = chained(stored, part.facts), chained(true, part.facts)
                stood[stored] = stood[true] = n
        self._signatures(entries)
        lost = any(mismatch.kind == "gap" for mismatch in self.mismatches[gaps:])
        self.stood = None if lost else stood
        self.decided = entries
        for request in self.cursor.pending:
            if (wrong := unbound(request, entries)) is not None:
                self._add("request", request.id, *wrong, step=request.step)
        for name, expected in (("ledger_n", n), ("ledger_hash", (stored, true))):
            self._same(name, expected)

    def _signatures(self, entries: list[LedgerEntry]) -> None:
        self.mismatches += signatures.unsigned_answers(entries)
        if self.signers:
            self.signed = signatures.decisions(entries, self.signers)
            self.mismatches += signatures.wrong_signatures(self.signed)

    def _cursor(self) -> None:
        self._same("last_seq", self.seq)
        if self.previous is not None:
            self._same("last_record_hash", self.previous)
        if self.link is not None:
            self._same("checkpoint_hash", self.link)
        if any(mismatch.kind in ("cursor", "request", "thread") for mismatch in self.mismatches):
            return
        try:
            self.store.cursor(self.thread_id)
        except LogCorrupt as error:
            self._add("cursor", "digest", None, error.message, step=self.cursor.head)

    def _faults(self) -> None:
        """What lies beside the log."""
        info = self.store.info(self.thread_id)
        # A graph's hash is its name, which stands in the thread's facts and in its cursor.
        for digest in {info.graph_digest if info else "", self.cursor.graph} - {""}:
            stored = self.store.graph(digest)
            if self.cursor.version and (stored is None or sha256(stored.body).hexdigest() != digest):
                self._add("thread", "graph", digest, None if stored is None else "another graph")
        try:
            faults = list(self.store.faults(self.thread_id))
            now = self.store.cursor(self.thread_id, unchecked=True)
        except LogCorrupt as error:
            self._add("unreadable", "thread", None, error.message)
            return
        if now is not None and now.version == self.cursor.version:
            for fault in faults:
                self._add("row", fault.field, fault.expected, fault.actual, seq=fault.number)

    def _same(self, name: str, expected: Any) -> None:
        actual = getattr(self.cursor, name)
        allowed = expected if isinstance(expected, tuple) else (expected,)
        if actual not in allowed:
            self._add("cursor", name, allowed[-1], actual, step=self.cursor.head)


def _begun(link: tuple[bytes, bytes] | None, facts: bytes) -> tuple[bytes, bytes] | None:
    return link and (chained(link[0], facts), chained(link[1], facts))


def _steps_by_seq(points: list[Checkpoint]) -> dict[int, int]:
    """The step of each seq, from checkpoints that go on where the one before them ended."""
    steps: dict[int, int] = {}
    for before, point, following in zip([None, *points], points, [*points[1:], None], strict=False):
        joined = before is None or before.last_seq + 1 == point.first_seq
        if joined and (following is None or following.first_seq == point.last_seq + 1):
            steps |= dict.fromkeys(range(point.first_seq, point.last_seq + 1), point.step)
    return steps


_VALUES = ("update_hash", "next_hash")


def verify_tree(
    store: Store,
    thread_id: str,
    graph: CompiledGraph | None = None,
    *,
    strict: bool = False,
    anchors: Sequence[Anchor] = (),
    watch: Callable[[int, int], object] | None = None,
    signers: Signers | None = None,
) -> VerifyReport:
    """Check a thread and the threads of its subgraphs' runs, and change nothing.

    Args:
        graph: the thread's; the threads below are checked with the graphs inside it.
        strict, watch, signers: as for `verify`.
        anchors: where threads stood; those of other threads than these are passed over.

    Raises:
        UnknownThread, UsageError: as `verify`.
        UsageError: no anchor is about the thread.
    """
    if anchors and not anchors_of(store, thread_id, anchors):
        named = ", ".join(sorted({repr(anchor.thread) for anchor in anchors})[:3])
        raise UsageError(
            f"none of these anchors is about thread {thread_id!r}, but about {named}",
            f"see `hitl-tui anchor {thread_id}`",
        )
    report = _verify_tree(store, thread_id, graph, strict=strict, watch=watch, signers=signers)
    for name in (thread_id, *report.threads) if anchors else ():
        mismatches = tuple(moved(store, name, anchors))
        inside = "" if name == thread_id else name
        own = tuple([replace(one, thread=inside) for one in mismatches])
        report = replace(report, mismatches=(*report.mismatches, *own))
    return report


def _verify_tree(
    store: Store,
    thread_id: str,
    graph: CompiledGraph | None,
    *,
    strict: bool,
    watch: Callable[[int, int], object] | None,
    signers: Signers | None,
) -> VerifyReport:
    channels = graph.channels if graph else None
    report = verify(store, thread_id, channels, strict=strict, watch=watch, signers=signers)
    report = replace(report, mismatches=(*_of_store(store), *report.mismatches))
    info, cursor = store.info(thread_id), store.cursor(thread_id, unchecked=True)
    if info is None or cursor is None:
        return report
    try:
        below = inside(store, cursor)
    except LogCorrupt:
        return report  # told of the thread's own log, which alone knows what is below
    for thread in below:
        if _is_missing(store, thread.thread_id):
            report = _without(report, thread, thread_id) if thread.needed else report
            continue
        report = _added(report, thread.thread_id, VerifyReport(tuple(_ownership(store, thread))))
        for part in _verify_one(
            store, thread.thread_id, info, graph, strict=strict, watch=watch, signers=signers
        ):
            report = _added(report, thread.thread_id, part)
    return report


def _of_store(store: Store) -> Iterator[Mismatch]:
    """What is wrong with the store as a whole."""
    try:
        for fault in store.faults(None):
            yield Mismatch("row", fault.number, None, None, fault.field, fault.expected, fault.actual)
    except LogCorrupt as error:
        yield Mismatch("unreadable", None, None, None, "store", None, error.message)


def _ownership(store: Store, inner: ChildThread) -> Iterator[Mismatch]:
    """Whether a thread that made a step is one that ran for it: names alone are no part of the hashes."""
    try:
        info = store.info(inner.thread_id)
        owners = {part.thread_id for part in store.parts(inner.of)}
    except LogCorrupt:
        return  # told of the thread itself
    owner = info.owner.thread_id if info and info.owner else None
    if owner not in owners:
        yield Mismatch("thread", None, inner.step, None, "owner", inner.of, owner)


def _is_missing(store: Store, thread_id: str) -> bool:
    try:
        return store.info(thread_id) is None
    except LogCorrupt:
        return False  # it is there, and what is wrong with it is told


def _without(report: VerifyReport, gone: ChildThread, root: str) -> VerifyReport:
    """The report with a gap: the log of a thread that made a step is not there to be checked."""
    place = "" if gone.of == root else gone.of
    gap = Mismatch("gap", None, gone.step, None, "thread", gone.thread_id, None, place)
    return replace(report, mismatches=(*report.mismatches, gap), missing=(*report.missing, gone.thread_id))


def _verify_one(
    store: Store,
    thread_id: str,
    root: ThreadInfo,
    graph: CompiledGraph | None,
    *,
    strict: bool,
    watch: Callable[[int, int], object] | None,
    signers: Signers | None,
) -> Iterator[VerifyReport]:
    try:
        info = store.info(thread_id)
        own = None
        try:
            own = inner_graph(graph, info.source, root.source) if graph and info else None
        except GraphInvalid as error:
            if strict and info:
                yield _only("node", "subgraph", info.graph_name, error.message)
        channels = own.channels if own else None
        yield verify(
            store, thread_id, channels, strict=strict and own is not None, watch=watch, signers=signers
        )
    except LogCorrupt as error:
        yield _only("unreadable", "thread", None, error.message)


def _only(kind: Kind, field: str, expected: str | None, actual: str | None) -> VerifyReport:
    return VerifyReport((Mismatch(kind, None, None, None, field, expected, actual),))


def _added(report: VerifyReport, thread_id: str, below: VerifyReport) -> VerifyReport:
    mismatches = [replace(mismatch, thread=thread_id) for mismatch in below.mismatches]
    signed = [replace(decision, thread=thread_id) for decision in below.decisions or ()]
    return VerifyReport(
        (*report.mismatches, *mismatches),
        report.records + below.records,
        report.checkpoints + below.checkpoints,
        report.unchecked + below.unchecked,
        tuple(dict.fromkeys((*report.threads, thread_id))),
        report.missing,
        None if report.decisions is None else (*report.decisions, *signed),
    )
