"""TOML with positions: what a file holds, and on which line a key stands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from hitl_tui.errors import UsageError
from hitl_tui.loading.positions import line_index, line_of


class TomlFile(msgspec.Struct, frozen=True):
    """A parsed file."""

    path: Path
    text: str
    values: dict[str, Any]

    def where(self, key: str, table: str = "") -> str:
        """`file:line` of a key of a table ("" for the top), `file` where it can't be told."""
        return self.place(*(name for name in (table, key) if name))

    def place(self, *path: str) -> str:
        """`file:line` of a path of keys, or of the nearest table around it."""
        line = line_of(line_index(self.text), path)
        return f"{self.path}:{line}" if line else str(self.path)

    def named_files(self) -> list[Path]:
        """The files that its texts name, also as in `file.py:function`, relative to where it is."""
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
        text = path.read_text(encoding="utf-8-sig")  # editors on Windows begin a file with a mark
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
        # Numbers of thousands of digits, lists nested hundreds deep: the parser gives up without a line.
        raise UsageError(f"{path}: {error}", "the file must be TOML of a sensible size") from None
