"""Checks the logs of a thread and of its child threads.

Specified in docs/spec/branches.md and docs/spec/log.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from hashlib import sha256
from typing import Any, NamedTuple

from msgspec.structs import replace

from hitl_tui.engine.audit.anchor import Anchor, anchors_of, differences_from_anchors
from hitl_tui.engine.audit.findings import Kind, Mismatch, VerifyReport
from hitl_tui.engine.audit.gate_trace import GateTrace
from hitl_tui.engine.audit.processes import Faults, Processes, processes_for
from hitl_tui.engine.audit.steps import (
    WINDOW,
    RangeReport,
    Seam,
    Task,
    Watch,
    check_range,
    gate_mismatches,
    mismatch,
    seam_before,
    with_facts,
)
from hitl_tui.engine.graph.compiled import CompiledGraph
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.records import CHANNELS, GRAPH, Cursor, LedgerEntry
from hitl_tui.engine.log.signing import DECISIONS, Signature, SignedDecision, Signers
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.nodes.children import ChildThread, descendants, graph_of_child, readable_cursor
from hitl_tui.engine.state.canonical import canonical
from hitl_tui.engine.state.channel import BoundChannel
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.thread.hashes import chained, cursor_hash, ledger_hash, signed_words
from hitl_tui.engine.thread.logged import chained_cursor_hash, ledger_links, request_mismatch
from hitl_tui.engine.thread.run_inputs import inputs_at, inputs_at_steps
from hitl_tui.errors import GraphInvalid, LogCorrupt, UnknownThread, UsageError
from hitl_tui.shell import command_line

_VOTES = ("answer", "vote")


def verify(
    store: Store,
    thread_id: str,
    channels: Mapping[str, BoundChannel] | None = None,
    *,
    strict: bool = False,
    watch: Watch | None = None,
    signers: Signers | None = None,
    since: int = 0,
    processes: Processes | None = None,
) -> VerifyReport:
    """Check a thread's log and change nothing.

    Args:
        channels: those of the graph; without them defaults are taken from the log, as far as it has them.
        strict: reduce every update again with the current reducers, including custom ones; and require an
            answer in the ledger for every gate that the thread has passed.
        signers: checks the signatures of decisions; None checks only that required ones exist.
        watch: called now and then with (steps checked, all steps); an error that it raises ends the check.
        since: check only this step and those after it; earlier ones are used as they are stored.
        processes: check ranges of steps in these at the same time.

    Raises:
        UnknownThread: there is no such thread.
        UsageError: strict without channels or with `since`, or there is no such step.
    """
    options = _Options(strict, watch, signers, since, processes)
    return _verified(store, thread_id, channels, options).report


class _Options(NamedTuple):
    """Options of a check: see `verify`."""

    strict: bool = False
    watch: Watch | None = None
    signers: Signers | None = None
    since: int = 0
    processes: Processes | None = None
    answers: bool = False


class _Verified(NamedTuple):
    """The report of a check, and the child threads that the thread's steps name, each with the step."""

    report: VerifyReport
    inner: tuple[tuple[str, int], ...]


def _verified(
    store: Store, thread_id: str, channels: Mapping[str, BoundChannel] | None, options: _Options
) -> _Verified:
    cursor = store.cursor(thread_id, unchecked=True)
    if cursor is None:
        raise UnknownThread(f"there is no thread {thread_id!r}", "list the threads to see what there is")
    if options.strict and channels is None:
        raise UsageError("a strict check needs the graph's channels", "verify with the graph")
    if options.strict and options.since:
        raise UsageError("a strict check needs the whole log", "leave out --since, or --strict")
    if options.since > max(cursor.head, 0):
        raise UsageError(f"thread {thread_id!r} has no step {options.since}", f"its newest is {cursor.head}")
    return _Check(store, cursor, channels, options).run()


