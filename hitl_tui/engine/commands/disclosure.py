"""Commands that a person answers for by name: clear a channel's taint, reveal or export private values.

Each command is one commit; the session must be held for writing.

Specified in docs/spec/data.md.
"""

from __future__ import annotations

from typing import Any

import msgspec

from hitl_tui.engine.commands.command import Declassify, NoteExport, Reveal
from hitl_tui.engine.commands.decisions import decision_entry
from hitl_tui.engine.log.taint import Lineage
from hitl_tui.engine.state.changes import Change, after, set_values
from hitl_tui.engine.state.state import undeclared
from hitl_tui.engine.thread.journal import StepFacts
from hitl_tui.engine.thread.rebuild import state_at
from hitl_tui.engine.thread.reopening import with_reopened
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import StaleWriter, UsageError


def declassify(session: Session, command: Declassify) -> int:
    """Carry out `Declassify`."""
    cursor, channel, expected_step = session.cursor, command.channel, command.expected_step
    actor, reason = command.actor, command.reason
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
    taint = session.state.taint[channel]
    data = {"channel": channel, "sources": list(taint.sources), "since": taint.step, "by": taint.node}
    said = decision_entry(
        session,
        [],
        "declassify",
        step=step,
        actor=actor,
        note=reason,
        seen=command.seen,
        data=data,
    )
    ledger = [said]
    changes = [_without_taint(session, channel, step)]
    if cursor.pending:
        cursor = with_reopened(session, cursor, after(session.state, changes), ledger, step=step, actor=actor)
    session.commit_step(
        cursor,
        changes,
        StepFacts(source="human", actor=actor, note=reason, decision="declassify", made_by="person"),
        ledger=ledger,
    )
    return step


def reveal(session: Session, command: Reveal) -> Any:
    """Carry out `Reveal`."""
    channel, actor = command.channel, command.actor
    step = session.cursor.head if command.step is None else command.step
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
    data = {"channels": sorted(command.channels)}
    head = session.cursor.head
    said = decision_entry(session, [], "export", step=head, actor=command.actor, note=command.to, data=data)
    session.commit_cursor(session.cursor, [said])


def _without_taint(session: Session, channel: str, step: int) -> Change:
    """Return a change that sets the channel to its own value, without its taint."""
    value = session.state.values[channel]
    change = set_values(session.state, session.graph.channels, {channel: value})[0]
    return msgspec.structs.replace(change, tainted=False, lineage=Lineage(step, "", cleared=True))
