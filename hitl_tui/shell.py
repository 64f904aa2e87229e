"""Commands of this program as they can be pasted into a shell."""

from __future__ import annotations

import shlex


def command_line(command: str, *arguments: str, options: str = "") -> str:
    """Return a command of ours, ready to paste.

    Args:
        command: as "answer".
        arguments: its positional arguments, not quoted yet; a thread's name may begin with a dash.
        options: its options, quoted.
    """
    quoted = " ".join(map(shlex.quote, arguments))
    parts = ["hitl-tui", command, quoted, options.strip()]
    if any(argument.startswith("-") for argument in arguments):
        parts = ["hitl-tui", command, options.strip(), "--", quoted]
    return " ".join(filter(None, parts))
