"""What the ledger says of a decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hitl_tui.engine.channels.canonical import state_hash
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.session import Session


def shown(session: Session, seen: bytes = b"") -> bytes:
    """What a person had before them who decides: what their screen says, else the state that they named.

    A decision names the step that it is about, and is refused where the thread stands at another one.
    """
    return seen or (state_hash(session.state.digests) if session.cursor.head >= 0 else b"")


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
        cursor,
        kind,
        at=session.clock(),
        request=request,
        request_id=request_id,
        signer=session.signer,
        **facts,
    )
