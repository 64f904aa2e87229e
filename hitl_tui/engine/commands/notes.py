"""Notes of people on the steps of a thread.

A note is one commit; the session must be held for writing.

Specified in docs/spec/log.md.
"""

from __future__ import annotations

from hitl_tui.engine.commands.command import Note
from hitl_tui.engine.commands.decisions import decision_entry
from hitl_tui.engine.log.records import NOTE
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import UnknownThread, UsageError


def note(session: Session, command: Note) -> None:
    """Carry out `Note`."""
    head = session.cursor.head
    if head < 0:
        raise UsageError(f"thread {session.thread_id!r} has no step yet", "start it with an input first")
    step = head if command.step is None else command.step
    if not 0 <= step <= head:
        raise UnknownThread(f"thread {session.thread_id!r} has no step {step}", f"its steps are 0 to {head}")
    said = decision_entry(session, [], NOTE, step=step, actor=command.actor, note=command.text.strip())
    session.commit_cursor(session.cursor, [said])
