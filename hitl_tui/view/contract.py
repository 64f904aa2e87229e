"""What maps, parallels and subgraphs declare beside what a plain node does (SPEC 6, 7)."""

from __future__ import annotations

from hitl_tui.drivers.protocol import NodeInfo

Fact = tuple[str, tuple[str, ...], str]


def composition_facts(node: NodeInfo) -> list[Fact]:
    """Facts of few words, for a narrow pane: (name, values, role); texts are raw."""
    if node.kind == "subgraph":
        return [
            ("runs", (f"graph {node.graph.name}" if node.graph else "a graph",), "plain"),
            ("in", tuple(f"{outer} → {inner}" for outer, inner in node.inputs) or ("nothing",), "plain"),
            ("out", tuple(f"{inner} → {outer}" for inner, outer in node.outputs) or ("nothing",), "plain"),
        ]
    if node.kind == "node":
        return []
    members = tuple(one.name for one in node.members)
    of: Fact = ("over", (node.over,), "plain") if node.over else ("runs", members, "plain")
    at_once = str(node.max_concurrent) if node.max_concurrent else "all"
    return [of, ("join", (f"{node.join}, {at_once} at once",), "plain")]


def composition_words(node: NodeInfo) -> list[tuple[str, str]]:
    """The same in sentences, for a page: (name, words); texts are raw."""
    if node.kind == "node":
        return []
    if node.kind == "subgraph":
        known = ("goes in", node.inputs), ("comes out", node.outputs)
        pairs = [
            (name, ", ".join(f"{one} → {other}" for one, other in some) or "nothing") for name, some in known
        ]
        name = node.graph.name if node.graph else ""
        return [("is", f"the graph {name}, on a thread of its own"), *pairs]
    at_once = "all at once" if node.max_concurrent is None else f"at most {node.max_concurrent} at once"
    if node.over:
        most = f", of at most {node.max_items:,}" if node.max_items else ""
        what = f"a map over the items of {node.over}{most}; {at_once}"
    else:
        what = f"a parallel of {', '.join(member.name for member in node.members)}; {at_once}"
    fails = "one that fails fails the node" if node.on_error == "fail" else "those that fail are recorded"
    return [("is", what), ("is settled", f"{_JOINS.get(node.join, node.join)}; {fails}")]


_JOINS = {"all": "once all branches have ended", "first": "by the first branch that succeeds"}
