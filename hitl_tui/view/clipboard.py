"""Copies text to the clipboard: the terminal's by OSC 52, and the machine's if it has a known program.

Only a user's key triggers this, never content on screen.
"""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
from collections.abc import Callable
from typing import Final, NamedTuple

from hitl_tui.drivers.node_streams import in_browser, own_out
from hitl_tui.view.format import count

OSC_BYTES: Final = 74_994
"""Most bytes that all terminals with OSC 52 accept: 100,000 after encoding."""
_NO_SEQUENCES: Final = ("dumb", "linux")
"""Terminals that would show the escape sequence as text."""
_PATIENCE: Final = 2.0
_PROGRAMS: Final = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
    ("", ("pbcopy",)),
    ("", ("clip.exe",)),
)


def local_program() -> tuple[str, ...]:
    """Return the command that fills this machine's clipboard, () if there is none or the user is remote."""
    if in_browser():
        return ()
    for variable, command in _PROGRAMS:
        if (not variable or os.environ.get(variable)) and (path := shutil.which(command[0])):
            return (path, *command[1:])
    return ()


class Copied(NamedTuple):
    """The result of a copy: whether it is on a clipboard, and a message."""

    done: bool
    words: str


def to_own_terminal() -> Callable[[str], None] | None:
    """Return a function that copies to the output terminal's clipboard; None if the output is no terminal."""
    out = own_out()
    if not out.isatty() or os.environ.get("TERM", "dumb") in _NO_SEQUENCES:
        return None

    def put(text: str) -> None:
        payload = base64.b64encode(text.encode()).decode()
        out.write(f"\x1b]52;c;{payload}\x07")
        out.flush()

    return put


async def copy(to_terminal: Callable[[str], None] | None, text: str) -> Copied:
    """Put a text on both clipboards and return the result.

    Args:
        to_terminal: copies to the terminal's clipboard; None if there is none.
    """
    data = text.encode(errors="replace")
    fits = len(data) <= OSC_BYTES
    if fits and to_terminal is not None:
        to_terminal(data.decode())
    local = await _copy_here(data)
    message = f"copied {count(len(text), 'character')}"
    if fits and to_terminal is not None:
        return Copied(True, message)
    if local:
        where = f": over {OSC_BYTES:,} bytes" if to_terminal is not None else ""
        return Copied(True, f"{message} to this machine's clipboard only{where}")
    if to_terminal is None:
        return Copied(False, "not copied: no clipboard here")
    more = f"{len(data):,} bytes are more than the {OSC_BYTES:,} that terminals take"
    return Copied(False, f"not copied: {more}")


async def _copy_here(data: bytes) -> bool:
    """Copy with a program of this machine; returns whether that worked."""
    command = local_program()
    if not command:
        return False
    nowhere = asyncio.subprocess.DEVNULL
    try:
        program = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=nowhere, stderr=nowhere
        )
    except OSError:
        return False
    try:
        await asyncio.wait_for(program.communicate(data), _PATIENCE)
    except (TimeoutError, OSError):
        if program.returncode is None:
            program.kill()
        return False
    return program.returncode == 0
