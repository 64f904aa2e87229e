"""Files as nobody means them to be: for every command that reads one."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DEEP = b"[" * 100_000


def _zipped(data: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("file", data)
    return held.getvalue()


CONTENTS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "a line break": lambda _: b"\n",
    "blanks": lambda _: b" \t\r\n" * 100,
    "binary": lambda _: bytes(range(256)) * 40,
    "zero bytes": lambda _: bytes(5_000),
    "gzip": gzip.compress,
    "zip": _zipped,
    "first half": lambda data: data[: len(data) // 2],
    "without its last byte": lambda data: data[:-1],
    "without its first byte": lambda data: data[1:],
    "twice": lambda data: data * 2,
    "a mark first": lambda data: b"\xef\xbb\xbf" + data,
    "lines of Windows": lambda data: data.replace(b"\n", b"\r\n"),
    "lines of old Macs": lambda data: data.replace(b"\n", b"\r"),
    "UTF-16": lambda data: data.decode("utf-8", "replace").encode("utf-16"),
    "Latin-1": lambda data: data + b"# \xe4\xf6\xfc\n",
    "a zero in its middle": lambda data: data[: len(data) // 2] + b"\0" + data[len(data) // 2 :],
    "deep lists": lambda _: DEEP,
    "deep objects": lambda _: b'{"a":' * 50_000,
    "closed deep lists": lambda _: DEEP + b"]" * 100_000,
    "a number": lambda _: b"1",
    "a huge number": lambda _: b"9" * 100_000,
    "a float beyond all": lambda _: b'{"a": 1e999}',
    "no number": lambda _: b'{"a": NaN, "b": Infinity}',
    "null": lambda _: b"null",
    "a list": lambda _: b'[1, "two", null]',
    "a text": lambda _: b'"text"',
    "an empty object": lambda _: b"{}",
    "a lone surrogate": lambda _: b'{"a": "\\ud800", "\\udfff": 1}',
    "a raw surrogate": lambda _: b'{"a": "\xed\xa0\x80"}',
    "one key twice": lambda _: b'{"a": 1, "a": 2}',
    "TOML with one key twice": lambda _: b"a = 1\na = 2\n",
    "TOML of dates": lambda _: b"a = 9999-12-31T23:59:59Z\nb = 25:61:61\n",
    "TOML of other types": lambda _: (
        b"show = 1\nrule = 'x'\ngraph = []\nstore = {}\n[inputs]\n[nodes.a.b.c.d]\n"
    ),
    "one long line": lambda _: b"a" * 1_000_000,
    "escapes": lambda _: b"\x1b]0;owned\x07\x1b[2J\x9b31m\n",
}
"""What a file holds, made of what it should hold."""


def _directory(path: Path) -> Path:
    path.mkdir()
    return path


def _pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _link(path: Path, to: str) -> Path:
    path.symlink_to(to)
    return path


PLACES: dict[str, Callable[[Path], Path]] = {
    "missing": lambda path: path,
    "a directory": _directory,
    "a pipe that nobody writes to": _pipe,
    "a link to itself": lambda path: _link(path, path.name),
    "a link to nothing": lambda path: _link(path, "gone"),
    "a device without an end": lambda _: Path("/dev/zero"),
    "an empty device": lambda _: Path("/dev/null"),
    "a file that can't be read": lambda _: Path("/proc/self/mem"),
    "below a file": lambda path: (path.write_bytes(b""), path / "file")[1],
    "a name that is too long": lambda path: path.with_name("n" * 300),
}
"""What stands where a file should; root may read files of any mode, so the kernel refuses one."""


def odd_files(folder: Path, good: bytes, suffix: str = "") -> Iterator[tuple[str, Path]]:
    """Each odd file, with what is odd about it.

    Args:
        good: what the command takes.
    """
    for number, (what, make) in enumerate(CONTENTS.items()):
        path = folder / f"odd-{number}{suffix}"
        path.write_bytes(make(good))
        yield what, path
    for number, (what, put) in enumerate(PLACES.items()):
        yield what, put(folder / f"place-{number}{suffix}")


VALUES: dict[str, Any] = {
    "over 64 bits": 1 << 64,
    "just over 63 bits": 1 << 63,
    "below 63 bits": -(1 << 63) - 1,
    "the largest": (1 << 63) - 1,
    "below zero": -1,
    "a fraction": 0.5,
    "true": True,
    "null": None,
    "text": "x",
    "no hash": "sha256:zz",
    "a lone surrogate": "\ud800",
    "a control": "\x00\x1b[2J\u202e",
    "a list": [],
    "a full list": [1, [2]],
    "an object": {},
    "a full object": {"a": {"b": 1}},
}
"""What may stand in the place of any value of JSON."""


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside a value of JSON, and of each that holds some."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield (*path, key)
        yield from leaves(part, (*path, key))


def put(value: Any, path: tuple[Any, ...], new: Any) -> None:
    """Put another value in a place."""
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new
