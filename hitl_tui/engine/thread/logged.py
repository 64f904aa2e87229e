"""A thread as its log has it, checked: for viewing it without building its graph.

Specified in docs/spec/log.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from hitl_tui.engine.graph.description import GraphInfo
from hitl_tui.engine.log.events import Progress
from hitl_tui.engine.log.records import CALL, Checkpoint, Cursor, LedgerEntry, Limits
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import Part, ThreadInfo
from hitl_tui.engine.state.channel import RUN_INPUTS, ChannelInfo
from hitl_tui.engine.state.frozen import freeze
from hitl_tui.engine.state.schema import type_word
from hitl_tui.engine.thread.hashes import chained, checkpoint_hash, cursor_hash, ledger_hash, pending_hash
from hitl_tui.engine.thread.rebuild import checked_state, state_at
from hitl_tui.errors import LogCorrupt, UnknownThread
from hitl_tui.shell import command_line

_STEPS = 256
"""Steps read at a time."""
_BINDS = ("request", "rebound", "vote", "handed_over", "escalated")
_ENDS = ("answer", "timeout", "withdrawn", "reopened")


def checked_cursor(store: Store, thread_id: str) -> tuple[ThreadInfo, Cursor]:
    """Return a thread's facts and cursor, after checking them against the newest step and the decisions.

    Raises:
        UnknownThread: there is no such thread.
        LogCorrupt: something was changed; says what.
    """
    info, cursor = store.info(thread_id), store.cursor(thread_id)
    if info is None or cursor is None:
        raise UnknownThread(f"there is no thread {thread_id!r}", "see `hitl-tui threads`")
    if store.facts(thread_id) != info.facts_hash:
        raise _changed(thread_id, "what is fixed about it (its graph, where it was forked, who began it)")
    newest = _check_head(store, cursor)
    _check_cursor(store, info, cursor, newest)
    if cursor.pending:
        check_requests(cursor, store)
    return info, cursor


def _check_cursor(store: Store, info: ThreadInfo, cursor: Cursor, newest: Checkpoint | None) -> None:
    """Refuse a cursor that does not have the hash that the newest entry of the chains keeps."""
    last = store.ledger(cursor.thread_id, cursor.ledger_n - 1)[:1] if cursor.ledger_n else []
    parts = store.parts(cursor.thread_id)
    links = ledger_links(last[0] if last else None, parts)
    # Others may have decided since the cursor was read: their entries come after this one.
    if cursor.ledger_hash != links[-1] or (last and ledger_hash(last[0]) != last[0].hash):
        raise _changed(cursor.thread_id, f"its decision {cursor.ledger_n}")
    if chained_cursor_hash(info, cursor, newest, last[0] if last else None, links) != cursor_hash(cursor):
        raise _changed(cursor.thread_id, "its position or its inputs")


def ledger_links(last: LedgerEntry | None, parts: Sequence[Part]) -> list[bytes]:
    """Return the hashes that the ledger can have after an entry.

    These are the entry's own hash, and those chained to the facts of the threads that start after it.
    """
    n, link = (last.n, last.hash) if last else (0, b"")
    links = [link]
    for part in parts:
        if part.after_entry == n:
            link = chained(link, part.facts)
            links.append(link)
    return links


def chained_cursor_hash(
    info: ThreadInfo,
    cursor: Cursor,
    newest: Checkpoint | None,
    last: LedgerEntry | None,
    links: Sequence[bytes],
) -> bytes:
    """Return the hash of the cursor that the newest entry of the chains keeps.

    Args:
        newest: the newest checkpoint.
        last, links: the newest entry of the ledger, and its `ledger_links`.
    """
    if newest is not None and (last is None or not last.cursor_hash or newest.ledger_hash in links):
        return newest.cursor_hash
    if last is not None:
        return last.cursor_hash
    # Only the thread itself was written yet.
    return cursor_hash(Cursor(cursor.thread_id, created_at=info.created_at))


def check_requests(cursor: Cursor, store: Store) -> None:
    """Refuse requests that are not as the newest decision about each of them says.

    Raises:
        LogCorrupt: a request was changed, or a decision since the newest one about it.
    """
    known = decisions(store, cursor.thread_id, upto=cursor)
    for request in cursor.pending:
        if request_mismatch(request, known) is not None:
            raise _changed(cursor.thread_id, f"the request {request.id} ({request.title!r})")


def decisions(
    store: Store, thread_id: str, after: int = 0, *, calls: bool = False, upto: Cursor | None = None
) -> list[LedgerEntry]:
    """Return a thread's decisions, after checking them against the hash that its cursor keeps.

    All that a run uses from the ledger (answers, allowances, replies of models) is read by this function.

    Args:
        after: only entries with a greater number.
        calls: also return and check the data of recorded calls; otherwise they are only links of the chain.
        upto: a cursor of the thread that was read before: entries after it are left out.

    Raises:
        LogCorrupt: an entry was changed.
    """
    cursor = upto or store.cursor(thread_id)
    last = cursor.ledger_n if cursor else 0
    # Others may have decided since the cursor was read.
    entries = [entry for entry in store.ledger(thread_id, after, call_data=calls) if entry.n <= last]
    parts, n = store.parts(thread_id), after
    link = entries[0].prev_hash if entries else b""
    for entry in entries:
        n += 1
        is_known = entry.kind == CALL and not calls
        if entry.n != n or entry.prev_hash != link or not (is_known or ledger_hash(entry) == entry.hash):
            raise _changed(thread_id, f"its decision {n}")
        link = entry.hash
        for part in parts:
            if part.after_entry == n:
                link = chained(link, part.facts)
    if cursor and entries and link != cursor.ledger_hash:
        raise _changed(thread_id, f"its decision {last}")
    return entries


def request_mismatch(
    request: Request, ledger: Sequence[LedgerEntry]
) -> tuple[bytes | str | None, bytes] | None:
    """Return how a pending request should be by its newest decision, and how it is; None if they agree."""
    is_now = pending_hash(request)
    for entry in reversed(ledger):
        if _settles(entry, request):
            should: bytes | str = entry.kind if entry.kind in _ENDS else entry.pending_hash
            return None if should == is_now else (should, is_now)
    return None, is_now


def _settles(entry: LedgerEntry, request: Request) -> bool:
    """Whether a decision says how a request is, or that it no longer waits."""
    return entry.request_id == request.id and entry.kind in (*_BINDS, *_ENDS)


def _check_head(store: Store, cursor: Cursor) -> Checkpoint | None:
    """Return the newest checkpoint, after checking that it is the cursor's and unchanged."""
    link = b""
    newest = store.checkpoints(cursor.thread_id, cursor.head + 1, 2)
    parts = store.parts(cursor.thread_id)
    if cursor.head >= 0:
        if not newest or newest[0].step != cursor.head:
            raise _changed(cursor.thread_id, f"its step {cursor.head}, which is missing")
        if newest[0].last_seq != cursor.last_seq:
            raise _changed(cursor.thread_id, f"its step {cursor.head}, or what that counts,")
        before = newest[1].checkpoint_hash if len(newest) > 1 else b""
        # A fork without its own step: shared steps are checked with its parent.
        for part in parts:
            if part.after_step == cursor.head - 1:
                before = chained(before, part.facts)
        link = newest[0].checkpoint_hash
        if all(part.after_step < cursor.head for part in parts):
            link = checkpoint_hash(newest[0], before, cursor.last_record_hash)
    for part in parts:
        if part.after_step == cursor.head:
            link = chained(link, part.facts)
    if link != cursor.checkpoint_hash:
        raise _changed(cursor.thread_id, f"its step {cursor.head}")
    return newest[0] if newest else None


