"""The child threads in which subgraphs run: their names, graphs and requests.

Specified in docs/spec/branches.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.graph.compiled import CompiledGraph, Node, SubgraphWork
from hitl_tui.engine.log.outcomes import ErrorInfo
from hitl_tui.engine.log.records import Checkpoint, Cursor, LedgerEntry
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.store import Store, all_threads
from hitl_tui.engine.log.threads import WITHIN, Owner, ThreadInfo, child_id
from hitl_tui.engine.nodes.branches import has_runnable_branch
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.journal import with_branches
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import GraphInvalid, LogCorrupt, NodeFailed, ThreadBusy, UnknownThread

_PAGE = 256


class ChildThread(msgspec.Struct, frozen=True):
    """A thread that ran inside another.

    Attributes:
        thread_id: its name, as its parent has it.
        parent: the thread for which it ran, or that shares the step that it made.
        step: the step of `parent` that it made; None if it has made none, for example while it waits.
        needed: whether `parent` needs it: it made a step, was counted, or waits for an answer.
    """

    thread_id: str
    parent: str
    step: int | None
    needed: bool


def started_children(store: Store, thread_id: str) -> dict[str, ThreadInfo]:
    """Return the threads that a thread has started itself, oldest first, including those that it has left."""
    return {row.info.thread_id: row.info for row in all_threads(store, within=thread_id)}


def threads_of_step(point: Checkpoint) -> list[str]:
    """Return the child threads that made a step."""
    return [outcome.thread for outcome in point.branches if outcome.thread]


def descendants(
    store: Store,
    cursor: Cursor,
    ancestors: frozenset[str] = frozenset(),
    *,
    steps: Sequence[tuple[str, int]] | None = None,
    with_left: bool = True,
) -> list[ChildThread]:
    """Return all descendants of a thread, each before its own descendants; some may not be in the store.

    For a fork, the threads of the shared steps are included. A step that can't be read names no thread. If
    the cursor of a thread can't be read, only threads that name it as their parent are found. A thread that
    would be inside itself is left out.

    Args:
        ancestors: the threads that contain this one.
        steps: the threads that its steps name, each with the step, oldest first; None reads them.
        with_left: also threads that it has started and that no step names.
    """
    children: dict[str, ChildThread] = {}
    of_steps = _threads_of_steps(store, cursor) if steps is None else reversed(steps)
    for thread_id, step, needed in (*((*pair, True) for pair in of_steps), *_waited_for(cursor)):
        children.setdefault(thread_id, ChildThread(thread_id, cursor.thread_id, step, needed))
    for thread_id in store.inner_names(cursor.thread_id) if with_left else ():
        children.setdefault(thread_id, ChildThread(thread_id, cursor.thread_id, None, needed=False))
    below: dict[str, ChildThread] = {}
    around = ancestors | {cursor.thread_id}
    for thread_id in sorted(children.keys() - around):
        below.setdefault(thread_id, children[thread_id])
        for child in descendants(store, readable_cursor(store, thread_id), around):
            below.setdefault(child.thread_id, child)
    return list(below.values())


def threads_of(store: Store, cursor: Cursor) -> set[str]:
    """Return the threads that the steps and the cursor of a thread name."""
    return {name for name, _ in _threads_of_steps(store, cursor)} | threads_of_cursor(cursor)


def threads_of_cursor(cursor: Cursor) -> set[str]:
    """Return the threads that a cursor names: those that it waits for."""
    return {name for name, _, _ in _waited_for(cursor)}


def readable_cursor(store: Store, thread_id: str) -> Cursor:
    """Return the cursor of a thread, as far as it can be read."""
    try:
        return store.cursor(thread_id, unchecked=True) or Cursor(thread_id)
    except LogCorrupt:
        return Cursor(thread_id)


def _threads_of_steps(store: Store, cursor: Cursor) -> Iterator[tuple[str, int]]:
    """Yield the threads that the steps of a thread name, each with the step, newest first."""
    before = cursor.head + 1
    while before > 0:
        points, before = readable_checkpoints(store, cursor.thread_id, before)
        for point in points:
            yield from ((name, point.step) for name in threads_of_step(point))


def readable_checkpoints(store: Store, thread_id: str, before: int) -> tuple[list[Checkpoint], int]:
    """Return a page of readable checkpoints before a step, newest first, and the page's first step."""
    try:
        points = store.checkpoints(thread_id, before, _PAGE)
        return points, points[-1].step if points else 0
    except LogCorrupt:
        first = max(0, before - _PAGE)
    known: list[Checkpoint] = []
    for step in range(before - 1, first - 1, -1):
        with suppress(LogCorrupt):
            if (point := store.checkpoint(thread_id, step)) is not None:
                known.append(point)
    return known, first


