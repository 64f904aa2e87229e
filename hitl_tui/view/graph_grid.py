"""A grid of characters, each with a role: texts and lines are put on it, rows of runs come out."""

from __future__ import annotations

from hitl_tui.view.cells import cells

Run = tuple[str, str]
"""A text and its role, a name that the graph pane has a style for."""
UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
_JOINTS = {
    UP: "│", DOWN: "│", UP | DOWN: "│", LEFT: "─", RIGHT: "─", LEFT | RIGHT: "─",
    DOWN | RIGHT: "╭", DOWN | LEFT: "╮", UP | RIGHT: "╰", UP | LEFT: "╯",
    UP | DOWN | RIGHT: "├", UP | DOWN | LEFT: "┤", DOWN | LEFT | RIGHT: "┬",
    UP | LEFT | RIGHT: "┴", 15: "┼",
}  # fmt: skip


class Grid:
    """Cells from the upper left corner, x to the right and y down."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], Run] = {}
        self._lines: dict[tuple[int, int], tuple[int, str, str]] = {}

    def put(self, x: int, y: int, text: str, role: str) -> None:
        """Write from a cell on; a wide character takes two, a mark stays with what it stands on."""
        for char in text:
            wide = cells(char)
            if wide:
                self._cells[x, y] = (char, role)
                if wide > 1:
                    self._cells[x + 1, y] = ("", role)
                x += wide
            elif (x - 1, y) in self._cells:
                before = x - 1 if self._cells[x - 1, y][0] else x - 2
                self._cells[before, y] = (self._cells[before, y][0] + char, role)

    def line(self, x: int, y: int, sides: int, role: str, group: str) -> None:
        """Let a line run through a cell; it joins those of its group and only crosses others.

        Args:
            sides: where it leaves the cell, of UP, DOWN, LEFT and RIGHT.
        """
        old, old_role, old_group = self._lines.get((x, y), (0, role, group))
        if old and old_group != group and not (sides & 12 and old & 12):
            # Lanes that cross without touching: the vertical one stays whole.
            sides, role, group = (sides, role, group) if sides & 3 else (old, old_role, old_group)
        else:
            sides |= old
            role = "route" if "route" in (role, old_role) else role
        self._lines[x, y] = (sides, role, group)

    def draw_lines(self) -> None:
        """Make characters of the lines there are; what is put later stands over them."""
        for at, (sides, role, _) in self._lines.items():
            self._cells[at] = (_JOINTS[sides], role)

    def is_free(self, x: int, y: int) -> bool:
        """Whether nothing stands in a cell."""
        return (x, y) not in self._cells

    def room(self, x: int, y: int, limit: int) -> int:
        """Free cells from one on, up to a column; one is left before what stands there."""
        count = 0
        while x + count < limit and self.is_free(x + count, y):
            count += 1
        return count - 1 if x + count < limit else count

    def row(self, y: int, width: int) -> tuple[Run, ...]:
        """A row as runs of one role each."""
        runs: list[Run] = []
        blank = (" ", "edge")
        for x in range(width):
            char, role = self._cells.get((x, y), blank)
            if runs and runs[-1][1] == role:
                runs[-1] = (runs[-1][0] + char, role)
            else:
                runs.append((char, role))
        return tuple(runs)
