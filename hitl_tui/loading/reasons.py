"""Reads the file of reasons that reviewers pick from: TOML, or a text with one reason a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from hitl_tui.engine.commands.command import LONGEST_REASON, MOST_REASONS
from hitl_tui.engine.state.values import is_name
from hitl_tui.engine.thread.measures import Reason
from hitl_tui.errors import UsageError
from hitl_tui.given_files import expanded, read_given, text_of

_LONGEST: Final = 500


def read_reasons(path: str | Path) -> tuple[Reason, ...]:
    """Read reasons to pick from; a line or a key is `id: what it means`, or just the reason.

    Raises:
        UsageError: the file can't be read, or a reason in it can't be counted; names the line.
    """
    file = expanded(path)
    pairs = _from_toml(file) if file.suffix == ".toml" else _from_text(file)
    reasons: list[Reason] = []
    for place, name, text in pairs:
        if problem := _problem(name, text, reasons):
            raise UsageError(f"{place}: {problem}", "docs/configuration.md has an example")
        reasons.append(Reason(name, text))
    if not reasons:
        raise UsageError(f"{file} has no reasons", "write one reason a line")
    return tuple(reasons)


def _problem(name: str, text: Any, before: list[Reason]) -> str:
    if not is_name(name) or not name.isprintable() or len(name) > LONGEST_REASON:
        return f"the reason {name!r:.60} must be one line of at most {LONGEST_REASON} characters"
    if not is_name(text) or not text.isprintable() or len(text) > _LONGEST:
        return f"what {name!r} means must be one line of at most {_LONGEST} characters"
    if any(reason.id == name for reason in before):
        return f"the reason {name!r} is there twice"
    return f"there are more than {MOST_REASONS} reasons" if len(before) == MOST_REASONS else ""


def _from_toml(file: Path) -> list[tuple[str, str, Any]]:
    from hitl_tui.loading.toml import read_toml

    toml = read_toml(file)
    return [(toml.place(name), name, text) for name, text in toml.values.items()]


def _from_text(file: Path) -> list[tuple[str, str, Any]]:
    try:
        lines = text_of(read_given(file)).splitlines()
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} isn't UTF-8 text (byte {error.start})", "save the file as UTF-8") from None
    found: list[tuple[str, str, Any]] = []
    for number, line in enumerate(map(str.strip, lines), 1):
        if line and not line.startswith("#"):
            name, colon, text = line.partition(": ")
            found.append((f"{file}:{number}", name.strip(), text.strip() if colon else line))
    return found
