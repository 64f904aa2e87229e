"""Where in a user's code an error was raised."""

from __future__ import annotations

import os
import sysconfig
import traceback
from pathlib import Path

_OURS = f"{Path(__file__).resolve().parents[2]}{os.sep}"
_LIBRARIES = tuple(
    f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_LONGEST = 120


def raised_at(error: BaseException) -> str:
    """The innermost line of a user's code that led to an error, as "flow.py, line 12: words = …".

    "" where none did: a frame counts if it lies neither in this package nor in Python or a library.
    """
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith((_OURS, *_LIBRARIES, "<frozen ")):
            continue
        line = frame.line or ""
        line = "" if line.startswith("raise ") else line  # the message says that
        code = f": {line if len(line) <= _LONGEST else f'{line[: _LONGEST - 1]}…'}" if line else ""
        return f"{os.path.basename(frame.filename)}, line {frame.lineno}{code}"
    return ""