def check_steps(store: Store, cursor: Cursor, since: int = 0) -> None:
    """Refuse a thread with a changed checkpoint.

    A fork continues from an old checkpoint, and a rollback runs handlers that old ones name, so it is not
    enough to check the newest one.

    Args:
        since: leave out the steps before this one.

    Raises:
        LogCorrupt: names the step.
    """
    thread_id, parts = cursor.thread_id, store.parts(cursor.thread_id)
    # The hash of a checkpoint covers the newest record before it, so start after a step with records.
    while since > 0 and not (before := list(store.records(thread_id, since - 1, since - 1))):
        since -= 1
    link, record = (_hash_of(store, thread_id, since - 1), before[-1].record_hash) if since else (b"", b"")
    record, link = (_with_parts(each, parts, since - 1) for each in (record, link))
    for first in range(since, cursor.head + 1, _STEPS):
        last = min(first + _STEPS - 1, cursor.head)
        points = {point.step: point for point in store.checkpoints(thread_id, last + 1, last + 1 - first)}
        records = {one.step: one.record_hash for one in store.records(thread_id, first, last)}
        for step in range(first, last + 1):
            record, point = records.get(step, record), points.get(step)
            if point is None or checkpoint_hash(point, link, record) != point.checkpoint_hash:
                raise _changed(thread_id, f"its step {step}")
            record, link = (_with_parts(each, parts, step) for each in (record, point.checkpoint_hash))
    if link != cursor.checkpoint_hash:
        raise _changed(thread_id, f"its step {cursor.head}")


