"""Whether the logs of a thread and of the threads below it agree with themselves (SPEC 7, 12)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from hitl_tui.engine.below import threads_below
from hitl_tui.engine.children import inner_graph
from hitl_tui.engine.graph import CompiledGraph
from hitl_tui.engine.records import ThreadInfo
from hitl_tui.engine.store import Store
from hitl_tui.engine.verify import Kind, Mismatch, VerifyReport, verify
from hitl_tui.errors import GraphInvalid, LogCorrupt


def verify_tree(
    store: Store,
    thread_id: str,
    graph: CompiledGraph | None = None,
    *,
    strict: bool = False,
    watch: Callable[[int, int], object] | None = None,
) -> VerifyReport:
    """Check a thread and the threads of its subgraphs' runs, and change nothing.

    Args:
        graph: the thread's; the threads below are checked with the graphs inside it.
        strict, watch: as for `verify`.

    Raises:
        UnknownThread, UsageError: as `verify`.
    """
    channels = graph.channels if graph else None
    report = verify(store, thread_id, channels, strict=strict, watch=watch)
    info, cursor = store.info(thread_id), store.cursor(thread_id)
    if info is None or cursor is None:
        return report
    try:
        below = threads_below(store, cursor)
    except LogCorrupt:
        return report  # told of the thread's own log, which alone knows what is below
    for name in below:
        for part in _verify_one(store, name, info, graph, strict=strict, watch=watch):
            report = _added(report, name, part)
    return report


def _verify_one(
    store: Store,
    thread_id: str,
    root: ThreadInfo,
    graph: CompiledGraph | None,
    *,
    strict: bool,
    watch: Callable[[int, int], object] | None,
) -> Iterator[VerifyReport]:
    try:
        info = store.info(thread_id)
        if info is None:
            # An export carries one thread, so that this alone is no damage.
            yield VerifyReport(missing=(thread_id,))
            return
        try:
            inside = inner_graph(graph, info.source, root.source) if graph else None
        except GraphInvalid as error:
            inside = None
            if strict:
                yield _only("node", "subgraph", info.graph_name, error.message)
        channels = inside.channels if inside else None
        yield verify(store, thread_id, channels, strict=strict and inside is not None, watch=watch)
    except LogCorrupt as error:
        yield _only("unreadable", "thread", None, error.message)


def _only(kind: Kind, field: str, expected: str | None, actual: str | None) -> VerifyReport:
    return VerifyReport((Mismatch(kind, None, None, None, field, expected, actual),))


def _added(report: VerifyReport, thread_id: str, below: VerifyReport) -> VerifyReport:
    found = [replace(one, thread=thread_id) for one in below.mismatches]
    return VerifyReport(
        (*report.mismatches, *found),
        report.records + below.records,
        report.checkpoints + below.checkpoints,
        report.unchecked + below.unchecked,
        tuple(dict.fromkeys((*report.threads, *([] if below.missing else [thread_id])))),
        (*report.missing, *below.missing),
    )
