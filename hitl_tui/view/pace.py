"""Pace of threads: whether a person steps through a thread or lets it run."""

from __future__ import annotations

from hitl_tui.view.session import ViewSession


class Paces:
    """Paces of the threads that were shown.

    A thread that was let run continues once its request is answered, and its next request opens by itself;
    one that is stepped through does neither.
    """

    def __init__(self) -> None:
        self._stepping: dict[str, bool] = {}

    def begin(self, session: ViewSession, before: ViewSession | None) -> None:
        """Note the shown thread: an inner one is stepped through if its owner was, any other starts afresh.

        Args:
            before: the session that was shown until now.
        """
        owners = [owner.thread_id for owner in session.view.owners]
        left = [owner.thread_id for owner in before.view.owners] if before else []
        if session.running:
            self.let_run(session)
        elif before is not None and before.thread_id in owners and self.is_stepping(before):
            self.step(session.thread_id)
        elif session.thread_id not in left:
            self._stepping.pop(session.thread_id, None)

    def let_run(self, session: ViewSession) -> None:
        """Note that a person lets the thread run."""
        self._stepping[session.thread_id] = False

    def step(self, *threads: str) -> None:
        """Note that a person steps through threads."""
        self._stepping |= dict.fromkeys(threads, True)

    def is_stepping(self, session: ViewSession) -> bool:
        """Whether a person steps through the thread."""
        return self._stepping.get(session.thread_id) is True

    def is_running_on(self, session: ViewSession) -> bool:
        """Whether a person lets the thread run; neither holds before the first key."""
        return self._stepping.get(session.thread_id) is False
