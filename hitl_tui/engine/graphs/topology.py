"""Checks of a graph's shape, each with a message that says how to mend it (SPEC 5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from hitl_tui.engine.log.records import END, START
from hitl_tui.errors import GraphInvalid

Edges = Sequence[tuple[str, str]]
Routes = Mapping[str, Mapping[str, str]]


def check_topology(nodes: Collection[str], edges: Edges, routes: Routes, has_termination: bool) -> None:
    """Raise `GraphInvalid` for the first thing that is wrong with the shape."""
    _check_names(nodes, edges, routes)
    _check_start(edges, routes)
    _check_ways_on(nodes, edges, routes)
    targets: dict[str, set[str]] = {name: set() for name in (START, *nodes)}
    for source, target in edges:
        targets[source].add(target)
    for source, route in routes.items():
        targets[source].update(route.values())
    reached = _reachable(targets, [START])
    lost = [name for name in nodes if name not in reached]
    if lost:
        raise GraphInvalid(
            f"no way leads from START to {', '.join(map(repr, lost))}",
            "add an edge to it, or remove the node",
        )
    if END not in reached and not has_termination:
        raise GraphInvalid(
            "no way leads to END, so a run could never finish",
            "add an edge to END, or give a termination condition such as max_turns(8)",
        )


def _check_names(nodes: Collection[str], edges: Edges, routes: Routes) -> None:
    known = ", ".join(nodes) or "none"
    pairs = [*edges, *((source, target) for source, route in routes.items() for target in route.values())]
    for source, target in pairs:
        if source not in nodes and source != START:
            raise GraphInvalid(
                f"an edge starts at an unknown node {source!r}", _meant(source, START) or f"nodes: {known}"
            )
        if target not in nodes and target != END:
            raise GraphInvalid(
                f"an edge from {source!r} leads to an unknown node {target!r}",
                _meant(target, END) or f"nodes: {known}, END",
            )
    for source, route in routes.items():
        if not route:
            raise GraphInvalid(f"the conditional edge of {source!r} has no targets", "give a route_map")


def _meant(name: object, end: str) -> str:
    """A hint where one of the two ends was written as other frameworks do."""
    return f"did you mean {end}?" if str(name).strip("_").upper() == end else ""


def _check_start(edges: Edges, routes: Routes) -> None:
    starts = [target for source, target in edges if source == START]
    if START in routes:
        raise GraphInvalid("START can't have a conditional edge", "let a first node decide")
    if len(starts) != 1:
        found = f"{len(starts)} edges lead from START" if starts else "no edge leads from START"
        raise GraphInvalid(found, 'add exactly one, as in add_edge(START, "first")')
    if starts == [END]:
        raise GraphInvalid("START leads straight to END", "add a node in between")


def _check_ways_on(nodes: Collection[str], edges: Edges, routes: Routes) -> None:
    for name in nodes:
        fixed = [target for source, target in edges if source == name]
        if len(fixed) > 1:
            raise GraphInvalid(
                f"node {name!r} has {len(fixed)} fixed edges ({', '.join(fixed)})",
                "keep one, or use add_conditional_edge",
            )
        if fixed and name in routes:
            raise GraphInvalid(f"node {name!r} has a fixed and a conditional edge", "keep one of them")


def _reachable(targets: Mapping[str, Iterable[str]], start: list[str]) -> set[str]:
    reached: set[str] = set()
    while start:
        name = start.pop()
        if name not in reached:
            reached.add(name)
            start.extend(targets.get(name, ()))
    return reached
