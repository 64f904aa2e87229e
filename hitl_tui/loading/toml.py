"""TOML with positions: the values in a file, and the line of each key."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from hitl_tui.errors import UsageError
from hitl_tui.given_files import read_given, text_of

KeyPath: TypeAlias = tuple[str | int, ...]

_BLANK = re.compile(r"[ \t\r\n]*(?:#[^\n]*[ \t\r\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}\n#]*")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}'
    r"|'''(?:[^']|'(?!''))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)


def line_index(text: str) -> dict[KeyPath, int]:
    """Return line numbers, from 1, by path; a path is keys and indexes in arrays, as in ("edges", 0, "to").

    Keys after a value that is nested too deeply have none.
    """
    scanner = _Scanner(text)
    with suppress(RecursionError):
        scanner.scan()
    return scanner.lines


def line_of(index: Mapping[KeyPath, int], path: KeyPath) -> int | None:
    """Return the line of a path, or of the nearest table around it."""
    for end in range(len(path), 0, -1):
        if path[:end] in index:
            return index[path[:end]]
    return None


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n")
        self._at = 0
        self._line = 1
        self.lines: dict[KeyPath, int] = {}
        self._lengths: dict[KeyPath, int] = {}
        self._counted_to = 0

    def scan(self) -> None:
        """Fill `lines`."""
        table: KeyPath = ()
        self._skip()
        while self._at < len(self._text):
            if self._peek("["):
                table = self._header()
            else:
                self._pair(table)
            self._skip()

    def _header(self) -> KeyPath:
        arrays = self._peek("[[")
        self._at += 2 if arrays else 1
        keys = self._key()
        self._at += 2 if arrays else 1
        path = self._resolve(keys[:-1])
        path = (*path, keys[-1])
        if arrays:
            self._note(path)
            number = self._lengths.get(path, 0)
            self._lengths[path] = number + 1
            path = (*path, number)
        self._note(path)
        return path

    def _resolve(self, keys: KeyPath) -> KeyPath:
        """Return a header's path: the name of an array of tables means its newest table."""
        path: KeyPath = ()
        for key in keys:
            path = (*path, key)
            if path in self._lengths:
                path = (*path, self._lengths[path] - 1)
            self._note(path)
        return path

    def _pair(self, table: KeyPath) -> None:
        path = table
        for key in self._key():
            path = (*path, key)
            self._note(path)
        self._at += 1  # the equals sign
        self._spaces()
        self._value(path)

    def _key(self) -> KeyPath:
        keys: list[str | int] = []
        while True:
            self._spaces()
            quoted = _STRING.match(self._text, self._at)
            match = quoted or _BARE.match(self._text, self._at)
            if match is None:
                raise ValueError(f"no key at {self._at}")
            self._at = match.end()
            keys.append(_unquoted(match[0]) if quoted else match[0])
            self._spaces()
            if not self._peek("."):
                return tuple(keys)
            self._at += 1

    def _value(self, path: KeyPath) -> None:
        if self._peek("["):
            self._at += 1
            self._members(path, "]")
        elif self._peek("{"):
            self._at += 1
            self._members(path, "}")
        else:
            match = _STRING.match(self._text, self._at) or _SCALAR.match(self._text, self._at)
            self._at = match.end() if match else self._at + 1

    def _members(self, path: KeyPath, closing: str) -> None:
        number = 0
        self._skip()
        while self._at < len(self._text) and not self._peek(closing):
            if closing == "]":
                self._note((*path, number))
                self._value((*path, number))
                number += 1
            else:
                self._pair(path)
            self._skip()
            if self._peek(","):
                self._at += 1
                self._skip()
        self._at += 1

    def _note(self, path: KeyPath) -> None:
        self._line += self._text.count("\n", self._counted_to, self._at)
        self._counted_to = self._at
        self.lines.setdefault(path, self._line)

    def _skip(self) -> None:
        match = _BLANK.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _spaces(self) -> None:
        while self._peek(" ") or self._peek("\t"):
            self._at += 1

    def _peek(self, mark: str) -> bool:
        return self._text.startswith(mark, self._at)


def _unquoted(key: str) -> str:
    if key.startswith("'") or "\\" not in key:
        return key[1:-1]
    import tomli

    return next(iter(tomli.loads(f"{key} = 0")))


class TomlFile(msgspec.Struct, frozen=True):
    """A parsed file."""

    path: Path
    text: str
    values: dict[str, Any]

    def place(self, *path: str | int) -> str:
        """Return `file:line` of a path of keys, or of the nearest table around it.

        `file` if that is not known.
        """
        line = line_of(line_index(self.text), path)
        return f"{self.path}:{line}" if line else str(self.path)

    def named_files(self) -> list[Path]:
        """Return the files that its texts name, also as in `file.py:function`, relative to its directory."""
        heads = {head for text in _texts(self.values) for head in (text, text.rpartition(":")[0]) if head}
        return sorted(path for head in heads if os.path.isfile(path := self.path.parent / head))


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()


def read_toml(path: Path) -> TomlFile:
    """Read a TOML file.

    Raises:
        UsageError: it can't be read, or isn't TOML; names file, line and column.
    """
    import tomli

    try:
        text = text_of(read_given(path))
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} isn't UTF-8 text (byte {error.start})", "save the file as UTF-8") from None
    try:
        return TomlFile(path, text, tomli.loads(text))
    except tomli.TOMLDecodeError as error:
        raise UsageError(
            f"{path}:{error.lineno}:{error.colno}: {error.msg}", "the file must be TOML"
        ) from None
    except (ValueError, RecursionError) as error:
        # For numbers with thousands of digits, or lists nested hundreds deep, the parser names no line.
        raise UsageError(f"{path}: {error}", "the file must be TOML of a sensible size") from None
