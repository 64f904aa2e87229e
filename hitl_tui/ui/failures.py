"""Which failures of nodes the user has been told of."""

from __future__ import annotations

from hitl_tui.engine.log.outcomes import ErrorInfo
from hitl_tui.view.session import Session


class Failures:
    """Each failure by a channel opens the editor once; what failed before the thread was shown does not."""

    def __init__(self) -> None:
        self._seen: ErrorInfo | None = None

    def begin(self, session: Session) -> None:
        """Another thread is shown; what failed in it before is history."""
        self._seen = session.view.error

    def to_mend(self, session: Session) -> str:
        """The channel that a node has just failed by, "" for none; tells each failure once."""
        error, seen = session.view.error, self._seen
        self._seen = error
        failed = error is not None and error is not seen and session.view.progress.status == "failed"
        return error.channel if failed and error is not None else ""
