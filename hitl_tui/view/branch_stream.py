"""What the branches of a node write while they run, each under its own name, in the rows of a small pane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from hitl_tui.view.branch_words import counted, phase_words
from hitl_tui.view.inside import BranchView, InsideView
from hitl_tui.view.sanitise import sanitise, sanitise_line
from hitl_tui.view.spans import Line, trusted, untrusted

_NAME: Final = 40
_FEWEST: Final = 2
Wrap = Callable[[str, int], Sequence[str]]


def branch_stream(inside: InsideView, width: int, height: int, wrap: Wrap) -> list[Line]:
    """Rows for a pane of `width` times `height` cells: those that run first, then who ended last.

    Args:
        wrap: breaks a sanitised line into rows of a width.
    """
    every = inside.in_order()
    running = [one for one in every if one.phase == "running"]
    shown = [one for one in running if one.text] or [one for one in every if one.text][-1:]
    silent = [one for one in running if not one.text]
    rows: list[Line] = []
    words = counted(inside)
    if words:
        rows.append((untrusted(inside.node, "node", _NAME), trusted(f" · {words}", "dim")))
    room = max(height - len(rows), _FEWEST)
    most = max(1, room // _FEWEST)
    left_out = len(shown) - most
    if left_out > 0 or silent:
        room -= 1
        most = max(1, room // _FEWEST)
    picked = shown[-most:]
    each = max(1, room // len(picked) - 1) if picked else 0
    for one in picked:
        rows += _branch(one, width, each, wrap)
    more = [one.path for one in (*shown[:-most], *silent)]
    if more:
        names = ", ".join(sanitise_line(path, _NAME) for path in more[:4])
        rest = f" and {len(more) - 4} more" if len(more) > 4 else ""
        rows.append((trusted(f"also running: {names}{rest}", "dim"),))
    return rows


def _branch(branch: BranchView, width: int, most: int, wrap: Wrap) -> list[Line]:
    """A branch's name and the newest rows of what it writes."""
    glyph, _, role = phase_words(branch.phase)
    who = [untrusted(branch.path, "node", _NAME)]
    by = branch.agent if branch.agent not in ("", branch.name) else ""
    who += [untrusted(f" · {part}", "dim", _NAME) for part in (by, branch.model) if part]
    # A row is at most so many characters that their end fills all rows.
    tail = branch.text[-(width * (most + 1) * 4) :]
    rows = [row for line in sanitise(tail).rstrip("\n").split("\n") for row in wrap(line, max(width - 2, 4))]
    return [(trusted(f"{glyph} ", role), *who), *((trusted("  "), trusted(row)) for row in rows[-most:])]
