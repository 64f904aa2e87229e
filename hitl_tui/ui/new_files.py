"""Files that the screen writes when asked: new ones in the current directory, or downloads of a browser."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hitl_tui.drivers.node_streams import in_browser
from hitl_tui.errors import HitlError
from hitl_tui.view.sanitise import sanitise_line

if TYPE_CHECKING:
    from hitl_tui.ui.screens.modal import Host

_UNSAFE: Final = re.compile(r"[^\w.-]+")
_MOST: Final = 1000


def file_name(text: str, otherwise: str) -> str:
    """A text as the name of a file: no folder, no hidden file, no sign that a shell would heed."""
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


def write_file(screen: Host, name: str, content: bytes, media_type: str, title: str) -> None:
    """Write a new file and say where it is; a browser downloads it."""
    if in_browser():
        screen.app.deliver_binary(io.BytesIO(content), save_filename=name, mime_type=media_type)
        return
    try:
        path = new_file(name, content)
    except HitlError as error:
        screen.show_message(f"{error.message} — {error.hint}", title, "error")
    else:
        screen.show_message(f"saved as {path} in {sanitise_line(str(Path.cwd()), 120)}", title)
