"""How taint spreads through a node, and what a node's `on_taint` does before it runs.

`on_taint` is about all that a node may read: its declared reads, or every channel if it declares none. Its
updates are tainted by what it really read.

Specified in docs/spec/data.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from hitl_tui.engine.graph.compiled import Node
from hitl_tui.engine.log.events import TaintRead
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.taint import Lineage, Taint, Tainted, origin
from hitl_tui.engine.state.changes import Change
from hitl_tui.engine.state.channel import RUN_INPUTS
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.state.workflow_state import StateView
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.binding import digests_of
from hitl_tui.engine.thread.earlier import with_earlier_answer
from hitl_tui.engine.thread.interrupts import passing_answer, taint_request
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import HitlError, UsageError


class TaintBlocked(HitlError):
    """A node with `on_taint="block"` would have read a tainted channel; it did not run."""

    title = "Blocked by taint"


def check_source(source: object) -> str:
    """Check what a node names as the source of taint: it must be text."""
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
    """Return a node's changes, tainted by the untrusted data it brought in and the tainted channels it read.

    Args:
        sources: the sources of untrusted data in its attempt, including that of an external node.
        read: what it read, also dotted names.
        taint: the tainted channels of the state on which it ran.
    """
    named = tuple(dict.fromkeys(sources))
    channels = tuple(sorted({name.partition(".")[0] for name in read} & taint.keys()))
    if not named and not channels:
        return list(changes)
    lineage = Lineage(step, node.name, named, channels)
    return [msgspec.structs.replace(change, tainted=True, lineage=lineage) for change in changes]


def guard(session: Session, node: Node) -> Request | TaintBlocked | None:
    """Apply a node's policy to tainted channels: return a request, an error, or None.

    A node that only warns does so here, in an event and in the ledger.
    """
    policy = node.on_taint
    if policy == "allow":
        return None
    tainted = tainted_reads(session, node)
    if not tainted:
        return None
    named = "; ".join(map(origin, tainted))
    if policy == "block":
        names = ", ".join(taint.channel for taint in tainted)
        return TaintBlocked(
            f"node {node.name!r} was not run: it may read untrusted data: {named}",
            f"declassify {names} once you have looked at it, keep it out of the node's reads, or let the "
            "node ask with on_taint='approve'",
        )
    if policy == "warn":
        session.emit(TaintRead(node.name, tainted))
        data = {"node": node.name, "channels": [taint.channel for taint in tainted]}
        entry = journal.ledger_entry(session.cursor, "taint", at=session.clock(), note=named, data=data)
        session.commit_cursor(session.cursor, [entry])
        return None
    asked = _question(session, node, tainted, session.cursor, session.state)
    passed = passing_answer(session.cursor, node.name, "before", "on_taint")
    if passed and passed.holds == asked.request_hash:
        return None
    return with_earlier_answer(session, asked, passed.n if passed else None)


def taint_question(session: Session, name: str, *, cursor: Cursor, state: LiveState) -> Request | None:
    """Return the request of a node's policy on a state; None if nothing that the node may read is tainted.

    Args:
        cursor: at the step of that state.
    """
    node = session.graph.nodes.get(name)
    if node is None or node.on_taint != "approve":
        return None
    tainted = tainted_reads(session, node, state)
    return _question(session, node, tainted, cursor, state) if tainted else None


def _question(
    session: Session, node: Node, tainted: Sequence[Taint], cursor: Cursor, state: LiveState
) -> Request:
    about = digests_of(state, session.view(state), [*_reads(session, node), *RUN_INPUTS])
    return taint_request(cursor, node.name, tainted, session.clock(), about)


def tainted_reads(session: Session, node: Node, state: LiveState | None = None) -> tuple[Taint, ...]:
    """Return the tainted channels that a node may read, in the state's order."""
    names = {name.partition(".")[0] for name in _reads(session, node)}
    return tuple(taint for name, taint in (state or session.state).taint.items() if name in names)


def refuses(request: Request, answer: object) -> bool:
    """Whether an answer to a policy's request says no, which ends the thread."""
    choice = answer.get("choice") if isinstance(answer, dict) else answer
    return request.policy == "on_taint" and choice != "approve"


def _reads(session: Session, node: Node) -> list[str]:
    """Return what a node may read, by name: channels, or dotted entries of channels it may not read whole."""
    channels = session.graph.channels
    view = StateView({}, channels, node.reads)
    dotted = [name for name in node.reads or () if "." in name and name.partition(".")[0] not in view]
    return [*view, *dotted]
