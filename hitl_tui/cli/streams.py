"""Standard streams: opened at the start, with reports of failed output."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import TextIO

from hitl_tui.drivers.node_streams import own_out
from hitl_tui.errors import HitlError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


class OutputFailed(HitlError):
    """Writing to stdout failed, for example because its disk is full."""

    title = "The output can't be written"


def open_the_closed() -> None:
    """Open the null device for each standard stream that the parent process closed, as in `<&-`.

    Otherwise the first opened file would get its number, and all printed output would go into it.
    """
    for number, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is not None:
            continue
        null = os.open(os.devnull, os.O_RDWR)
        if null != number and not _is_open(number):
            os.dup2(null, number)
        stream = os.fdopen(null, mode, encoding="utf-8", closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def output_failure(error: OSError) -> OutputFailed | None:
    """Return the failure of stdout that an error describes, None if it is about something else.

    Other failed writes have a file name, or are a store's, which has its own messages.
    """
    if error.filename is not None or error.errno not in _NO_ROOM:
        return None
    return OutputFailed(error.strerror or str(error), "write it to another place")


def give_up_output(out: TextIO | None = None) -> None:
    """Discard remaining output for stdout: Python would complain about it at exit."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, (out or own_out()).fileno())
        os.close(null)
