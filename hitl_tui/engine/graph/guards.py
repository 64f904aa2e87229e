"""Finds the gates that guard a node: those on every path to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hitl_tui.engine.graph.description import GateInfo, GraphInfo
from hitl_tui.engine.log.records import END, START


class Guard(NamedTuple):
    """A gate that must be answered before a thread may be placed after a node.

    Attributes:
        inside: the subgraph's node that contains the gate, "" for a gate of the graph itself.
    """

    gate: GateInfo
    inside: str = ""


def always_passed(graph: GraphInfo, node: str) -> frozenset[str]:
    """Return the nodes on every path from START to a node, itself included.

    If no path is known, that is only the node.
    """
    return _on_every_path(_targets(graph), (START,), node) or frozenset((node,))


def passed_from(graph: GraphInfo, position: str, node: str) -> frozenset[str]:
    """Return the nodes on every path from a thread's position to a node, both ends included.

    Without a path there are none.

    Args:
        position: as a cursor has it: "node:NAME" before a node, "route:NAME" after one.
    """
    targets = _targets(graph)
    kind, _, name = position.partition(":")
    if kind == "end":
        return frozenset()
    # A thread that is being rolled back starts again.
    first = (name,) if kind == "node" else targets.get(name if kind == "route" else START, ())
    return _on_every_path(targets, first, node)


def is_asked_again(graph: GraphInfo, as_node: str, node: str, when: str) -> bool:
    """Whether a thread that is placed after `as_node` will be asked a question at a node again.

    That is so if every path leads there, or if `as_node` is on every path to the node: then the graph's own
    routes decide again. It is also so if no edge of the graph is known to lead to the node.
    """
    if as_node == START or (as_node == node and when == "after"):
        return True
    if as_node == node:
        return False
    targets = _targets(graph)
    if as_node in always_passed(graph, node) or node not in _reached(targets, (START,)):
        return True
    after = _reached(targets, targets.get(as_node, ()))
    return node in after and END not in _reached(targets, targets.get(as_node, ()), without=node)


def _targets(graph: GraphInfo) -> dict[str, list[str]]:
    targets: dict[str, list[str]] = {}
    for edge in graph.edges:
        targets.setdefault(edge.source, []).append(edge.target)
    return targets


def _on_every_path(targets: dict[str, list[str]], first: Iterable[str], node: str) -> frozenset[str]:
    """Return the nodes on every path from one of the `first` to a node, itself included; none without one."""
    reached = _reached(targets, first)
    if node not in reached:
        return frozenset()
    others = reached - {START, END, node}
    return frozenset((node, *(each for each in others if node not in _reached(targets, first, without=each))))


def _reached(targets: dict[str, list[str]], first: Iterable[str], without: str = "") -> set[str]:
    """Return the nodes on paths from the `first`, those included."""
    reached = set(first) - {without}
    left = list(reached)
    while left:
        for target in targets.get(left.pop(), ()):
            if target != without and target not in reached:
                reached.add(target)
                left.append(target)
    return reached


def guards_of(graph: GraphInfo, node: str) -> Iterator[Guard]:
    """Return the gates for certain people that every path passes until a node has run, in subgraphs too.

    The gate after the node itself is not included: it is asked once the node has run.
    """
    yield from _guards(graph, always_passed(graph, node), node)


def guards_ahead(graph: GraphInfo, last: str, position: str, node: str) -> Iterator[Guard]:
    """Return the gates for certain people between a thread's position and the node it is to be placed after.

    There are none if that node has just run. The gate after the last node is included, unless the thread will
    come to it again.

    Args:
        last: the node that ran last, "" for none.
        position: as `passed_from` takes it.
    """
    if node == last:
        return
    if not is_asked_again(graph, node, last, "after"):
        after_last = (gate for gate in graph.gates if (gate.node, gate.when) == (last, "after"))
        yield from (Guard(gate) for gate in after_last if gate.names_people)
    yield from _guards(graph, passed_from(graph, position, node), node)


def _guards(graph: GraphInfo, passed: frozenset[str], node: str) -> Iterator[Guard]:
    for gate in graph.gates:
        if gate.names_people and gate.node in passed and (gate.when == "before" or gate.node != node):
            yield Guard(gate)
    for info in graph.nodes:
        if info.name in passed and info.graph is not None:
            yield from (Guard(guard.gate, info.name) for guard in guards_of(info.graph, END))


def names_people(
    reviewers: Sequence[str], quorum: int, logins: Sequence[str], *, signed: bool, four_eyes: bool
) -> bool:
    """Whether a request says who may answer it, or how; otherwise anyone may."""
    return bool(reviewers or logins or signed or four_eyes or quorum > 1)


def who_may_answer(
    reviewers: Sequence[str], quorum: int, logins: Sequence[str], *, signed: bool, four_eyes: bool = False
) -> str:
    """Return who may answer a request, as the start of a sentence: "ann or bob may answer it, signed"."""
    people = list(reviewers)
    if people and quorum > 1:
        who = f"{quorum} of {', '.join(people)} must answer it alike"
        if quorum == len(people):
            who = f"{_listed(people, 'and')} must answer it alike"
    elif people:
        who = f"{_listed(people, 'or')} may answer it"
    elif quorum > 1:
        who = f"{quorum} people must answer it alike"
    else:
        who = "anyone may answer it" if not four_eyes else "anyone but its authors may answer it"
    if logins:
        who += f", from the database login {_listed(logins, 'or')}"
    return f"{who}, signed" if signed else who


def _listed(names: Sequence[str], word: str) -> str:
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), names[-1])))
