"""In which order the nodes of a graph are drawn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from hitl_tui.drivers.protocol import EdgeInfo
from hitl_tui.engine.log.records import END, START


def order_nodes(edges: Sequence[EdgeInfo], nodes: Iterable[str] = ()) -> list[str]:
    """The nodes from START to END so that as many edges as possible point down."""
    after: dict[str, list[str]] = defaultdict(list)
    for edge in edges:
        if edge.target not in after[edge.source]:
            after[edge.source].append(edge.target)
    seen: set[str] = set()
    done: list[str] = []
    roots = [START, *nodes, *after]
    for root in roots:
        stack = [(root, iter(reversed(after.get(root, ()))))] if root not in seen else []
        seen.add(root)
        while stack:
            node, rest = stack[-1]
            target = next((name for name in rest if name not in seen), None)
            if target is None:
                done.append(node)
                stack.pop()
            else:
                seen.add(target)
                stack.append((target, iter(reversed(after.get(target, ())))))
    reached = done[::-1]
    known = {name for edge in edges for name in (edge.source, edge.target)} | set(nodes)
    middle = [name for name in reached if name in known and name not in (START, END)]
    return [START] * (START in known) + middle + [END] * (END in known)
