"""Log file: the details that a screen or a line on stderr leaves out."""

from __future__ import annotations

import io
import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path

from hitl_tui.config import user_folder

_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


class _PrivateFile(RotatingFileHandler):
    """Rotating log that other users can't read: tracebacks may quote drafts."""

    def _open(self) -> io.TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return io.TextIOWrapper(io.FileIO(descriptor, "a"), encoding="utf-8", errors="backslashreplace")


def log_path() -> Path:
    """Return the path of the log file."""
    return user_folder("log") / "hitl-tui.log"


def start_log(*libraries: str) -> Path | None:
    """Send what `hitl_tui` logs to the log file; return None if it can't be written.

    Args:
        libraries: loggers of libraries that also write there, and no longer to the terminal.
    """
    logger = logging.getLogger("hitl_tui")
    handler = next((known for known in logger.handlers if isinstance(known, _PrivateFile)), None)
    if handler is None:
        path = log_path()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handler = _PrivateFile(path, maxBytes=1_000_000, backupCount=2)
        except OSError:
            return None
        handler.setFormatter(logging.Formatter(_FORMAT))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
    for library in map(logging.getLogger, libraries):
        if handler not in library.handlers:
            library.addHandler(handler)
            library.propagate = False
    return log_path()


def write_crash(error: BaseException) -> str:
    """Log an unexpected error; return a sentence that says where."""
    path = start_log()
    if path is None:
        return f"the log file {log_path()} can't be written, so there are no details"
    logging.getLogger("hitl_tui").error("unexpected error", exc_info=error)
    return f"this is a bug; the details are in {path}"
