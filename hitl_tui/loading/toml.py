"""TOML with positions: what a file holds, and on which line a key stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from hitl_tui.errors import UsageError

_TABLE = re.compile(r"^\s*\[\[?\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"""^\s*("[^"]*"|'[^']*'|[\w-]+)\s*[=.]""")


class TomlFile(msgspec.Struct, frozen=True):
    """A parsed file."""

    path: Path
    text: str
    values: dict[str, Any]

    def where(self, key: str, table: str = "") -> str:
        """`file:line` of a key of a table ("" for the top), `file` where it can't be told."""
        current = ""
        for number, line in enumerate(self.text.splitlines(), start=1):
            if header := _TABLE.match(line):
                current = header[1]
                if not key and current == table:
                    return f"{self.path}:{number}"
            elif current == table and (found := _KEY.match(line)) and found[1].strip("\"'") == key:
                return f"{self.path}:{number}"
        return str(self.path)


def read_toml(path: Path) -> TomlFile:
    """Read a TOML file.

    Raises:
        UsageError: it can't be read, or isn't TOML; names file, line and column.
    """
    import tomli

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} isn't UTF-8 text (byte {error.start})") from None
    try:
        return TomlFile(path, text, tomli.loads(text))
    except tomli.TOMLDecodeError as error:
        raise UsageError(
            f"{path}:{error.lineno}:{error.colno}: {error.msg}", "the file must be TOML"
        ) from None
    except (ValueError, RecursionError) as error:
        # Numbers of thousands of digits, lists nested hundreds deep: the parser gives up without a line.
        raise UsageError(f"{path}: {error}", "the file must be TOML of a sensible size") from None
