"""A power cut: what a traced process had on the disk at a moment, without all that it had not synced.

The strictest disk there may be: of a file what was there at its last fsync, of a directory the names that it
had at its own.  `strace` tells what a real process asks of the system.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

_CALLS = (
    "openat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,write,pwrite64,ftruncate,fsync,"
    "fdatasync,sync,syncfs"
)
_LINE = re.compile(r"\d+ +(\w+)\((.*)\) += (-?\d+)")
_UNFINISHED = re.compile(r"(\d+) +(.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)$")
_HANDLE = re.compile(r"\d+<((?:\\x[0-9a-f]{2}|[^>\\])*)>")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


@dataclass
class _File:
    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""

    def sync(self) -> None:
        self.synced = bytes(self.data)


@dataclass
class _Directory:
    names: dict[str, _File | _Directory] = field(default_factory=dict)
    synced: dict[str, _File | _Directory] = field(default_factory=dict)

    def sync(self) -> None:
        self.synced = dict(self.names)


class Disk:
    """A directory as a process changes it, and what a power cut leaves of it."""

    def __init__(self, root: Path) -> None:
        self._place = str(root)
        self._root = _Directory()

    def at(self, path: str) -> _File | _Directory | None:
        """What is at a path now, None outside the directory."""
        node: _File | _Directory | None = self._root
        if path != self._place and not path.startswith(self._place + "/"):
            return None
        for name in filter(None, path[len(self._place) :].split("/")):
            node = node.names.get(name) if isinstance(node, _Directory) else None
        return node

    def put(self, path: str, node: _File | _Directory | None) -> None:
        """Give something a name, or with None take the name away."""
        above, _, name = path.rpartition("/")
        directory = self.at(above)
        if isinstance(directory, _Directory):
            directory.names.pop(name, None)
            if node is not None:
                directory.names[name] = node

    def cut(self, to: Path) -> Path:
        """Write what a power cut at this moment leaves into a new directory."""
        _write(self._root, to)
        return to

    def sync_all(self) -> None:
        """What the call `sync` does."""
        nodes: list[_File | _Directory] = [self._root]
        while nodes:
            node = nodes.pop()
            node.sync()
            if isinstance(node, _Directory):
                nodes += node.names.values()


def _write(directory: _Directory, to: Path) -> None:
    to.mkdir()
    for name, node in directory.synced.items():
        if isinstance(node, _Directory):
            _write(node, to / name)
        else:
            (to / name).write_bytes(node.synced)


@cache
def untraceable() -> str:
    """Why no process can be traced here, "" where one can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(["strace", "-f", "-qq", "true"], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"strace can't trace here: {tried.stderr.strip()[:100]}"


def moments(argv: Sequence[str], root: Path, cwd: Path) -> Iterator[tuple[str, Disk]]:
    """Run a process to its end; then each of its syncs and of the lines that it says, with the disk then.

    Args:
        root: the empty directory that is looked at.
    """
    with tempfile.NamedTemporaryFile("r", suffix=".trace") as trace:
        tracer = ["strace", "-f", "-qq", "-y", "-xx", "-s", str(1 << 24), "-e", f"trace={_CALLS}"]
        ran = subprocess.run(
            [*tracer, "-o", trace.name, *argv],
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        disk = Disk(root)
        for line in _whole(trace):
            call = _LINE.match(line)
            if call and int(call[3]) >= 0 and (said := _apply(disk, call[1], call[2])):
                yield said, disk


def _whole(lines: Iterator[str]) -> Iterator[str]:
    """The calls of a trace, each in the place where it returned."""
    started: dict[str, str] = {}
    for line in lines:
        if part := _UNFINISHED.match(line):
            started[part[1]] = part[2]
        elif part := _RESUMED.match(line):
            yield f"{part[1]} {started.pop(part[1])}{part[2]}"
        else:
            yield line


def _text(hexadecimal: str) -> bytes:
    return bytes.fromhex(hexadecimal.replace("\\x", ""))


def _path(found: str) -> str:
    return _text(found).decode() if found.startswith("\\x") else found


def _apply(disk: Disk, call: str, given: str) -> str:
    """Do to the disk what a call did; returns what there is to stop at, "" for nothing."""
    texts = [_text(found) for found in _TEXT.findall(given)]
    handle = _HANDLE.match(given)
    path = _path(handle[1]) if handle else ""
    node = disk.at(path) if path else None
    if call in ("fsync", "fdatasync") and node is not None:
        node.sync()
        return f"synced {path}"
    if call in ("sync", "syncfs"):
        disk.sync_all()
        return "synced"
    if call == "write" and given.startswith("1<"):
        return texts[0].decode().strip()
    if isinstance(node, _File):
        _change(node, call, given, texts)
    elif texts and call not in ("write", "pwrite64"):
        _rename(disk, call, given, [text.decode() for text in texts])
    return ""


def _change(node: _File, call: str, given: str, texts: Sequence[bytes]) -> None:
    last = given.rpartition(", ")[2]
    if call == "ftruncate":
        size = int(last)
        node.data = node.data[:size].ljust(size, b"\0")
        return
    at = int(last) if call == "pwrite64" else len(node.data)
    node.data = node.data.ljust(at, b"\0")
    node.data[at : at + len(texts[0])] = texts[0]


def _rename(disk: Disk, call: str, given: str, paths: Sequence[str]) -> None:
    node = disk.at(paths[0])
    if call == "openat" and "O_CREAT" in given and node is None:
        disk.put(paths[0], _File())
    elif call == "openat" and "O_TRUNC" in given and isinstance(node, _File):
        node.data = bytearray()
    elif call.startswith("mkdir"):
        disk.put(paths[0], _Directory())
    elif call.startswith("rename"):
        disk.put(paths[0], None)
        disk.put(paths[1], node)
    elif call.startswith(("unlink", "rmdir")):
        disk.put(paths[0], None)
