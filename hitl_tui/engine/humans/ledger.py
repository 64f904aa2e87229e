"""What the ledger says of a decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.session import Session


def decision_entry(
    session: Session,
    written: Sequence[LedgerEntry],
    kind: str,
    *,
    request: Request | None = None,
    request_id: str | None = None,
    **facts: Any,
) -> LedgerEntry:
    """The entry that follows those `written` for the same commit.

    Args:
        request, request_id, facts: as `journal.ledger_entry` takes them.
    """
    cursor = journal.behind(session.cursor, written)
    return journal.ledger_entry(
        cursor, kind, at=session.clock(), request=request, request_id=request_id, **facts
    )
