"""A graph as text for other tools, Mermaid and Graphviz, with marks for what a run has done.

Specified in docs/spec/graphs.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.graph.description import GraphInfo, NodeInfo
from hitl_tui.engine.log.records import END, START, Checkpoint, Cursor
from hitl_tui.engine.log.store import Store

_STEPS_FOLLOWED = 500


class RunMarks(msgspec.Struct, frozen=True):
    """What a run marks in the picture: the current node, how often nodes ran, which edges were taken.

    `breakpoints` are the nodes with breakpoints, each with whether one of them stops; `notes` are shown next
    to the names of nodes, such as how many branches are done; `inside` has the marks of the newest subgraph
    runs.
    """

    current: str | None = None
    visits: Mapping[str, int] = {}
    taken: frozenset[tuple[str, str]] = frozenset()
    breakpoints: Mapping[str, bool] = {}
    notes: Mapping[str, str] = {}
    inside: Mapping[str, RunMarks] = {}

    def is_current(self, name: str) -> bool:
        """Whether a node is current: alone, or one of several that run at once."""
        return name == self.current or name in nodes_at_once(self.current or "")


def nodes_at_once(place: str) -> list[str]:
    """Return the nodes in the name of a LangGraph superstep that runs several; () for any other position."""
    parts = place.split("+")
    return parts if len(parts) > 1 and all(parts) else []


def nodes_of(point: Checkpoint) -> list[str]:
    """Return the nodes that a step has run: several if a LangGraph superstep ran them at once."""
    if not point.branches:
        return [point.node] if point.node else []
    ran = {branch.name for branch in point.branches}
    parts = nodes_at_once(point.node or "")
    if parts and ran.issuperset(parts):
        return parts
    return [point.node] if point.node else []


def marks_of(cursor: Cursor, checkpoints: Sequence[Checkpoint]) -> RunMarks:
    """Return what a thread marks in its graph; `checkpoints` are given oldest first."""
    asks = cursor.pending[0].node if cursor.pending else None
    failed = cursor.error.node if cursor.error else None
    return RunMarks(failed or asks or cursor.next_node, cursor.visits, taken_edges(checkpoints, cursor.head))


def marks_in_store(store: Store, thread_id: str) -> RunMarks | None:
    """Return the marks of a thread and its child threads; None if it is not in the store."""
    cursor = store.cursor(thread_id)
    if cursor is None:
        return None
    points = store.checkpoints(thread_id, None, _STEPS_FOLLOWED)[::-1]
    threads = {point.node: branch.thread for point in points for branch in point.branches if branch.thread}
    link = next((state.child for state in cursor.branches if state.child), None)
    if link is not None:
        threads[cursor.position.partition(":")[2]] = link.thread_id
    by_node = {node: marks_in_store(store, thread) for node, thread in threads.items()}
    return replace(marks_of(cursor, points), inside={node: marks for node, marks in by_node.items() if marks})


def taken_edges(checkpoints: Sequence[Checkpoint], until: int) -> frozenset[tuple[str, str]]:
    """Return the edges that a run took up to a step, as far as its newest checkpoints show."""
    taken: set[tuple[str, str]] = set()
    before = [START]
    for point in checkpoints[-_STEPS_FOLLOWED:]:
        if point.step > until:
            break
        if point.node and point.source != "human":
            ran = nodes_of(point)
            taken.update(product(before, ran))
            before = ran
    last = next((point for point in reversed(checkpoints) if point.step <= until), None)
    if last is not None and last.next_node is not None:
        taken.update(product(before, [last.next_node, *nodes_at_once(last.next_node)]))
    return frozenset(taken)


_NO_MARKS = RunMarks()
_SHAPES = {"map": ", shape=box3d", "parallel": ", shape=component", "subgraph": ", peripheries=2"}
WAY, HERE = "#0969da", "#bf8700"
"""Colours of the taken edges and of the current node, for a light background."""
_VISITED = f', color="{WAY}", penwidth=2'
_CURRENT = f', color="{HERE}", penwidth=4'
_TAKEN = f'color="{WAY}", penwidth=3'


def to_mermaid(graph: GraphInfo, marks: RunMarks | None = None) -> str:
    """Return a graph in Mermaid's flowchart syntax; labels are quoted, so that no name can break the syntax.

    Parallels and subgraphs are frames around their parts, a map is a box with double sides.

    Args:
        marks: what a run has done, shown in the graph and its subgraphs.
    """
    drawn = _Mermaid()
    drawn.graph(graph, marks or _NO_MARKS, "n", "    ")
    return "\n".join(["flowchart TD", *drawn.lines, *drawn.styles()]) + "\n"


class _Mermaid:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._visited: list[str] = []
        self._current: list[str] = []
        self._taken: list[str] = []
        self._links = 0

    def graph(self, graph: GraphInfo, marks: RunMarks, prefix: str, indent: str) -> None:
        """Write the nodes and edges of a graph; the parts of a node are drawn in a frame."""
        ids = _ids(graph, prefix)
        for name, key in ids.items():
            self._node(name, graph.node(name), key, marks, indent)
            if marks.is_current(name):
                self._current.append(key)
            elif marks.visits.get(name):
                self._visited.append(key)
        for edge in graph.edges:
            label = f'-. "{_entity(edge.label)}" .->' if edge.label else "-->"
            self.lines.append(f"{indent}{ids[edge.source]} {label} {ids[edge.target]}")
            if (edge.source, edge.target) in marks.taken:
                self._taken.append(str(self._links))
            self._links += 1

    def _node(self, name: str, node: NodeInfo | None, key: str, marks: RunMarks, indent: str) -> None:
        text = _entity((title(node) if node else name) + _count(name, marks))
        if node is not None and (node.members or node.graph):
            self.lines.append(f'{indent}subgraph {key} ["{text}"]')
            for place, member in enumerate(node.members):
                self.lines.append(f'{indent}    {key}_{place}["{_entity(member.name)}"]')
            if node.graph:
                self.graph(node.graph, marks.inside.get(name, _NO_MARKS), f"{key}_", f"{indent}    ")
            self.lines.append(f"{indent}end")
        elif node is not None and node.kind == "map":
            self.lines.append(f'{indent}{key}[["{text}"]]')
        else:
            self.lines.append(f"{indent}{key}" + (f'(["{text}"])' if name in (START, END) else f'["{text}"]'))

    def styles(self) -> list[str]:
        """Write styles for the nodes that a run visited and the edges that it took."""
        marks = []
        if self._visited:
            marks.append(f"    classDef visited stroke:{WAY},stroke-width:2px")
            marks.append(f"    class {','.join(self._visited)} visited")
        if self._current:
            marks.append(f"    classDef current stroke:{HERE},stroke-width:4px")
            marks.append(f"    class {','.join(self._current)} current")
        if self._taken:
            marks.append(f"    linkStyle {','.join(self._taken)} stroke:{WAY},stroke-width:3px")
        return marks


def parts_of(node: NodeInfo) -> str:
    """Return a short description of a map, a parallel or a subgraph; "" for a plain node."""
    join = f", {node.join}" if node.join not in ("", "all") else ""
    parts = {"map": f"each of {node.over}{join}", "parallel": f"at once{join}"}
    return parts.get(node.kind, node.graph.name if node.graph else "")


def title(node: NodeInfo) -> str:
    """Return a node's name, with a short description of its parts."""
    parts = parts_of(node)
    return f"{node.name}: {parts}" if parts else node.name


