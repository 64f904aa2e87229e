"""The standard streams: there from the start, and told when they take no more."""

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
    """What was to be written to stdout could not be: its disk is full, say."""

    title = "The output can't be written"


def open_the_closed() -> None:
    """Put the null device where whoever started us has closed a standard stream, as in `<&-`.

    Otherwise the first file that is opened gets its number, and what anybody prints would go into that.
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
    """What an error says of stdout, None where it is about something else.

    Whatever else is written has a file name, or is a store's, which has words of its own for it.
    """
    if error.filename is not None or error.errno not in _NO_ROOM:
        return None
    return OutputFailed(error.strerror or str(error), "write it to another place")


def give_up_output(out: TextIO | None = None) -> None:
    """Let what is left for a stream (stdout) go nowhere: Python would complain about it when it ends."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, (out or own_out()).fileno())
        os.close(null)
