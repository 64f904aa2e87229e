"""The clipboard: the terminal's own by OSC 52, and that of the machine where one of its programs is there.

Only a key of the user's leads here, never anything that is shown.
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
"""Bytes that terminals take by OSC 52 where they take any: 100,000 once they are encoded."""
_NO_SEQUENCES: Final = ("dumb", "linux")
"""Terminals that would show what they are sent."""
_PATIENCE: Final = 2.0
_PROGRAMS: Final = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
    ("", ("pbcopy",)),
    ("", ("clip.exe",)),
)


def local_program() -> tuple[str, ...]:
    """The program that fills this machine's clipboard, () where there is none, or nobody sits at it."""
    if in_browser():
        return ()
    for variable, command in _PROGRAMS:
        if (not variable or os.environ.get(variable)) and (path := shutil.which(command[0])):
            return (path, *command[1:])
    return ()


class Copied(NamedTuple):
    """What became of a copy: whether it is on a clipboard, and in words."""

    done: bool
    words: str


def to_own_terminal() -> Callable[[str], None] | None:
    """What puts a text on the clipboard of the terminal that we write to; None where that is none."""
    out = own_out()
    if not out.isatty() or os.environ.get("TERM", "dumb") in _NO_SEQUENCES:
        return None

    def put(text: str) -> None:
        payload = base64.b64encode(text.encode()).decode()
        out.write(f"\x1b]52;c;{payload}\x07")
        out.flush()

    return put


async def copy(to_terminal: Callable[[str], None] | None, text: str) -> Copied:
    """Put a text on both clipboards; says what became of it.

    Args:
        to_terminal: puts it on that of the terminal; None where there is none.
    """
    data = text.encode(errors="replace")
    fits = len(data) <= OSC_BYTES
    if fits and to_terminal is not None:
        to_terminal(data.decode())
    local = await _copy_here(data)
    told = f"copied {count(len(text), 'character')}"
    if fits and to_terminal is not None:
        return Copied(True, told)
    if local:
        where = f": over {OSC_BYTES:,} bytes" if to_terminal is not None else ""
        return Copied(True, f"{told} to this machine's clipboard only{where}")
    if to_terminal is None:
        return Copied(False, "not copied: no clipboard here")
    more = f"{len(data):,} bytes are more than the {OSC_BYTES:,} that terminals take"
    return Copied(False, f"not copied: {more}")


async def _copy_here(data: bytes) -> bool:
    """Whether a program of this machine has taken it."""
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
