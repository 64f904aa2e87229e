"""What differs between two states, as one reads it: by channel, the changed lines with some around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hitl_tui.view.compare import Compared
from hitl_tui.view.diff import DiffLine, value_diff
from hitl_tui.view.spans import Line, Role, Span, untrusted

_CONTEXT: Final = 2
_MOST: Final = 400
_SIGNS: Final = {"same": "    ", "added": "  + ", "removed": "  - "}
_ROLES: Final[dict[str, Role]] = {"same": "dim", "added": "added", "removed": "removed"}


def near_changes(lines: Sequence[DiffLine]) -> tuple[list[DiffLine | None], int]:
    """The changed lines and those around them, None where some were left out; and how many more there are."""
    near = [at for at, line in enumerate(lines) if line.kind != "same"]
    wanted = sorted(
        {at + by for at in near for by in range(-_CONTEXT, _CONTEXT + 1)} & set(range(len(lines)))
    )
    shown: list[DiffLine | None] = []
    last = -1
    for at in wanted[:_MOST]:
        if at > last + 1:
            shown.append(None)
        shown.append(lines[at])
        last = at
    return shown, max(0, len(wanted) - _MOST)


def difference(rows: Sequence[Compared]) -> tuple[Line, ...]:
    """What differs, in sanitised lines; () where nothing does.  Private channels are named only."""
    return tuple(line for row in rows if row.change != "same" for line in _channel(row))


def _channel(row: Compared) -> Iterator[Line]:
    """A channel that differs: its name and how it differs, then the lines."""
    name = untrusted(row.channel, "name")
    if row.change == "private":
        yield name, Span(": [private], not compared", "dim")
        return
    yield name, Span(f": {row.change}", "dim")
    shown, left = near_changes(value_diff(row.before, row.after))
    for line in shown:
        if line is None:
            yield (Span("    …", "dim"),)
        else:
            yield (Span(_SIGNS[line.kind] + line.text, _ROLES[line.kind]),)
    if left:
        yield (Span(f"    … {left:,} more lines", "dim"),)
