"""Files that a person names: reading one always ends, and what is wrong with it is a clear error."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

_LARGEST: Final = 64 << 20
"""Bytes of a file that is read as a whole; far more than anybody writes by hand."""
_KINDS: Final = (
    (stat.S_ISDIR, errno.EISDIR, "it is a directory"),
    (stat.S_ISCHR, errno.ENODEV, "it is a device"),
    (stat.S_ISBLK, errno.ENODEV, "it is a device"),
)


def open_given(path: str | Path) -> BinaryIO:
    """Open a file or a pipe for reading; a pipe that nobody writes to is empty and not waited for.

    Raises:
        OSError: there is none, or it can't be read; its `strerror` says why.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
    except ValueError as error:  # as of a name with a zero byte
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    try:
        mode = os.fstat(descriptor).st_mode
        for is_kind, number, words in _KINDS:
            if is_kind(mode):
                raise OSError(number, words, str(path))
        os.set_blocking(descriptor, True)
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_given(path: str | Path) -> bytes:
    """Read a file that a person wrote, as a whole.

    Raises:
        OSError: it can't be read, or is far larger than any of its kind; its `strerror` says why.
    """
    with open_given(path) as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise OSError(errno.EFBIG, f"it is larger than {_LARGEST >> 20} MB", str(path))
    return data


def text_of(data: bytes) -> str:
    """The text of a file in UTF-8, its lines ended as Python's are, without the mark that some begin with.

    Raises:
        UnicodeDecodeError: it is none.
    """
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def expanded(path: str | os.PathLike[str]) -> Path:
    """The path with `~` and `~name` replaced by that home directory; as it is where nobody knows that."""
    return Path(os.path.expanduser(path))


def home_directory() -> Path:
    """The person's home directory; `/` for a user without one, as in a container."""
    home = os.path.expanduser("~")
    return Path(home if os.path.isabs(home) else "/")


def lines_of(stream: BinaryIO, longest: int) -> Iterator[bytes]:
    """The lines of a file, ended as ours are, without the mark that some begin with.

    Args:
        longest: bytes after which a line is cut; its reader finds that it has no end.
    """
    is_first = True
    while line := stream.readline(longest):
        if is_first:
            line, is_first = line.removeprefix(codecs.BOM_UTF8), False
        yield line[:-2] + b"\n" if line.endswith(b"\r\n") else line


def real_path(path: str | Path) -> Path:
    """The absolute path without links; one that leads in a circle stays as it is, and names no file."""
    return Path(os.path.realpath(path))
