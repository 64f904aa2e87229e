"""A graph as text for other tools: Mermaid and Graphviz (SPEC 5)."""

from __future__ import annotations

from hitl_tui.engine.description import GraphInfo, NodeInfo
from hitl_tui.engine.records import END, START


def to_mermaid(graph: GraphInfo) -> str:
    """Mermaid's flowchart syntax; labels are quoted, so that no name can break out of its place."""
    lines = ["flowchart TD", *_mermaid(graph, "n", "    ")]
    return "\n".join(lines) + "\n"


def _mermaid(graph: GraphInfo, prefix: str, indent: str) -> list[str]:
    """The nodes and edges of a graph; what a node is made of stands in a frame of its own."""
    ids = _ids(graph, prefix)
    nodes = {node.name: node for node in graph.nodes}
    lines = []
    for name, key in ids.items():
        node = nodes.get(name)
        if node is not None and (node.members or node.graph):
            lines.append(f'{indent}subgraph {key} ["{_entity(_title(node))}"]')
            inside = [
                f'{indent}    {key}_{place}["{_entity(member.name)}"]'
                for place, member in enumerate(node.members)
            ]
            lines += inside or _mermaid(node.graph or graph, f"{key}_", f"{indent}    ")
            lines.append(f"{indent}end")
        elif node is not None and node.kind == "map":
            lines.append(f'{indent}{key}[["{_entity(_title(node))}"]]')
        else:
            shape = f'(["{_entity(name)}"])' if name in (START, END) else f'["{_entity(name)}"]'
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


def to_dot(graph: GraphInfo) -> str:
    """Graphviz's language; names and labels are quoted strings."""
    ids = _ids(graph)
    nodes = {node.name: node for node in graph.nodes}
    lines = [f"digraph {_quoted(graph.name)} {{", "    node [shape=box, style=rounded];"]
    for name, key in ids.items():
        node = nodes.get(name)
        shape = ", shape=oval" if name in (START, END) else ""
        shape = ", peripheries=2" if node is not None and node.kind != "node" else shape
        label = _title(node) if node is not None else name
        if node is not None and node.members:
            label += f" ({', '.join(member.name for member in node.members)})"
        lines.append(f"    {key} [label={_quoted(label)}{shape}];")
    for edge in graph.edges:
        label = f" [label={_quoted(edge.label)}, style=dashed]" if edge.label else ""
        lines.append(f"    {ids[edge.source]} -> {ids[edge.target]}{label};")
    return "\n".join([*lines, "}"]) + "\n"


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
