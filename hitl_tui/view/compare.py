"""Two states side by side: which channels differ and how, and the lines of two values beside each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, Literal

from hitl_tui.engine.channels.canonical import equal
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.view.diff import value_diff
from hitl_tui.view.value_lines import value_lines

Change = Literal["same", "changed", "added", "removed", "private"]
MARKS: Final[dict[Change, str]] = {"same": "=", "changed": "≠", "added": "+", "removed": "-", "private": "·"}


@dataclass(frozen=True, slots=True)
class Compared:
    """A channel in two states; `before` or `after` is None where it isn't in that state."""

    channel: str
    change: Change
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Pair:
    """A line of each side, sanitised; None where a side has none."""

    left: str | None
    right: str | None
    same: bool


def compare_states(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Compared, ...]:
    """Each channel of either state with how it differs; private ones are named, not compared."""
    rows = []
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        change: Change
        if old is PRIVATE or new is PRIVATE:
            rows.append(Compared(name, "private", PRIVATE, PRIVATE))
            continue
        if name not in before or name not in after:
            change = "added" if name in after else "removed"
        else:
            change = "same" if equal(old, new) else "changed"
        rows.append(Compared(name, change, old, new))
    return tuple(rows)


def side_by_side(row: Compared) -> tuple[Pair, ...]:
    """The values of a channel, line by line: what is the same stands at the same height."""
    if row.change == "private":
        return (Pair("[private]", "[private]", True),)
    if row.change == "added":
        return tuple(Pair(None, line, False) for line in value_lines(row.after, "text"))
    if row.change == "removed":
        return tuple(Pair(line, None, False) for line in value_lines(row.before, "text"))
    pairs: list[Pair] = []
    left: list[str] = []
    right: list[str] = []

    as_json = not (isinstance(row.before, str) and isinstance(row.after, str))

    def put() -> None:
        # The last item of a list has no comma; one that follows it must not make it look changed.
        while as_json and left and right and left[0].rstrip(",") == right[0].rstrip(","):
            pairs.append(Pair(left.pop(0), right.pop(0), True))
        pairs.extend(Pair(old, new, False) for old, new in zip_longest(left, right))
        left.clear()
        right.clear()

    for line in value_diff(row.before, row.after):
        if line.kind == "same":
            put()
            pairs.append(Pair(line.text, line.text, True))
        else:
            (left if line.kind == "removed" else right).append(line.text)
    put()
    return tuple(pairs)
