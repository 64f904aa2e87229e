"""The exit code that says where a thread stands after a command or a session."""

from __future__ import annotations

from hitl_tui.engine.log.events import Progress
from hitl_tui.errors import ExitCode


def standing_code(progress: Progress) -> ExitCode:
    """Done, waiting for a human, run by another process, or failed (as cancelled by somebody is)."""
    if progress.status == "completed":
        return ExitCode.DONE
    if progress.status in ("waiting", "pending"):
        return ExitCode.WAITING
    return ExitCode.CONFLICT if progress.status == "running" else ExitCode.FAILED
