"""The boxes of a graph's SVG picture: each kind of node has a shape of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from hitl_tui.engine.graphs.description import NodeInfo, NodeKind
from hitl_tui.engine.log.records import END, START
from hitl_tui.engine.reports.drawing import made_of
from hitl_tui.view.cells import cells
from hitl_tui.view.sanitise import sanitise_line

STACKED: Final = 10
"""How far the boxes of a stack stand out above and to the right."""
_CHAR: Final = 8.4
_SMALL_CHAR: Final = 7.3
_ONE_LINE: Final = 38
_TWO_LINES: Final = 54
_MEMBER: Final = 30
_LONGEST: Final = 60


def words(text: str) -> str:
    """Somebody's name for a node or a way, as it may be shown."""
    return sanitise_line(text, _LONGEST)


@dataclass
class Box:
    """A node: where it is, how large, and what it is made of.

    Args:
        made: its second line, in short what it is made of.
        members: of a parallel: what is drawn inside it.
        room: width and height of the picture inside it, zeros for none.
    """

    name: str
    kind: NodeKind
    made: str
    width: float
    height: float
    members: tuple[str, ...] = ()
    room: tuple[float, float] = (0.0, 0.0)
    left: float = 0.0
    top: float = 0.0

    @classmethod
    def of(cls, name: str, node: NodeInfo | None, room: tuple[float, float], *, expand: bool) -> Box:
        """The box of a node; START and END are none.

        Args:
            expand: members of a parallel are drawn, not only named.
        """
        kind: NodeKind = node.kind if node else "node"
        members = tuple(words(member.name) for member in node.members) if node else ()
        made = made_of(node) if node else ""
        if kind == "subgraph":
            made = f"graph {made}"
        elif members and not expand:
            made = f"{', '.join(members)} {made}"
        made = words(made)
        drawn = members if expand else ()
        texts = [cells(words(name)) * _CHAR + 44, cells(made) * _SMALL_CHAR + 44]
        texts.append(sum(cells(member) * _SMALL_CHAR + 28 for member in drawn) + 24)
        height = float(_TWO_LINES if made else _ONE_LINE) + (_MEMBER + 12 if drawn else 0) + room[1]
        return cls(name, kind, made, max(*texts, room[0] + 16 if room[0] else 0), height, drawn, room)

    @property
    def above(self) -> float:
        """What stands out above it."""
        return STACKED if self.kind == "map" else 0

    @property
    def enter(self) -> float:
        """Where a way from above ends."""
        return self.top - self.above

    @property
    def right(self) -> float:
        """Where a way leaves to the side."""
        return self.left + self.width + self.above

    @property
    def bottom(self) -> float:
        """Where a way leaves below."""
        return self.top + self.height


def inner_top(box: Box) -> float:
    """How far below a box's top the picture inside it begins."""
    return _TWO_LINES - 8


def box_parts(box: Box, state: str, count: int) -> list[str]:
    """The parts of a box.

    Args:
        state: more classes, as " visited".
        count: how often its node ran.
    """
    round_ = _ONE_LINE / 2 if box.name in (START, END) else 8
    parts = []
    if box.kind == "map":
        parts = [_rect(box, state, round_, STACKED), _rect(box, state, round_, STACKED / 2)]
    parts.append(_rect(box, f"{state} open" if box.room[0] else state, round_))
    if box.kind == "subgraph":
        parts.append(_rect(box, f"{state} inner", round_ - 3, inset=4))
    if box.kind == "parallel":
        for x in (box.left + 8, box.left + box.width - 8):
            parts.append(f'<path class="node inner{state}" d="M{x:g} {box.top:g}v{box.height:g}"/>')
    middle = box.left + box.width / 2
    mark = "▶ " if state == " current" else ""
    parts.append(_text("", middle, box.top + 24, f"{mark}{words(box.name)}"))
    if box.made:
        parts.append(_text("made", middle, box.top + 42, box.made))
    parts += _members(box)
    if count:
        parts.append(f'<text class="count" x="{box.left + 4:g}" y="{box.bottom + 16:g}">×{count}</text>')
    return parts


def _rect(box: Box, more: str, round_: float, out: float = 0, inset: float = 0) -> str:
    return (
        f'<rect class="node{more}" x="{box.left + out + inset:g}" y="{box.top - out + inset:g}" '
        f'width="{box.width - 2 * inset:g}" height="{box.height - 2 * inset:g}" rx="{round_:g}"/>'
    )


def _text(role: str, x: float, y: float, text: str) -> str:
    role = f' class="{role}"' if role else ""
    return f'<text{role} x="{x:g}" y="{y:g}" text-anchor="middle">{escape(text)}</text>'


def _members(box: Box) -> list[str]:
    """The nodes of a parallel beside each other."""
    wide = [cells(member) * _SMALL_CHAR + 20 for member in box.members]
    x = box.left + (box.width - sum(wide) - 8 * max(len(wide) - 1, 0)) / 2
    y = box.top + _TWO_LINES
    parts = []
    for member, width in zip(box.members, wide, strict=True):
        parts.append(
            f'<rect class="node open" x="{x:g}" y="{y:g}" width="{width:g}" height="{_MEMBER}" rx="6"/>'
        )
        parts.append(_text("made", x + width / 2, y + 20, member))
        x += width + 8
    return parts