class _Check:
    """The check of one thread."""

    def __init__(
        self, store: Store, cursor: Cursor, channels: Mapping[str, BoundChannel] | None, options: _Options
    ) -> None:
        self.store = store
        self.thread_id = cursor.thread_id
        self.cursor = cursor
        self.channels = channels
        self.options = options
        # The ledger; gates are followed with it if it is complete.
        self.decided: list[LedgerEntry] = []
        self.signed: list[SignedDecision] = []
        self.mismatches: list[Mismatch] = []
        self.parts = store.parts(self.thread_id)
        # The number of a decision by its ledger hash; None if the ledger is not known.
        self.decision_by_hash: dict[bytes, int] | None = {}

    def run(self) -> _Verified:
        head, options = self.cursor.head, self.options
        processes = options.processes
        faults = processes.faults(self.thread_id, options.since) if processes else None
        has_graph = self._threads()
        ledger = self._ledger()
        gates = None
        if (options.strict or options.answers) and self.decision_by_hash is not None:
            gates = GateTrace(self.store, self.parts, self.decided, mirror=not options.strict)
        reports = list(self._ranges(has_graph, gates))
        for report in reports:
            self.mismatches += report.mismatches
        seam = reports[-1].end if reports else Seam.first(self.channels)
        for part in self.parts:
            if part.after_step == head:
                seam = replace(
                    seam,
                    previous=with_facts(seam.previous, part.facts),
                    link=with_facts(seam.link, part.facts),
                )
        self.mismatches += gate_mismatches(head, gates.end(self.cursor) if gates else ())
        self.mismatches += ledger
        self._cursor(seam)
        self._faults(faults.result() if faults else Faults.of(self.store, self.thread_id, options.since))
        verified = VerifyReport(
            tuple(self.mismatches),
            sum(report.records for report in reports),
            sum(report.checkpoints for report in reports),
            sum(report.unchecked for report in reports),
            decisions=tuple(self.signed) if options.signers else None,
            since=options.since,
            notes=tuple(
                f"decision {entry.n}: {entry.note}" for entry in self.decided if entry.kind == "unused"
            ),
        )
        return _Verified(verified, tuple([pair for report in reports for pair in report.inner]))

    def _ranges(self, has_graph: bool, gates: GateTrace | None) -> Iterator[RangeReport]:
        """Yield the checks of all steps, range by range; each continues where the one before it ended."""
        whole = Task(
            thread_id=self.thread_id,
            first=self.options.since,
            last=self.cursor.head,
            entry=Seam.first(self.channels),
            declared=self.channels is not None,
            private=Seam.first(self.channels).private,
            new_channels_at=self._new_channels_at(),
            decision_by_hash=self.decision_by_hash,
            has_graph=has_graph,
        )
        if whole.first:
            try:
                whole = replace(whole, entry=seam_before(self.store, replace(whole, entry=None)))
            except LogCorrupt:  # no seam to start from
                whole = replace(whole, first=0)
        if whole.first > whole.last:
            return
        strict = self.channels if self.options.strict else None
        processes = None if gates is not None else self.options.processes
        tasks = _split(whole, processes.ranges(whole.last + 1 - whole.first) if processes else 1)
        seam = whole.entry
        assert seam is not None
        with ExitStack() as stack:
            parallel_checks = (
                stack.enter_context(processes.checks(tasks, self._report_progress)) if processes else None
            )
            for index, task in enumerate(tasks):
                report = parallel_checks.result(index) if parallel_checks else None
                if report is None or not report.follows(seam):
                    report = check_range(
                        self.store,
                        replace(task, entry=seam),
                        channels=strict,
                        gates=gates,
                        watch=parallel_checks.report_progress if parallel_checks else self._report_progress,
                    )
                yield report
                seam = report.end_after(seam)

    def _report_progress(self, step: int) -> None:
        """Report the progress of the check."""
        if self.options.watch:
            first = self.options.since
            self.options.watch(step - first, self.cursor.head + 1 - first)

    def _new_channels_at(self) -> frozenset[int]:
        """Return the steps from which on there are other channels than before."""
        # The given graph may not be the one with which the thread started.
        begins = {0} if self.channels is not None else set()
        return frozenset(begins | {entry.step for entry in self.decided if entry.kind == CHANNELS})

    def _add(self, kind: Kind, field: str, expected: Any, actual: Any, **place: Any) -> None:
        self.mismatches.append(mismatch(kind, field, expected, actual, **place))

    # -- besides the steps --------------------------------------------------------------------------

    def _threads(self) -> bool:
        """Check what is fixed about the thread and its parents.

        Return whether it was started with a graph.
        """
        has_graph = False
        for thread_id in dict.fromkeys(part.thread_id for part in self.parts):
            info, facts = self.store.info(thread_id), self.store.facts(thread_id)
            if info is not None and info.graph_digest and info.parent is None:
                has_graph = self.cursor.head >= 0
            if info is not None and info.facts_hash != facts:
                self._add("thread", "facts_hash", facts, info.facts_hash)
                self.mismatches[-1] = replace(
                    self.mismatches[-1], thread="" if thread_id == self.thread_id else thread_id
                )
        return has_graph

    def _ledger(self) -> list[Mismatch]:
        """Check the decisions, and the requests that wait for one."""
        before, self.mismatches = self.mismatches, []
        try:
            self._decisions(self.store.ledger(self.thread_id))
        except LogCorrupt as error:
            self._add("unreadable", "ledger", None, error.message)
            self.decision_by_hash = None
        mismatches, self.mismatches = self.mismatches, before
        return mismatches

    def _decisions(self, entries: list[LedgerEntry]) -> None:
        stored = true = b""
        n = 0
        now = self.store.cursor(self.thread_id, unchecked=True)
        if now is not None and now.version != self.cursor.version:
            # The thread has continued meanwhile: new entries are for the next check.
            entries = entries[: self.cursor.ledger_n]
        decision_by_hash = {}
        gaps = len(self.mismatches)
        for entry in entries:
            for part in self.parts:
                if part.after_entry == n:
                    stored, true = chained(stored, part.facts), chained(true, part.facts)
                    decision_by_hash[stored] = decision_by_hash[true] = n
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
                # Only the hash to which it is chained was changed, which was reported there.
                own = entry.hash
            stored, true = entry.hash, own
            decision_by_hash[stored] = decision_by_hash[true] = n
        for part in self.parts:
            if part.after_entry == n:
                stored, true = chained(stored, part.facts), chained(true, part.facts)
                decision_by_hash[stored] = decision_by_hash[true] = n
        self._signatures(entries)
        lost = any(mismatch.kind == "gap" for mismatch in self.mismatches[gaps:])
        self.decision_by_hash = None if lost else decision_by_hash
        self.decided = entries
        for request in self.cursor.pending:
            if (wrong := request_mismatch(request, entries)) is not None:
                self._add("request", request.id, *wrong, step=request.step)
        for name, expected in (("ledger_n", n), ("ledger_hash", (stored, true))):
            self._same(name, expected)

    def _signatures(self, entries: list[LedgerEntry]) -> None:
        self.mismatches += _unsigned_answers(entries)
        if self.options.signers:
            self.signed = _decisions(entries, self.options.signers)
            self.mismatches += _wrong_signatures(self.signed)

    def _cursor(self, seam: Seam) -> None:
        self._same("last_seq", seam.seq)
        if seam.previous is not None:
            self._same("last_record_hash", seam.previous)
        if seam.link is not None:
            self._same("checkpoint_hash", seam.link)
        self._chained_cursor()
        if any(mismatch.kind in ("cursor", "request", "thread") for mismatch in self.mismatches):
            return
        try:
            self.store.cursor(self.thread_id)
        except LogCorrupt as error:
            self._add("cursor", "digest", None, error.message, step=self.cursor.head)

    def _chained_cursor(self) -> None:
        """Compare the cursor with the log: its inputs, and its hash."""
        cursor, entries = self.cursor, self.decided
        if self.decision_by_hash is None or len(entries) != cursor.ledger_n:
            return  # the check of the ledger reports it
        for name, given in inputs_at(cursor.head, inputs_at_steps(entries), cursor).items():
            if canonical(thaw(given)) != canonical(thaw(getattr(cursor, name))):
                self._add("cursor", name, PRIVATE, PRIVATE, step=cursor.head)
        info = self.store.info(self.thread_id)
        try:
            newest = self.store.checkpoint(self.thread_id, cursor.head) if cursor.head >= 0 else None
        except LogCorrupt:
            return  # the check of the steps reports it
        if info is not None and (newest is not None or cursor.head < 0):
            last = entries[-1] if entries else None
            links = ledger_links(last, self.parts)
            should = chained_cursor_hash(info, cursor, newest, last, links)
            if (own := cursor_hash(cursor)) != should:
                self._add("cursor", "cursor_hash", should, own, step=cursor.head)

    def _faults(self, faults: Faults) -> None:
        """Report wrong rows outside the log."""
        info = self.store.info(self.thread_id)
        # A graph is named by its hash, which is in the thread's facts and in its cursor.
        named = {info.graph_digest if info else "", self.cursor.graph} - {""}
        for digest in sorted(named | self._earlier_graphs()):
            try:
                stored = self.store.graph(digest)
            except LogCorrupt as error:
                self._add("unreadable", "graph", digest, error.message)
                continue
            # An export has only the first and the newest graph, so others may be missing.
            is_missing = stored is None and digest in named and self.cursor.version
            if is_missing or (stored is not None and sha256(stored.body).hexdigest() != digest):
                self._add("thread", "graph", digest, None if stored is None else "another graph")
        if faults.unreadable is not None:
            self._add("unreadable", "thread", None, faults.unreadable)
        elif faults.version in (None, self.cursor.version):
            for fault in faults.faults:
                self._add("row", fault.field, fault.expected, fault.actual, seq=fault.number)

    def _earlier_graphs(self) -> set[str]:
        """Return the graphs on which the thread ran before, by the ledger."""
        data = [entry.data for entry in self.decided if entry.kind == GRAPH and isinstance(entry.data, dict)]
        return {str(facts.get(name)) for facts in data for name in ("was", "is")} - {""}

    def _same(self, name: str, expected: Any) -> None:
        actual = getattr(self.cursor, name)
        allowed = expected if isinstance(expected, tuple) else (expected,)
        if actual not in allowed:
            self._add("cursor", name, allowed[-1], actual, step=self.cursor.head)


