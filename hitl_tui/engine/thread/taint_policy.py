"""What a node's run makes of taint, and what a node's `on_taint` says before it runs (SPEC 8).

What a node may read counts for `on_taint`: its declared reads, every channel where it declares none.
What taints its updates is what it really read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.graph.compiled import Node
from hitl_tui.engine.log.events import TaintRead
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.taint import Lineage, Taint, Tainted, origin
from hitl_tui.engine.state.canonical import item_hash, show_hash
from hitl_tui.engine.state.changes import Change
from hitl_tui.engine.state.channel import RUN_INPUTS
from hitl_tui.engine.state.workflow_state import StateView, WorkflowState
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.interrupts import taint_request
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import HitlError, UndeclaredChannel, UsageError


class TaintBlocked(HitlError):
    """A node with `on_taint="block"` would have read a tainted channel; it did not run."""

    title = "Blocked by taint"


def check_source(source: object) -> str:
    """What a node names as the source of taint: some text."""
    if not isinstance(source, str) or not source.strip():
        raise UsageError(
            f"a source of taint is some text, not {source!r}", 'name where it came from: taint("web")'
        )
    return source.strip()


def mark(
    changes: Sequence[Change],
    node: Node,
    step: int,
    *,
    sources: Iterable[str],
    read: Iterable[str],
    taint: Tainted,
) -> list[Change]:
    """A node's changes, tainted by what it brought in from outside and by the tainted channels it read.

    Args:
        sources: what came from outside during its attempt, that of an external node included.
        read: what it read, dotted names included.
        taint: the tainted channels of the state it ran on.
    """
    named = tuple(dict.fromkeys(sources))
    channels = tuple(sorted({name.partition(".")[0] for name in read} & taint.keys()))
    if not named and not channels:
        return list(changes)
    lineage = Lineage(step, node.name, named, channels)
    return [msgspec.structs.replace(change, tainted=True, lineage=lineage) for change in changes]


def guard(session: Session, node: Node) -> Request | TaintBlocked | None:
    """What stands between a node and a state with tainted channels: a question, an error, or nothing.

    A node that only warns does so here, in an event and in the ledger.
    """
    policy = node.on_taint
    if policy == "allow":
        return None
    tainted = tainted_reads(session, node)
    if not tainted:
        return None
    told = "; ".join(map(origin, tainted))
    if policy == "block":
        names = ", ".join(taint.channel for taint in tainted)
        return TaintBlocked(
            f"node {node.name!r} was not run: it may read what came from outside: {told}",
            f"declassify {names} once you have looked at it, keep it out of the node's reads, or let the "
            "node ask with on_taint='approve'",
        )
    if policy == "warn":
        session.emit(TaintRead(node.name, tainted))
        data = {"node": node.name, "channels": [taint.channel for taint in tainted]}
        entry = journal.ledger_entry(session.cursor, "taint", at=session.clock(), note=told, data=data)
        session.commit_cursor(session.cursor, [entry])
        return None
    if session.cursor.approved_hash == reads_hash(session, node):
        return None
    return taint_request(session.cursor, node.name, tainted, session.clock())


def tainted_reads(session: Session, node: Node) -> tuple[Taint, ...]:
    """The tainted channels that a node may read, in the state's order."""
    names = {name.partition(".")[0] for name in _reads(session, node)}
    return tuple(taint for name, taint in session.state.taint.items() if name in names)


def reads_hash(session: Session, node: Node) -> str:
    """A hash of all that a node may read, which an approval is bound to."""
    state, view = session.state, session.view()
    digests = {name: _digest(state.digests, view, name).hex() for name in _reads(session, node)}
    run_inputs = {name: getattr(session.cursor, name) for name in RUN_INPUTS}
    return show_hash(item_hash([digests, run_inputs]))


def approve(session: Session, cursor: Cursor, request: Request, answer: object) -> Cursor:
    """The cursor once a human has said whether a node may read what is tainted.

    A refusal ends the thread as cancelled(rejected); a fork or an edit with `as_node` may go on from it.
    """
    if refuses(request, answer):
        return replace(cursor, status="cancelled", reason="rejected", pending=())
    return replace(cursor, approved_hash=reads_hash(session, session.graph.nodes[request.node]))


def refuses(request: Request, answer: object) -> bool:
    """True where an answer to the question of a policy says no, which ends the thread."""
    choice = answer.get("choice") if isinstance(answer, dict) else answer
    return request.policy == "on_taint" and choice != "approve"


def settled(session: Session, taint: Tainted) -> tuple[Request, ...]:
    """The pending questions of `on_taint` that nothing is left of once only `taint` is tainted."""
    asked = [request for request in session.cursor.pending if request.policy == "on_taint"]
    return tuple(request for request in asked if not _touches(session, request.node, taint))


def _touches(session: Session, node: str, taint: Tainted) -> bool:
    reads = _reads(session, session.graph.nodes[node])
    return any(name.partition(".")[0] in taint for name in reads)


def _reads(session: Session, node: Node) -> list[str]:
    """What a node may read, by name: channels, and dotted entries whose channel it may not read whole."""
    channels = session.graph.channels
    view = StateView({}, channels, node.reads)
    dotted = [name for name in node.reads or () if "." in name and name.partition(".")[0] not in view]
    return [*view, *dotted]


def _digest(digests: dict[str, bytes], view: WorkflowState, name: str) -> bytes:
    if name in digests:
        return digests[name]
    try:
        return item_hash(view[name])
    except UndeclaredChannel:
        return b""
