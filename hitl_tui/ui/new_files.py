"""Files that the screen writes when asked: new ones in the current directory, or downloads of a browser."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from hitl_tui.drivers.node_streams import in_browser
from hitl_tui.errors import HitlError
from hitl_tui.new_files import new_file
from hitl_tui.view.sanitise import sanitise_line

if TYPE_CHECKING:
    from hitl_tui.ui.screens.modal import StoreHost


def write_file(screen: StoreHost, name: str, content: bytes, media_type: str, title: str) -> None:
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
