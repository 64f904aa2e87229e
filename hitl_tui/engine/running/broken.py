"""The end of a run that can't write it down, as when the store went away: told all the same."""

from __future__ import annotations

import traceback

from hitl_tui.engine.log.events import NodeFailed, ProgressChanged
from hitl_tui.engine.log.outcomes import ErrorInfo
from hitl_tui.engine.thread.session import Session, replace
from hitl_tui.errors import HitlError, StoreUnusable


def tell_broken(session: Session, node: str, error: Exception) -> None:
    """Say why a run ended; it comes into the log with the next commit that goes through.

    Args:
        node: the one that runs or is next; a store that can't be used is no node's fault.
    """
    if not isinstance(error, HitlError):
        error = HitlError(f"{type(error).__name__}: {error}", "the log file has the details")
    cursor = session.cursor
    details = "".join(traceback.format_exception(error.__cause__ or error))
    blamed = "" if isinstance(error, StoreUnusable) else node
    info = ErrorInfo(blamed, cursor.attempt, error.title, error.message, error.hint, details)
    if cursor.status == "running":
        session.cursor = replace(
            cursor, status="failed", reason="node_error", attempt=cursor.attempt + 1, error=info
        )
        # Giving the thread back may take its time now; that it has failed is to be seen before.
        session.emit(ProgressChanged(session.progress))
    session.emit(NodeFailed(info))
