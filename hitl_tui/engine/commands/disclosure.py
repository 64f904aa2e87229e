"""What a human answers for by name: clearing a channel's taint, revealing a private value (SPEC 8).

Each command is one commit; the session must be held for writing.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.commands.command import Declassify, NoteExport, Reveal
from hitl_tui.engine.commands.decisions import decision_entry, shown
from hitl_tui.engine.log.taint import Lineage
from hitl_tui.engine.state.changes import Change, set_values
from hitl_tui.engine.state.state import undeclared
from hitl_tui.engine.thread.journal import StepFacts
from hitl_tui.engine.thread.rebuild import state_at
from hitl_tui.engine.thread.session import Session
from hitl_tui.engine.thread.taint_policy import settled
from hitl_tui.errors import StaleWriter, UsageError


def declassify(session: Session, command: Declassify) -> int:
    """Carry out `Declassify`."""
    cursor, channel, expected_step = session.cursor, command.channel, command.expected_step
    actor, reason = command.actor, command.reason
    _check_named(actor, reason)
    if channel not in session.graph.channels:
        raise undeclared(channel, session.graph.channels)
    if expected_step is not None and expected_step != cursor.head:
        raise StaleWriter(
            f"thread {session.thread_id!r} is at step {cursor.head}, {channel!r} was looked at on "
            f"{expected_step}",
            "look at it as it is now, then declassify it again",
        )
    if channel not in session.state.taint:
        others = ", ".join(session.state.taint) or "none"
        raise UsageError(f"channel {channel!r} is not tainted", f"tainted channels: {others}")
    step = cursor.head + 1
    left = {name: taint for name, taint in session.state.taint.items() if name != channel}
    gone = settled(session, left)
    pending = tuple(request for request in cursor.pending if request not in gone)
    taint = session.state.taint[channel]
    data = {"channel": channel, "sources": list(taint.sources), "since": taint.step, "by": taint.node}
    said = decision_entry(
        session,
        [],
        "declassify",
        step=step,
        actor=actor,
        note=reason,
        seen=shown(session, command.seen),
        data=data,
    )
    ledger = [said]
    for request in cursor.pending:
        if request in gone:
            ledger.append(
                decision_entry(session, ledger, "withdrawn", step=step, request=request, actor=actor)
            )
        else:
            rebound = session.rebound([request], step)[0]
            ledger.append(decision_entry(session, ledger, "rebound", step=step, request=rebound, actor=actor))
    if gone and not pending:
        cursor = replace(cursor, status="waiting", reason="paused")
    session.commit_step(
        replace(cursor, pending=session.rebound(pending, step)),
        [_cleared(session, channel, step)],
        StepFacts(source="human", actor=actor, note=reason, decision="declassify"),
        ledger=ledger,
    )
    return step


def reveal(session: Session, command: Reveal) -> Any:
    """Carry out `Reveal`."""
    channel, actor = command.channel, command.actor
    step = session.cursor.head if command.step is None else command.step
    if not isinstance(actor, str) or not actor.strip():
        raise UsageError("nobody is named who looks", "give an actor")
    channels = session.graph.channels
    if channel not in channels:
        raise undeclared(channel, channels)
    default = channels[channel].default
    if session.store is None or (step == session.cursor.head and not session.exists):
        return session.state.values[channel]
    value = state_at(session.store, session.thread_id, step).get(channel, default)
    data = {"channel": channel}
    said = decision_entry(session, [], "reveal", step=step, actor=actor, note=command.note, data=data)
    session.commit_cursor(session.cursor, [said])
    return value


def note_export(session: Session, command: NoteExport) -> None:
    """Carry out `NoteExport`."""
    if not command.actor.strip():
        raise UsageError("nobody is named who exports private values", "give an actor")
    data = {"channels": sorted(command.channels)}
    head = session.cursor.head
    said = decision_entry(session, [], "export", step=head, actor=command.actor, note=command.to, data=data)
    session.commit_cursor(session.cursor, [said])


def _cleared(session: Session, channel: str, step: int) -> Change:
    """The channel set to what it holds, with its taint gone."""
    value = session.state.values[channel]
    change = set_values(session.state, session.graph.channels, {channel: value})[0]
    return msgspec.structs.replace(change, tainted=False, lineage=Lineage(step, "", cleared=True))


def _check_named(actor: str, reason: str) -> None:
    if not isinstance(actor, str) or not actor.strip():
        raise UsageError("nobody is named who declassifies", "give an actor")
    if not isinstance(reason, str) or not reason.strip():
        raise UsageError("declassifying needs a reason", "say why this may be trusted now")