def _split(whole: Task, count: int) -> list[Task]:
    """Split a range into consecutive ones; only the first has an entry."""
    if count == 1:
        return [whole]
    steps = -(-(whole.last + 1 - whole.first) // count)
    steps += -steps % WINDOW
    firsts = [whole.first, *range((whole.first // WINDOW) * WINDOW + steps, whole.last + 1, steps)]
    lasts = [*(first - 1 for first in firsts[1:]), whole.last]
    return [
        replace(whole, first=first, last=last, entry=None if index else whole.entry)
        for index, (first, last) in enumerate(zip(firsts, lasts, strict=True))
    ]


def verify_tree(
    store: Store,
    thread_id: str,
    graph: CompiledGraph | None = None,
    *,
    strict: bool = False,
    anchors: Sequence[Anchor] = (),
    watch: Watch | None = None,
    signers: Signers | None = None,
    since: int = 0,
    answers: bool = False,
) -> VerifyReport:
    """Check a thread and its child threads, and change nothing.

    A long thread of a store that other processes can read is checked on all cores.

    Args:
        graph: that of the thread; child threads are checked with its subgraphs.
        strict, watch, signers: as for `verify`.
        anchors: anchors of these threads; others are ignored.
        since: check only this step and later ones, relying on an anchor at this step: earlier steps and their
            child threads, and the store as a whole, are not checked.
        answers: for a thread that another engine runs, require an answer for every gate that it has passed,
            as `strict` does, but reduce nothing again.

    Raises:
        UnknownThread, UsageError: those of `verify`.
        UsageError: no anchor is about the thread, or about that step.
    """
    known = anchors_of(store, thread_id, anchors) if anchors else ()
    if anchors and not known:
        named = ", ".join(sorted({repr(anchor.thread) for anchor in anchors})[:3])
        raise UsageError(
            f"none of these anchors is about thread {thread_id!r}, but about {named}",
            f"see `{command_line('anchor', thread_id)}`",
        )
    if since and all(anchor.step != since for anchor in known):
        steps = ", ".join(str(step) for step in sorted({anchor.step for anchor in known})[-3:])
        raise UsageError(
            f"no anchor says where thread {thread_id!r} was at step {since}",
            f"give --since one of the steps that the anchors are about: {steps}"
            if known
            else "give the anchor of that step with --anchor: earlier steps are then trusted",
        )
    options = _Options(strict, watch, signers, since, answers=answers)
    report = _verify_tree(store, thread_id, graph, options)
    for name in (thread_id, *report.threads) if anchors else ():
        try:
            mismatches = tuple(differences_from_anchors(store, name, anchors))
        except LogCorrupt:
            continue  # the check of that thread reports it
        inside = "" if name == thread_id else name
        own = tuple([replace(mismatch, thread=inside) for mismatch in mismatches])
        report = replace(report, mismatches=(*report.mismatches, *own))
    return report


def _verify_tree(
    store: Store, thread_id: str, graph: CompiledGraph | None, options: _Options
) -> VerifyReport:
    with processes_for(store, readable_cursor(store, thread_id).head - options.since) as processes:
        whole = processes.faults(None) if processes and not options.since else None
        channels = graph.channels if graph else None
        try:
            report, named = _verified(store, thread_id, channels, options._replace(processes=processes))
        except LogCorrupt as error:
            report, named = _only("unreadable", "thread", None, error.message), ()
        if not options.since:
            faults = whole.result() if whole else Faults.of(store, None)
            store_wide = (*_of_store(faults), *_store_ledger(store))
            report = replace(report, mismatches=(*store_wide, *report.mismatches))
    cursor = readable_cursor(store, thread_id)
    # In a log with findings, the steps may name other child threads than the check has found.
    checked = named if options.since or report.ok else None
    for thread in descendants(store, cursor, steps=checked, with_left=not options.since):
        if _is_missing(store, thread.thread_id):
            report = _without(report, thread, thread_id) if thread.needed else report
            continue
        report = _added(report, thread.thread_id, VerifyReport(tuple(_ownership(store, thread))))
        for part in _verify_one(store, thread.thread_id, thread_id, graph, options._replace(since=0)):
            report = _added(report, thread.thread_id, part)
    return report


def _of_store(faults: Faults) -> Iterator[Mismatch]:
    """Yield errors in the store as a whole."""
    for fault in faults.faults:
        yield Mismatch("row", fault.number, None, None, fault.field, fault.expected, fault.actual)
    if faults.unreadable is not None:
        yield Mismatch("unreadable", None, None, None, "store", None, faults.unreadable)


def _store_ledger(store: Store) -> Iterator[Mismatch]:
    """Yield errors in the ledger of deleted threads."""
    try:
        entries = store.store_ledger()
    except LogCorrupt as error:
        yield Mismatch("unreadable", None, None, None, "store_ledger", None, error.message)
        return
    previous = b""
    for n, entry in enumerate(entries, 1):
        own = ledger_hash(entry)
        for field, expected, actual in (
            ("n", n, entry.n),
            ("prev_hash", previous, entry.prev_hash),
            ("hash", own, entry.hash),
        ):
            if expected != actual:
                yield mismatch("ledger", f"store_ledger.{field}", expected, actual, seq=n)
        previous = entry.hash


def _ownership(store: Store, inner: ChildThread) -> Iterator[Mismatch]:
    """Check that a child thread that made a step belongs to it: names alone are not part of the hashes."""
    try:
        info = store.info(inner.thread_id)
        owners = {inner.parent, *(part.thread_id for part in store.parts(inner.parent))}
    except LogCorrupt:
        return  # reported by the check of the thread itself
    owner = info.owner.thread_id if info and info.owner else None
    if owner not in owners:
        yield Mismatch("thread", None, inner.step, None, "owner", inner.parent, owner)


def _is_missing(store: Store, thread_id: str) -> bool:
    try:
        return store.info(thread_id) is None
    except LogCorrupt:
        return False  # it exists, and its errors are reported


def _without(report: VerifyReport, gone: ChildThread, root: str) -> VerifyReport:
    """Return the report with a gap: the log of a child thread that made a step is missing."""
    place = "" if gone.parent == root else gone.parent
    gap = Mismatch("gap", None, gone.step, None, "thread", gone.thread_id, None, place)
    return replace(report, mismatches=(*report.mismatches, gap), missing=(*report.missing, gone.thread_id))


def _verify_one(
    store: Store, thread_id: str, root_id: str, graph: CompiledGraph | None, options: _Options
) -> Iterator[VerifyReport]:
    try:
        info, cursor = store.info(thread_id), store.cursor(thread_id, unchecked=True)
        root = _readable_info(store, root_id)
        own = None
        try:
            own = graph_of_child(graph, info.source, root.source) if graph and info and root else None
        except GraphInvalid as error:
            if options.strict and info:
                yield _only("node", "subgraph", info.graph_name, error.message)
        with processes_for(store, cursor.head if cursor else 0) as processes:
            how = options._replace(strict=options.strict and own is not None, processes=processes)
            report = _verified(store, thread_id, own.channels if own else None, how).report
        yield report
    except LogCorrupt as error:
        yield _only("unreadable", "thread", None, error.message)


def _readable_info(store: Store, thread_id: str) -> ThreadInfo | None:
    try:
        return store.info(thread_id)
    except LogCorrupt:
        return None  # the check of that thread reports it


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
        report.since,
        (*report.notes, *(f"{thread_id}: {note}" for note in below.notes)),
    )


def _unsigned_answers(ledger: Iterable[LedgerEntry]) -> list[Mismatch]:
    """Yield answers that are not signed although their requests require it."""
    wanted: set[str | None] = set()
    mismatches = []
    for entry in ledger:
        if entry.kind == "request" and isinstance(entry.data, Mapping) and entry.data.get("signed"):
            wanted.add(entry.request_id)
        elif entry.kind in _VOTES and entry.request_id in wanted and not entry.signature:
            mismatches.append(_signature_finding(entry, "signature", "signed", "not signed"))
    return mismatches


def _decisions(ledger: Sequence[LedgerEntry], signers: Signers) -> list[SignedDecision]:
    """Yield every decision of a ledger, with what is known about its signature."""
    return [
        SignedDecision(
            n=entry.n,
            kind=entry.kind,
            step=entry.step,
            request=entry.request_id,
            actor=entry.actor,
            account=entry.account,
            at=entry.at,
            found=signers.check(signed_words(entry), entry.signature, entry.actor, entry.at)
            if entry.signature
            else Signature("unsigned"),
        )
        for entry in ledger
        if entry.signature or entry.kind in DECISIONS
    ]


def _wrong_signatures(signed: Iterable[SignedDecision]) -> list[Mismatch]:
    """Yield findings about wrong signatures."""
    mismatches = []
    for decision in signed:
        if decision.found.verdict == "wrong":
            mismatches.append(
                _signature_finding(decision, "signature", "of this decision", "of something else")
            )
        elif decision.found.verdict == "unknown":
            mismatches.append(
                _signature_finding(decision, "key", "that of a known signer", decision.found.key or None)
            )
        elif decision.found.verdict == "other":
            mismatches.append(_signature_finding(decision, "signer", decision.actor, decision.found.signer))
    return mismatches


def _signature_finding(
    decision: LedgerEntry | SignedDecision, field: str, expected: str | None, actual: str | None
) -> Mismatch:
    return Mismatch("signature", decision.n, decision.step, None, field, expected, actual)
