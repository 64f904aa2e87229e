"""The clipboard: the terminal's own by OSC 52, and that of the machine where one of its programs is there.

Only a key of the user's leads here, never anything that is shown.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from typing import Final

from hitl_tui.drivers.node_streams import in_browser
from hitl_tui.view.format import count

OSC_BYTES: Final = 74_994
"""Bytes that terminals take by OSC 52 where they take any: 100,000 once they are encoded."""
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


async def copy(to_terminal: Callable[[str], None], text: str) -> str:
    """Put a text on both clipboards; says what became of it."""
    data = text.encode(errors="replace")
    fits = len(data) <= OSC_BYTES
    if fits:
        to_terminal(data.decode())
    local = await _copy_here(data)
    told = f"copied {count(len(text), 'character')}"
    if fits or local:
        where = "" if fits else f" to this machine's clipboard alone: over {OSC_BYTES:,} bytes"
        return told + where
    return f"not copied: {len(data):,} bytes are more than the {OSC_BYTES:,} that terminals take"


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
