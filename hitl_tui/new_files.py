"""Files that are written when a person asks for them: new ones in the current directory."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from hitl_tui.errors import HitlError

_UNSAFE: Final = re.compile(r"[^\w.-]+")
_MOST: Final = 1000


def file_name(text: str, otherwise: str) -> str:
    """Return a text as a file name without a folder, a leading dot or characters that a shell interprets."""
    return _UNSAFE.sub("-", text)[:80].strip("-.") or otherwise


def new_file(name: str, content: bytes) -> Path:
    """Write a new file in the current directory, for its owner alone; gives its path.

    Args:
        name: see `file_name`; it gets a number where it is taken.

    Raises:
        HitlError: it can't be written there.
    """
    stem, suffix = Path(name).stem, Path(name).suffix
    for number in range(1, _MOST):
        path = Path(f"{stem}{suffix}" if number == 1 else f"{stem}-{number}{suffix}")
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue
        except OSError as error:
            raise HitlError(f"{path} can't be written: {error.strerror}", "go to another directory") from None
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        return path
    raise HitlError(f"there are too many files {stem}-N{suffix} here", "go to another directory")