def to_dot(graph: GraphInfo, marks: RunMarks | None = None, *, expand: bool = False) -> str:
    """Return a graph in Graphviz's language; names and labels are quoted strings.

    A map is a box with depth, a parallel one with parts, a subgraph one with a double border.

    Args:
        marks: what a run has done, shown in the graph.
        expand: draw the parts of subgraphs and parallels, in frames.
    """
    drawn = _Dot(expand)
    drawn.graph(graph, marks or _NO_MARKS, "n", "    ")
    options = ["    compound=true;"] if expand else []
    head = [f"digraph {_quoted(graph.name)} {{", *options, "    node [shape=box, style=rounded];"]
    return "\n".join([*head, *drawn.lines, "}"]) + "\n"


class _Dot:
    def __init__(self, expand: bool) -> None:
        self.lines: list[str] = []
        self._expand = expand

    def graph(self, graph: GraphInfo, marks: RunMarks, prefix: str, indent: str) -> tuple[str, str]:
        """Write the nodes and edges of a graph; return the ids of its start and end."""
        ids = _ids(graph, prefix)
        ends: dict[str, tuple[str, str]] = {}
        for name, key in ids.items():
            node = graph.node(name)
            mark = _CURRENT if marks.is_current(name) else _VISITED if marks.visits.get(name) else ""
            if self._expand and node is not None and (node.members or node.graph):
                ends[name] = self._frame(node, key, marks, indent, mark)
            else:
                self.lines.append(
                    f"{indent}{key} [label={_quoted(_label(node, name, marks))}{_shape(name, node)}{mark}];"
                )
        for edge in graph.edges:
            attributes = [f"label={_quoted(edge.label)}, style=dashed"] if edge.label else []
            attributes += [_TAKEN] if (edge.source, edge.target) in marks.taken else []
            attributes += [f"ltail=cluster_{ids[edge.source]}"] if edge.source in ends else []
            attributes += [f"lhead=cluster_{ids[edge.target]}"] if edge.target in ends else []
            label = f" [{', '.join(attributes)}]" if attributes else ""
            source = ends[edge.source][1] if edge.source in ends else ids[edge.source]
            target = ends[edge.target][0] if edge.target in ends else ids[edge.target]
            self.lines.append(f"{indent}{source} -> {target}{label};")
        return next(iter(ids.values())), list(ids.values())[-1]

    def _frame(self, node: NodeInfo, key: str, marks: RunMarks, indent: str, mark: str) -> tuple[str, str]:
        """Write the parts of a node in a frame; return the ids of its first and last part."""
        label = _quoted(title(node) + _count(node.name, marks))
        self.lines.append(f"{indent}subgraph cluster_{key} {{")
        style = mark.removeprefix(", ").replace(", ", "; ")
        self.lines.append(
            f"{indent}    label={label}; peripheries={2 if node.graph else 1};{f' {style};' if style else ''}"
        )
        if node.graph:
            ends = self.graph(node.graph, marks.inside.get(node.name, _NO_MARKS), f"{key}_", f"{indent}    ")
        else:
            for place, member in enumerate(node.members):
                self.lines.append(f"{indent}    {key}_{place} [label={_quoted(member.name)}];")
            ends = (f"{key}_0", f"{key}_{len(node.members) - 1}")
        self.lines.append(f"{indent}}}")
        return ends


def _label(node: NodeInfo | None, name: str, marks: RunMarks) -> str:
    text = title(node) if node is not None else name
    if node is not None and node.members:
        text += f" ({', '.join(member.name for member in node.members)})"
    return text + _count(name, marks)


def _shape(name: str, node: NodeInfo | None) -> str:
    return ", shape=oval" if name in (START, END) else _SHAPES.get(node.kind, "") if node else ""


def _count(name: str, marks: RunMarks) -> str:
    count = marks.visits.get(name)
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
