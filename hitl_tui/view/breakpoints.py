"""Shows breakpoints as lines, below the graph and in their list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from hitl_tui.engine.graph.description import GraphInfo
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.view.glyphs import UNICODE
from hitl_tui.view.spans import Line, Role, trusted, untrusted

_PLACE: Final = 60
_TEXT: Final = 200
_INSIDE = re.compile(r"[/\[]")


def breakpoint_line(point: Breakpoint, graph: GraphInfo, hits: Mapping[str, int]) -> Line:
    """Return a line about a breakpoint: whether it is on, where, and when it stops.

    ● score  hit 3 of 5
    """
    from hitl_tui.drivers.breakpoints import describe, fits

    off = point.off or not fits(point, graph)
    stops = not (off or point.log)
    role: Role = "dim" if off else "name"
    line: Line = (
        trusted(f"{UNICODE.breakpoint if stops else UNICODE.logpoint} ", "dim" if off else "human"),
    )
    if point.kind != "before":
        line += (trusted(f"{point.kind} ", "dim"),)
    line += (untrusted(point.place or ("" if point.kind == "error" else "any"), role, _PLACE),)
    if point.hit:
        hit = min(hits.get(describe(point), 0), point.hit)
        line += (trusted(f"  hit {hit} of {point.hit}", "dim"),)
    if point.log:
        line += (trusted("  log ", "dim"), untrusted(f"“{point.log}”", "plain", _TEXT))
    if point.condition:
        line += (untrusted(f"  {point.condition}", "plain", _TEXT),)
    if point.off:
        line += (trusted("  off", "dim"),)
    elif off:
        line += (trusted("  not in this graph", "warning"),)
    return line


def marked_nodes(points: Iterable[Breakpoint], graph: GraphInfo) -> dict[str, bool]:
    """Return the nodes with breakpoints, each with whether a run may stop there."""
    names = {node.name for node in graph.nodes}
    marks: dict[str, bool] = {}
    for point in points:
        if point.kind in ("before", "after", "error") and point.place:
            node = point.place if point.place in names else _INSIDE.split(point.place)[0]
            marks[node] = marks.get(node, False) or not (point.off or point.log)
    return marks