def _waited_for(cursor: Cursor) -> Iterator[tuple[str, int | None, bool]]:
    """Yield the threads that a cursor waits for or has started, with whether it needs them."""
    for request in cursor.pending:
        if request.thread:
            yield request.thread, None, True
    for link in (state.child for state in cursor.branches if state.child):
        # It is noted before it is made, so it may not exist as long as it has spent nothing.
        yield link.thread_id, None, bool(link.tokens_in or link.tokens_out or link.cost)


def graph_of_child(
    graph: CompiledGraph, source: Mapping[str, Any], outer: Mapping[str, Any] | None = None
) -> CompiledGraph:
    """Return the graph of a thread inside the graph that its source builds.

    Args:
        outer: the source of `graph`, if that is a subgraph itself.

    Raises:
        GraphInvalid: the graph no longer has the subgraph.
    """
    for name in source.get(WITHIN, ())[len((outer or {}).get(WITHIN, ())) :]:
        inside = graph_inside(graph, name)
        if inside is None:
            raise GraphInvalid(
                f"the graph {graph.name!r} has no subgraph {name!r}, in which the thread ran",
                "give the graph as it was",
            )
        graph = inside
    return graph


def graph_inside(graph: CompiledGraph, node: str) -> CompiledGraph | None:
    """Return the graph of a subgraph's node; None if there is no such node, or it is not a subgraph."""
    compiled = graph.nodes.get(node)
    return compiled.work.graph if compiled is not None and isinstance(compiled.work, SubgraphWork) else None


def new_child_id(session: Session, node: Node) -> str:
    """Return `parent/node#n` for a new child.

    N counts the visits of the node, and taken names are skipped.
    """
    n = session.cursor.visits.get(node.name, 0) + 1
    while True:
        name = child_id(session.thread_id, f"{node.name}#{n}")
        taken = session.store.info(name) is not None if session.store else name in session.children
        if not taken:
            return name
        n += 1


def open_child(session: Session, node: Node, thread_id: str) -> Session:
    """Open the child thread, up to date; one that does not exist yet is made by its first commit."""
    assert isinstance(node.work, SubgraphWork)
    child = session.children.get(thread_id)
    if child is not None and child.graph is node.work.graph:
        child.signer = session.signer
        child.reload()
        return child
    if session.store and session.store.info(thread_id) is not None:
        child = Session.open(
            node.work.graph, session.store, thread_id, clock=session.clock, signer=session.signer
        )
    else:
        source = {**session.info.source, WITHIN: [*session.info.source.get(WITHIN, ()), node.name]}
        owner = Owner(session.thread_id, node.name)
        child = Session.new(
            node.work.graph,
            session.store,
            thread_id,
            source=source,
            owner=owner,
            clock=session.clock,
            signer=session.signer,
        )
    session.children[thread_id] = child
    return child


def waiting_child(session: Session) -> Session | None:
    """Return the child thread that a thread waits for, or None."""
    link = session.cursor.child
    kind, _, name = session.cursor.position.partition(":")
    node = session.graph.nodes.get(name)
    if link is None or kind != "node" or node is None or not isinstance(node.work, SubgraphWork):
        return None
    child = open_child(session, node, link.thread_id)
    return child if child.exists or session.store is None else None


def requests_of_child(session: Session, child: Session) -> list[Request]:
    """Return the child's requests as its parent asks them; their `thread` says where answers go."""
    node = session.cursor.position.partition(":")[2]
    return [
        replace(
            request,
            node=node,
            when="inside",
            step=session.cursor.head,
            path=f"{node}/{request.path or request.node}",
            payload=_with_subject(child, request),
            subject=None,
            thread=child.thread_id,
            thread_step=request.step,
        )
        for request in child.cursor.pending
    ]


def refresh(session: Session, ledger: Sequence[LedgerEntry] = (), *, runs_next: bool = False) -> None:
    """Update the parent's requests to what its child asks now: the child may have been changed on its own.

    A child that failed or was cancelled fails the parent at its node. Resuming runs that node again: it
    continues where the child failed, or starts another child instead of a cancelled one.

    Args:
        runs_next: the node runs next, and handles the end of its child itself.
    """
    child = waiting_child(session)
    if child is not None and outdated(child):
        with suppress(ThreadBusy), child.writing():
            refresh(child, runs_next=runs_next)
    requests = requests_of_child(session, child) if child else list(session.cursor.pending)
    ended = child is not None and not runs_next and _ended_badly(session, child)
    if tuple(requests) == session.cursor.pending and not ledger and not ended:
        return
    from hitl_tui.engine.thread.interrupts import with_request

    cursor = replace(session.cursor, pending=())
    for request in requests:
        cursor = with_request(cursor, request)
    if session.cursor.pending and not requests:
        cursor = replace(cursor, status="waiting", reason="paused")
    if child is not None and ended:
        cursor, entry = _failed_with_child(session, child, journal.after_entries(cursor, ledger))
        ledger = [*ledger, entry]
    session.commit_cursor(cursor, ledger)