def _hash_of(store: Store, thread_id: str, step: int) -> bytes:
    point = store.checkpoint(thread_id, step)
    return point.checkpoint_hash if point else b""


def _with_parts(link: bytes, parts: Sequence[Part], step: int) -> bytes:
    """Return a link after a step, chained to the facts of the threads that start there."""
    for part in parts:
        link = chained(link, part.facts) if part.after_step == step else link
    return link


def _changed(thread_id: str, what: str) -> LogCorrupt:
    return LogCorrupt(
        f"thread {thread_id!r}: {what} was changed in the store, and not by hitl-tui",
        f"to see what else, run `{command_line('verify', thread_id)}`; restore a backup of the store",
    )


def with_frozen_inputs(cursor: Cursor) -> Cursor:
    """Return a cursor from a store with read-only inputs, so that no node can change them."""
    if cursor.goal is None and cursor.constraints is None and not cursor.context:
        return cursor
    given = {name: freeze(getattr(cursor, name)) for name in (*RUN_INPUTS, "context")}
    return replace(cursor, **given)


def logged_digest(info: ThreadInfo, cursor: Cursor) -> str:
    """Return the digest of the graph that the thread's log was last written with, "" if it has none."""
    return cursor.graph or info.graph_digest


def logged_graph(store: Store, info: ThreadInfo, cursor: Cursor) -> GraphInfo:
    """Return the graph that a thread last ran on, from its log.

    If only `save` has written the log, the graph has just the channels of the newest state, all public.

    Raises:
        LogCorrupt: the store has lost the graph, or it was changed.
    """
    digest = logged_digest(info, cursor)
    if not digest or cursor.version == 0:
        names = state_at(store, info.thread_id, cursor.head) if cursor.head >= 0 else {}
        channels = tuple(
            ChannelInfo(name, type_word({}, None), "overwrite", "public", "", {}) for name in names
        )
        return GraphInfo(info.graph_name, (), (), channels, ())
    stored = store.graph(digest)
    if stored is None:
        raise LogCorrupt(
            f"thread {info.thread_id!r}: its graph {digest[:12]} is missing", "restore a backup of the store"
        )
    return GraphInfo.of(stored)


def progress_of(cursor: Cursor, next_node: str | None, limits: Limits) -> Progress:
    """Return the progress of a cursor, for status lines.

    Args:
        next_node: the node that runs next, if that is known.
        limits: those of the current run.
    """
    return Progress(
        status=cursor.status,
        reason=cursor.reason,
        head=cursor.head,
        position=cursor.position,
        next_node=next_node,
        invocation=cursor.invocation,
        iteration=cursor.iteration,
        visits=cursor.visits,
        tokens_in=cursor.tokens_in,
        tokens_out=cursor.tokens_out,
        cost=cursor.cost,
        cost_known=cursor.cost_known,
        active=cursor.active,
        limits=limits,
        pending=cursor.pending,
        error=cursor.error,
        uses=cursor.open_uses,
    )


class LoggedThread:
    """A thread of a store for viewing: its cursor, its graph as data, its newest values."""

    def __init__(self, info: ThreadInfo, cursor: Cursor, declared: GraphInfo, values: dict[str, Any]) -> None:
        self.info = info
        self.cursor = with_frozen_inputs(cursor)
        self.declared = declared
        self.values = values

    @classmethod
    def checked(cls, store: Store, thread_id: str) -> LoggedThread:
        """Read a thread, and refuse one whose position or newest values were changed.

        Raises:
            UnknownThread, LogCorrupt.
        """
        info, cursor = checked_cursor(store, thread_id)
        declared = logged_graph(store, info, cursor)
        values = defaults_of(declared)
        if cursor.head >= 0:
            values, _, _, _ = checked_state(store, thread_id, cursor.head, values)
        return cls(info, cursor, declared, values)

    @property
    def thread_id(self) -> str:
        """The thread's id."""
        return self.info.thread_id

    @property
    def exists(self) -> bool:
        """Whether the thread has been written."""
        return self.cursor.version > 0

    @property
    def progress(self) -> Progress:
        """The progress of the thread, for status lines."""
        return progress_of(self.cursor, self._next_node(), self.cursor.limits)

    def _next_node(self) -> str | None:
        """Return the node that runs next; None if a routing function decides it, or there is none."""
        kind, _, node = self.cursor.position.partition(":")
        if kind != "route":
            return self.cursor.next_node
        edges = [edge for edge in self.declared.edges if edge.source == node]
        return next((edge.target for edge in edges if not edge.label), None)


def defaults_of(graph: GraphInfo) -> dict[str, Any]:
    """Return the values of a graph's channels before any node has written."""
    return {channel.name: freeze(channel.default) for channel in graph.channels}
