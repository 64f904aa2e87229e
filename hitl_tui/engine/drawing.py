"""A graph as text for other tools: Mermaid and Graphviz (SPEC 5)."""

from __future__ import annotations

from hitl_tui.engine.description import GraphInfo
from hitl_tui.engine.records import END, START


def to_mermaid(graph: GraphInfo) -> str:
    """Mermaid's flowchart syntax; labels are quoted, so that no name can break out of its place."""
    ids = _ids(graph)
    lines = ["flowchart TD"]
    for name, key in ids.items():
        shape = f'(["{_entity(name)}"])' if name in (START, END) else f'["{_entity(name)}"]'
        lines.append(f"    {key}{shape}")
    for edge in graph.edges:
        label = f'-. "{_entity(edge.label)}" .->' if edge.label else "-->"
        lines.append(f"    {ids[edge.source]} {label} {ids[edge.target]}")
    return "\n".join(lines) + "\n"


def to_dot(graph: GraphInfo) -> str:
    """Graphviz's language; names and labels are quoted strings."""
    ids = _ids(graph)
    lines = [f"digraph {_quoted(graph.name)} {{", "    node [shape=box, style=rounded];"]
    for name, key in ids.items():
        shape = ", shape=oval" if name in (START, END) else ""
        lines.append(f"    {key} [label={_quoted(name)}{shape}];")
    for edge in graph.edges:
        label = f" [label={_quoted(edge.label)}, style=dashed]" if edge.label else ""
        lines.append(f"    {ids[edge.source]} -> {ids[edge.target]}{label};")
    return "\n".join([*lines, "}"]) + "\n"


def _ids(graph: GraphInfo) -> dict[str, str]:
    names = [START, *(node.name for node in graph.nodes), END]
    used = {edge.source for edge in graph.edges} | {edge.target for edge in graph.edges}
    return {name: f"n{index}" for index, name in enumerate(names) if name in used}


def _entity(text: str) -> str:
    safe = {"&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;"}
    return "".join(safe.get(char, char if char.isprintable() else " ") for char in text)


def _quoted(text: str) -> str:
    printable = "".join(char if char.isprintable() else " " for char in text)
    return '"' + printable.replace("\\", "\\\\").replace('"', '\\"') + '"'