def outdated(session: Session) -> bool:
    """Whether others have changed the child that a thread waits for, so that the thread must be updated."""
    cursor = session.cursor
    if cursor.status != "waiting" or cursor.reason == "limit" or cursor.child is None:
        return False
    if cursor.pending and not any(request.thread for request in cursor.pending):
        return False
    child = waiting_child(session)
    if child is None:
        return False
    asks_else = tuple(requests_of_child(session, child)) != cursor.pending
    return asks_else or _ended_badly(session, child) or outdated(child)


def _ended_badly(session: Session, child: Session) -> bool:
    """Whether a child, for which a thread waits, has failed or was cancelled itself.

    A child that a limit has stopped does not count: it continues once the limit is raised, here or there.
    """
    ended = child.cursor
    failed = ended.status == "failed" and ended.reason != "limit"
    return session.cursor.status == "waiting" and (failed or ended.status == "cancelled")


def _failed_with_child(session: Session, child: Session, cursor: Cursor) -> tuple[Cursor, LedgerEntry]:
    """Return the cursor of a thread whose child has ended badly, and its ledger entry."""
    node = cursor.position.partition(":")[2]
    ended = child.cursor
    if ended.status == "failed":
        error, reason = ended.error, ended.reason
    else:
        why, hint = describe_cancelled(child)
        message = f"node {node!r}: its thread {child.thread_id!r} {why}"
        error, reason = ErrorInfo(node, cursor.attempt, NodeFailed.title, message, hint), "node_error"
        cursor = with_branches(cursor)
    cursor = replace(cursor, status="failed", reason=reason, error=error)
    note = error.message if error else f"{child.thread_id} failed: {reason}"
    return cursor, journal.ledger_entry(cursor, "failed", at=session.clock(), note=note, data={"node": node})


def describe_cancelled(child: Session) -> tuple[str, str]:
    """Describe how a child was cancelled, and how to continue without it."""
    stops = (
        [entry for entry in child.store.ledger(child.thread_id) if entry.kind == "cancel"]
        if child.store
        else []
    )
    by = f" by {stops[-1].actor}" if stops and stops[-1].actor else ""
    note = f": {stops[-1].note}" if stops and stops[-1].note else ""
    why = {"rejected": " (rejected)", "rolled_back": " (rolled back)"}.get(child.cursor.reason, f"{by}{note}")
    return f"was cancelled{why}", "resuming starts another one; an edit with as_node continues without it"


def relay(
    session: Session, request: Request, act: Callable[[Session], Any], entry: Callable[[], LedgerEntry]
) -> None:
    """Let the child's thread decide about its own request, and update the parent's requests.

    Raises:
        AnswerRefused: the child's thread has refused it.
        SigningFailed: neither thread has decided anything.
    """
    child = waiting_child(session)
    if child is None or child.thread_id != request.thread:
        raise UnknownThread(
            f"there is no thread {request.thread!r} to take the answer", "resume the thread that asked"
        )
    relayed = entry()
    with child.writing():
        act(child)
    refresh(session, [relayed])


def can_continue(session: Session) -> bool:
    """Whether something can run although requests wait: other branches, here or in a subgraph."""
    child = waiting_child(session)
    if child is None:
        return has_runnable_branch(session.cursor)
    return not child.cursor.pending or can_continue(child)


def abandon(session: Session) -> None:
    """End the child thread of a visit that the parent has left: nothing waits for it."""
    child = waiting_child(session)
    if child is None or child.cursor.status in ("completed", "cancelled"):
        return
    with suppress(ThreadBusy), child.writing():
        abandon(child)
        note = f"{session.thread_id} has continued without it"
        entry = journal.ledger_entry(child.cursor, "cancel", at=child.clock(), note=note)
        cursor = replace(child.cursor, status="cancelled", reason="user", pending=())
        child.commit_cursor(cursor, [entry])


def _with_subject(child: Session, request: Request) -> Any:
    """Return the payload of a request with the child's subject, since the parent has no such channel."""
    if request.policy == "on_taint":
        return _with_values(child, request.payload)
    name = request.subject
    known = child.graph.channels.get(name) if name else None
    if name is None or known is None or known.visibility == "private":
        return request.payload
    value = thaw(child.state.values.get(name))
    if request.payload is None:
        return {name: value}
    return {name: value, **request.payload} if isinstance(request.payload, dict) else request.payload


def _with_values(child: Session, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the payload of a taint policy's request with the values of its channels, except private ones."""
    if "values" in payload:  # the child's request comes from its own child
        return dict(payload)
    channels, values = child.graph.channels, child.state.values
    names = [about["channel"] for about in payload["channels"]]
    public = [name for name in names if name in channels and channels[name].visibility != "private"]
    return {**payload, "values": {name: thaw(values.get(name)) for name in public}}
