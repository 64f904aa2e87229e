"""Commands that allow calls of a tool in a thread without asking again, and that revoke it.

Each function is one commit; the session must be held for writing.

Specified in docs/spec/threads.md.
"""

from __future__ import annotations

from typing import Any

from hitl_tui.engine.commands.claiming import MINUTE
from hitl_tui.engine.commands.command import Allow, Revoke
from hitl_tui.engine.commands.decisions import decision_entry
from hitl_tui.engine.state.values import normalise
from hitl_tui.engine.thread.allowances import ALLOWED, REVOKED, allowances
from hitl_tui.engine.thread.logged import decisions
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import UsageError


def allow(session: Session, command: Allow) -> str:
    """Carry out `Allow`."""
    if not command.tool.strip() or not command.actor.strip():
        raise UsageError(
            "an allowance needs a tool and the name of a person", "name the tool, and who allows it"
        )
    named = f"a{session.cursor.ledger_n + 1}"
    data: dict[str, Any] = {
        "id": named,
        "tool": command.tool,
        "args": normalise(dict(command.args), what="args"),
        "exact": command.exact,
        "high_risk": command.high_risk,
        "tainted": command.tainted,
    }
    if command.minutes is not None:
        data["expires_at"] = session.clock() + int(command.minutes * MINUTE)
    seen = command.seen
    entry = decision_entry(session, [], ALLOWED, actor=command.actor, note=command.note, seen=seen, data=data)
    session.commit_cursor(session.cursor, [entry])
    return named


def revoke(session: Session, command: Revoke) -> None:
    """Carry out `Revoke`."""
    ledger = decisions(session.store, session.thread_id) if session.store else []
    known = [allowance.id for allowance in allowances(ledger, session.thread_id)]
    if command.allowance not in known:
        raise UsageError(
            f"thread {session.thread_id!r} has no allowance {command.allowance!r}",
            f"allowances: {', '.join(known) or 'none'}",
        )
    entry = decision_entry(
        session, [], REVOKED, actor=command.actor, note=command.note, data={"id": command.allowance}
    )
    session.commit_cursor(session.cursor, [entry])
