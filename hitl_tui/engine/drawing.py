"""A graph as text for other tools: Mermaid and Graphviz (SPEC 5); and what a run has made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hitl_tui.engine.description import GraphInfo, NodeInfo
from hitl_tui.engine.records import END, START, Checkpoint, Cursor

_STEPS_FOLLOWED = 500


@dataclass(frozen=True)
class Look:
    """What a run makes of the picture: who is current, how often nodes ran, which edges were taken.

    `breakpoints` are the nodes before which it will stop, each with its condition; `notes` stand beside the
    names of nodes, as how many branches are done.
    """

    current: str | None = None
    visits: Mapping[str, int] = field(default_factory=dict)
    taken: frozenset[tuple[str, str]] = frozenset()
    breakpoints: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


def look_of(cursor: Cursor, checkpoints: Sequence[Checkpoint]) -> Look:
    """What a thread has made of its graph; its checkpoints come oldest first."""
    asks = cursor.pending[0].node if cursor.pending else None
    failed = cursor.error.node if cursor.error else None
    return Look(failed or asks or cursor.next_node, cursor.visits, taken_edges(checkpoints, cursor.head))


def taken_edges(checkpoints: Sequence[Checkpoint], until: int) -> frozenset[tuple[str, str]]:
    """The edges a run went along up to a step, as far as its newest checkpoints tell."""
    taken: set[tuple[str, str]] = set()
    before = START
    for point in checkpoints[-_STEPS_FOLLOWED:]:
        if point.step > until:
            break
        if point.node and point.source != "human":
            taken.add((before, point.node))
            before = point.node
    last = next((point for point in reversed(checkpoints) if point.step <= until), None)
    if last is not None and last.next_node is not None:
        taken.add((before, last.next_node))
    return frozenset(taken)


def to_mermaid(graph: GraphInfo, look: Look | None = None) -> str:
    """Mermaid's flowchart syntax; labels are quoted, so that no name can break out of its place.

    Args:
        look: what a run has made of the graph, marked where it is given.
    """
    look = look or Look()
    lines = ["flowchart TD", *_mermaid(graph, "n", "    ", look)]
    lines += _mermaid_marks(graph, lines, look)
    return "\n".join(lines) + "\n"


def _mermaid_marks(graph: GraphInfo, lines: Sequence[str], look: Look) -> list[str]:
    """Styles for the nodes a run was at and the edges it took."""
    ids = _ids(graph)
    marks = []
    visited = [key for name, key in ids.items() if look.visits.get(name) and name != look.current]
    if visited:
        marks.append("    classDef visited stroke:#0969da,stroke-width:2px")
        marks.append(f"    class {','.join(visited)} visited")
    if look.current in ids:
        marks.append("    classDef current stroke:#bf8700,stroke-width:4px")
        marks.append(f"    class {ids[look.current]} current")
    # Links are named by their place in the text, and those inside of subgraphs stand before ours.
    before = sum("-->" in line or ".->" in line for line in lines) - len(graph.edges)
    taken = [
        str(before + place)
        for place, edge in enumerate(graph.edges)
        if (edge.source, edge.target) in look.taken
    ]
    return [*marks, f"    linkStyle {','.join(taken)} stroke:#0969da,stroke-width:3px"] if taken else marks


def _mermaid(graph: GraphInfo, prefix: str, indent: str, look: Look) -> list[str]:
    """The nodes and edges of a graph; what a node is made of stands in a frame of its own."""
    ids = _ids(graph, prefix)
    nodes = {node.name: node for node in graph.nodes}
    lines = []
    for name, key in ids.items():
        node = nodes.get(name)
        if node is not None and (node.members or node.graph):
            lines.append(f'{indent}subgraph {key} ["{_entity(_title(node) + _count(name, look))}"]')
            inside = [
                f'{indent}    {key}_{place}["{_entity(member.name)}"]'
                for place, member in enumerate(node.members)
            ]
            lines += inside or _mermaid(node.graph or graph, f"{key}_", f"{indent}    ", Look())
            lines.append(f"{indent}end")
        elif node is not None and node.kind == "map":
            lines.append(f'{indent}{key}[["{_entity(_title(node) + _count(name, look))}"]]')
        else:
            text = _entity(name + _count(name, look))
            shape = f'(["{text}"])' if name in (START, END) else f'["{text}"]'
            lines.append(f"{indent}{key}{shape}")
    for edge in graph.edges:
        label = f'-. "{_entity(edge.label)}" .->' if edge.label else "-->"
        lines.append(f"{indent}{ids[edge.source]} {label} {ids[edge.target]}")
    return lines


def _title(node: NodeInfo) -> str:
    """A node's name, and in short what it is made of."""
    join = f", {node.join}" if node.join not in ("", "all") else ""
    made = {
        "map": f": each of {node.over}{join}",
        "parallel": f": at once{join}",
        "subgraph": f": {node.graph.name}" if node.graph else "",
    }
    return node.name + made.get(node.kind, "")


def to_dot(graph: GraphInfo, look: Look | None = None) -> str:
    """Graphviz's language; names and labels are quoted strings.

    Args:
        look: what a run has made of the graph, marked where it is given.
    """
    ids, look = _ids(graph), look or Look()
    nodes = {node.name: node for node in graph.nodes}
    lines = [f"digraph {_quoted(graph.name)} {{", "    node [shape=box, style=rounded];"]
    for name, key in ids.items():
        node = nodes.get(name)
        shape = ", shape=oval" if name in (START, END) else ""
        shape = ", peripheries=2" if node is not None and node.kind != "node" else shape
        label = _title(node) if node is not None else name
        if node is not None and node.members:
            label += f" ({', '.join(member.name for member in node.members)})"
        mark = ', color="#0969da", penwidth=2' if look.visits.get(name) else ""
        mark = ', color="#bf8700", penwidth=4' if name == look.current else mark
        lines.append(f"    {key} [label={_quoted(label + _count(name, look))}{shape}{mark}];")
    for edge in graph.edges:
        marks = [f"label={_quoted(edge.label)}, style=dashed"] if edge.label else []
        marks += ['color="#0969da", penwidth=3'] if (edge.source, edge.target) in look.taken else []
        label = f" [{', '.join(marks)}]" if marks else ""
        lines.append(f"    {ids[edge.source]} -> {ids[edge.target]}{label};")
    return "\n".join([*lines, "}"]) + "\n"


def _count(name: str, look: Look) -> str:
    count = look.visits.get(name)
    return f" ×{count}" if count else ""


def _ids(graph: GraphInfo, prefix: str = "n") -> dict[str, str]:
    names = [START, *(node.name for node in graph.nodes), END]
    used = {edge.source for edge in graph.edges} | {edge.target for edge in graph.edges}
    return {name: f"{prefix}{index}" for index, name in enumerate(names) if name in used}


def _entity(text: str) -> str:
    safe = {"&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;"}
    return "".join(safe.get(char, char if char.isprintable() else " ") for char in text)


def _quoted(text: str) -> str:
    printable = "".join(char if char.isprintable() else " " for char in text)
    return '"' + printable.replace("\\", "\\\\").replace('"', '\\"') + '"'
