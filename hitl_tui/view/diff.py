"""What changed between two values, and values as lines, at a bounded cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

ValueMode = Literal["text", "json"]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a diff, sanitised."""

    kind: Literal["same", "added", "removed"]
    text: str


def text_diff(before: str, after: str) -> tuple[DiffLine, ...]:
    """The lines of both texts, in order."""
    raise NotImplementedError


def changed_lines(before: str, after: str) -> int:
    """How many lines were added or removed."""
    raise NotImplementedError


def value_diff(before: Any, after: Any) -> tuple[DiffLine, ...]:
    """`text_diff` for texts; for other values the diff of their pretty JSON."""
    raise NotImplementedError


def value_lines(value: Any, mode: ValueMode) -> Sequence[str]:
    """A value as sanitised lines, each made when it is asked for: `len(lines)` and `lines[i]`."""
    raise NotImplementedError
