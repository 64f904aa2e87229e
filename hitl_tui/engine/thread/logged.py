"""A thread as its log has it, checked: for looking at it, with nothing of its graph built (SPEC 10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from hitl_tui.engine.graph.description import GraphInfo
from hitl_tui.engine.log.events import Progress
from hitl_tui.engine.log.records import Cursor, LedgerEntry, Limits
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import Part, ThreadInfo
from hitl_tui.engine.state.channel import RUN_INPUTS, ChannelInfo
from hitl_tui.engine.state.frozen import freeze
from hitl_tui.engine.state.schema import type_word
from hitl_tui.engine.thread.hashes import chained, checkpoint_hash, ledger_hash, request_hash
from hitl_tui.engine.thread.rebuild import checked_state, state_at
from hitl_tui.errors import LogCorrupt, UnknownThread

_BINDS = ("request", "rebound", "vote", "handed_over", "escalated")
_ENDS = ("answer", "timeout", "withdrawn")


def standing(store: Store, thread_id: str) -> tuple[ThreadInfo, Cursor]:
    """A thread's facts and cursor, once they agree with the newest step and with the decisions.

    Raises:
        UnknownThread: there is no such thread.
        LogCorrupt: something of it is not what was written; says what.
    """
    info, cursor = store.info(thread_id), store.cursor(thread_id)
    if info is None or cursor is None:
        raise UnknownThread(f"there is no thread {thread_id!r}", "see `hitl-tui threads`")
    if store.facts(thread_id) != info.facts_hash:
        raise _changed(thread_id, "what is fixed about it (its graph, where it was forked, who began it)")
    _check_head(store, cursor)
    if cursor.pending:
        check_requests(cursor, store.ledger(thread_id), store.parts(thread_id))
    return info, cursor


def check_requests(cursor: Cursor, ledger: Sequence[LedgerEntry], parts: Sequence[Part]) -> None:
    """Refuse requests that are not what the newest decision about each of them says.

    Args:
        ledger, parts: the thread's.

    Raises:
        LogCorrupt: a request is another one, or a decision from the newest about it on is.
    """
    known = ledger[: cursor.ledger_n]  # others may have decided since the cursor was read
    oldest = len(known)
    for request in cursor.pending:
        if unbound(request, known) is not None:
            raise _changed(cursor.thread_id, f"the request {request.id} ({request.title!r})")
        oldest = min(oldest, max(place for place, entry in enumerate(known) if _settles(entry, request)))
    # What the decision says counts only where it is the one that the cursor is chained to.
    link = b""
    for entry in known[oldest:]:
        if ledger_hash(entry) != entry.hash or (link and entry.prev_hash != link):
            raise _changed(cursor.thread_id, f"its decision {entry.n}")
        link = entry.hash
        for part in parts:
            if part.after_entry == entry.n:
                link = chained(link, part.facts)
    if link != cursor.ledger_hash:
        raise _changed(cursor.thread_id, f"its decision {cursor.ledger_n}")


def unbound(request: Request, ledger: Sequence[LedgerEntry]) -> tuple[bytes | str | None, bytes] | None:
    """What the newest decision about a pending request says of it, and what it is; None where they agree."""
    is_now = request_hash(request)
    for entry in reversed(ledger):
        if _settles(entry, request):
            should: bytes | str = entry.kind if entry.kind in _ENDS else entry.request_hash
            return None if should == is_now else (should, is_now)
    return None, is_now


def _settles(entry: LedgerEntry, request: Request) -> bool:
    """Whether a decision says what a request is, or that it waits no more."""
    return entry.request_id == request.id and entry.kind in (*_BINDS, *_ENDS)


def _check_head(store: Store, cursor: Cursor) -> None:
    """The newest checkpoint is the one that the cursor knows, and all of it is as it was written."""
    link = b""
    newest = store.checkpoints(cursor.thread_id, cursor.head + 1, 2)
    parts = store.parts(cursor.thread_id)
    if cursor.head >= 0:
        if not newest or newest[0].step != cursor.head:
            raise _changed(cursor.thread_id, f"its step {cursor.head}, which is missing")
        before = newest[1].checkpoint_hash if len(newest) > 1 else b""
        # A fork has no step of its own yet: what it shares is its parent's to check.
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


def _changed(thread_id: str, what: str) -> LogCorrupt:
    return LogCorrupt(
        f"thread {thread_id!r}: {what} was changed in the store, and not by hitl-tui",
        f"see what else with `hitl-tui verify {thread_id}`; go back to a copy of the store",
    )


def frozen(cursor: Cursor) -> Cursor:
    """A cursor from a store, with inputs that no node can change."""
    if cursor.goal is None and cursor.constraints is None and not cursor.context:
        return cursor
    given = {name: freeze(getattr(cursor, name)) for name in (*RUN_INPUTS, "context")}
    return replace(cursor, **given)


def logged_digest(info: ThreadInfo, cursor: Cursor) -> str:
    """The digest of the graph that the thread's log was last written with, "" where it tells none."""
    return cursor.graph or info.graph_digest


def logged_graph(store: Store, info: ThreadInfo, cursor: Cursor) -> GraphInfo:
    """The graph that a thread last ran on, as its log holds it.

    Where nothing but `save` has written the log, the channels of its newest state, which are all public.

    Raises:
        LogCorrupt: the store has lost it, or it is not as it was stored.
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
            f"thread {info.thread_id!r}: its graph {digest[:12]} is missing", "go back to a copy of the store"
        )
    return GraphInfo.of(stored)


def progress_of(cursor: Cursor, next_node: str | None, limits: Limits) -> Progress:
    """Where a cursor stands, for status lines.

    Args:
        next_node: the node that runs next as far as that is settled.
        limits: what the run that goes on now may use up.
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
    """A thread of a store to look at: where it stands, its graph as data, its newest values.

    Raises:
        UnknownThread, LogCorrupt.
    """

    def __init__(self, store: Store, thread_id: str) -> None:
        self.info, cursor = standing(store, thread_id)
        self.cursor = frozen(cursor)
        self.declared = logged_graph(store, self.info, self.cursor)
        self.values = defaults_of(self.declared)
        if cursor.head >= 0:
            self.values, _, _, _ = checked_state(store, thread_id, cursor.head, self.values)

    @property
    def thread_id(self) -> str:
        """The thread's id."""
        return self.info.thread_id

    @property
    def exists(self) -> bool:
        """True once the thread has been written."""
        return self.cursor.version > 0

    @property
    def progress(self) -> Progress:
        """Where the thread stands, for status lines."""
        return progress_of(self.cursor, self._next_node(), self.cursor.limits)

    def _next_node(self) -> str | None:
        """The node that runs next; None where a router has yet to be asked, or there is no way on."""
        kind, _, node = self.cursor.position.partition(":")
        if kind != "route":
            return self.cursor.next_node
        ways = [edge for edge in self.declared.edges if edge.source == node]
        return next((edge.target for edge in ways if not edge.label), None)


def defaults_of(graph: GraphInfo) -> dict[str, Any]:
    """What the channels of a graph hold before any node has written."""
    return {channel.name: freeze(channel.default) for channel in graph.channels}
