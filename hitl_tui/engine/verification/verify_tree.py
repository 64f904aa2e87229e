"""Whether the logs of a thread and of the threads below it agree with themselves (SPEC 7, 12)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from hitl_tui.engine.graphs.compiled import CompiledGraph
from hitl_tui.engine.log.signing import Signers
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.subgraphs.below import Inside, inside
from hitl_tui.engine.subgraphs.children import inner_graph
from hitl_tui.engine.verification.anchor import Anchor, about, moved
from hitl_tui.engine.verification.findings import Kind, Mismatch, VerifyReport
from hitl_tui.engine.verification.verify import verify
from hitl_tui.errors import GraphInvalid, LogCorrupt, UsageError


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
    if anchors and not about(store, thread_id, anchors):
        named = ", ".join(sorted({repr(one.thread) for one in anchors})[:3])
        raise UsageError(
            f"none of these anchors is about thread {thread_id!r}, but about {named}",
            f"see `hitl-tui anchor {thread_id}`",
        )
    report = _verify_tree(store, thread_id, graph, strict=strict, watch=watch, signers=signers)
    for name in (thread_id, *report.threads) if anchors else ():
        found = tuple(moved(store, name, anchors))
        inside = "" if name == thread_id else name
        own = tuple([replace(one, thread=inside) for one in found])
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
    for one in below:
        if _is_missing(store, one.thread_id):
            report = _without(report, one, thread_id) if one.needed else report
            continue
        report = _added(report, one.thread_id, VerifyReport(tuple(_ownership(store, one))))
        for part in _verify_one(
            store, one.thread_id, info, graph, strict=strict, watch=watch, signers=signers
        ):
            report = _added(report, one.thread_id, part)
    return report


def _of_store(store: Store) -> Iterator[Mismatch]:
    """What is wrong with the store as a whole."""
    try:
        for fault in store.faults(None):
            yield Mismatch("row", fault.number, None, None, fault.field, fault.expected, fault.actual)
    except LogCorrupt as error:
        yield Mismatch("unreadable", None, None, None, "store", None, error.message)


def _ownership(store: Store, inner: Inside) -> Iterator[Mismatch]:
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


def _without(report: VerifyReport, gone: Inside, root: str) -> VerifyReport:
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
    found = [replace(one, thread=thread_id) for one in below.mismatches]
    signed = [replace(one, thread=thread_id) for one in below.decisions or ()]
    return VerifyReport(
        (*report.mismatches, *found),
        report.records + below.records,
        report.checkpoints + below.checkpoints,
        report.unchecked + below.unchecked,
        tuple(dict.fromkeys((*report.threads, thread_id))),
        report.missing,
        None if report.decisions is None else (*report.decisions, *signed),
    )
