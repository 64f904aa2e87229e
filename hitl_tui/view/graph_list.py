"""A graph as a list of nodes with where each leads, and what any picture of a graph is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hitl_tui.drivers.protocol import EdgeInfo
from hitl_tui.engine.graphs.description import NodeKind
from hitl_tui.engine.log.records import END
from hitl_tui.engine.reports.looks import Look
from hitl_tui.view.cells import cut
from hitl_tui.view.glyphs import UNICODE
from hitl_tui.view.graph_grid import Run
from hitl_tui.view.sanitise import sanitise_line

NO_KINDS: Mapping[str, NodeKind] = {}
_LONGEST = 80


@dataclass(frozen=True)
class Picture:
    """Rows to show, the row of each node, and whether it is the full picture or the plain list."""

    rows: tuple[tuple[Run, ...], ...]
    node_rows: Mapping[str, int]
    plain: bool = False


def plain_list(
    order: Sequence[str],
    edges: Sequence[EdgeInfo],
    look: Look,
    width: int,
    kinds: Mapping[str, NodeKind] = NO_KINDS,
) -> Picture:
    """Every node on a row of its own, followed by the nodes it leads to."""
    rows: list[tuple[Run, ...]] = []
    places: dict[str, int] = {}
    for name in order:
        if name == END:
            continue
        places[name] = len(rows)
        here = name == look.current
        count = f" {kinds[name]}" if kinds.get(name, "node") != "node" else ""
        count += f" ×{look.visits[name]}" if look.visits.get(name) else ""
        count += f" {look.notes[name]}" if look.notes.get(name) else ""
        head = (
            ("▶" if here else " ")
            + (stop_glyph(look, name) or " ")
            + cut(words(name), width - 2 - len(count))
        )
        rows.append(((head, "current" if here else "node"), (count, "count")))
        for edge in edges:
            if edge.source == name:
                role = "route" if (name, edge.target) in look.taken else "edge"
                way = f"→ {words(edge.target)}"
                text = f"{words(edge.label)} {way}" if edge.label else way
                rows.append((("    " + cut(text, width - 4), role),))
    return Picture(tuple(rows), places, plain=True)


def stop_glyph(look: Look, name: str) -> str:
    """The glyph of a breakpoint before a node, "" for none."""
    condition = look.breakpoints.get(name)
    return "" if condition is None else UNICODE.condition if condition else UNICODE.breakpoint


def words(text: str) -> str:
    """Somebody's name for a node or a way, as it may be shown."""
    return sanitise_line(text, _LONGEST)
