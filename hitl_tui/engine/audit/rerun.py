"""Which steps of a thread are still valid under the code as it is now, and what runs again after them.

A step is still valid while its node would do what it did when the step ran: its function (see
`graph.code_digest`), what it declares, the questions before and after it, and the reducers of the channels
that it wrote.  A route that has changed is asked again at each step that it followed: if it leads elsewhere,
that step is kept and the next is not.  The input is kept, and so is what people set and answered as long as
everything before it is.  Retries, timeouts, limits and termination conditions are not compared, since they do
not change the values of a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.audit.costs import spent_by
from hitl_tui.engine.audit.replay import first_other_route
from hitl_tui.engine.graph.compiled import CompiledGraph
from hitl_tui.engine.graph.description import GraphInfo, NodeInfo
from hitl_tui.engine.log.outcomes import Compensation, ToolUse
from hitl_tui.engine.log.records import GRAPH, RAN, START, Checkpoint, Cursor
from hitl_tui.engine.log.repeats import NodeRepeat, Repeats
from hitl_tui.engine.log.store import Store
from hitl_tui.errors import LogCorrupt

_PAGE: Final = 500
_MOST: Final = 5_000
"""Most steps after the kept one that are read one by one; for more, only sums and names are reported."""
_MADE_BY_PEOPLE: Final = ("human", "fork")


def rerun_plan(store: Store, cursor: Cursor, graph: CompiledGraph) -> Repeats:
    """Return the last step that is still valid under a graph, and what would run again after it."""
    first = _first_invalid(store, cursor, graph)
    repeats = repeats_after(store, cursor, first.step - 1, graph.info)
    return replace(repeats, changed=first.changed, unknown=first.unknown, rerouted=first.rerouted)


def repeats_after(store: Store, cursor: Cursor, step: int, graph: GraphInfo) -> Repeats:
    """Return what a fork from a step would run again, and what that used in this thread.

    Args:
        graph: the fork's graph.
    """
    totals = store.totals(cursor.thread_id, step)
    followers = _checkpoints(store, cursor, step + 1, min(cursor.head, step + _MOST))
    reach: dict[str, list[str]] = {}
    decisions = 0
    for point in followers:
        decisions += point.source in _MADE_BY_PEOPLE
        if point.source in RAN:
            reach.setdefault(point.node, []).extend(_reached(point.calls, point.compensations))
    if (node := cursor.next_node) is not None and graph.node(node) is not None:
        reach.setdefault(node, []).extend(_reached(cursor.calls, ()))
    runs = {node: count - totals.visits.get(node, 0) for node, count in cursor.visits.items()}
    ran = [node for node, count in runs.items() if count > 0 and node not in reach]
    tokens_in, tokens_out = cursor.tokens_in - totals.tokens_in, cursor.tokens_out - totals.tokens_out
    return Repeats(
        step,
        cursor.head,
        tuple(
            NodeRepeat(node, max(runs.get(node, 0), 0), _side_effects(graph.node(node), reach.get(node, ())))
            for node in (*reach, *ran)
        ),
        decisions,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=max(cursor.cost - totals.cost, 0.0),
        # A price that is unknown now may have been unknown before the step.
        cost_known=cursor.cost_known or not (tokens_in or tokens_out),
        duration=max(cursor.active - totals.active, 0),
    )


def repeats_of_retry(cursor: Cursor, graph: GraphInfo) -> Repeats | None:
    """Return what continuing would try again: a failed or stopped node; None if nothing is repeated."""
    node = cursor.next_node or ""
    failed = cursor.status == "failed" and cursor.error is not None and cursor.error.node == node
    # Completed calls are recorded, and not made again.
    given_up = bool(cursor.uses or cursor.calls) and not cursor.first_call
    if not node or graph.node(node) is None or not (failed or given_up):
        return None
    spent = spent_by(() if cursor.first_call else cursor.open_uses)
    calls = () if cursor.first_call else cursor.calls
    return Repeats(
        cursor.head,
        cursor.head,
        (NodeRepeat(node, 0, _side_effects(graph.node(node), _reached(calls, ()))),),
        tokens_in=spent.tokens_in,
        tokens_out=spent.tokens_out,
        cost=spent.cost,
        cost_known=spent.cost_known,
        duration=sum(call.duration for call in calls),
    )


def _reached(calls: Iterable[ToolUse], compensations: Iterable[Compensation]) -> Iterator[str]:
    yield from (f"calls {call.tool}" for call in calls)
    yield from (f"did what {entry.handler} undoes" for entry in compensations)


def side_effects_of(graph: GraphInfo, name: str) -> tuple[str, ...]:
    """Return the side effects that a node declares, as text."""
    return _side_effects(graph.node(name), ())


def _side_effects(node: NodeInfo | None, known: Iterable[str]) -> tuple[str, ...]:
    """Yield the side effects of a node that are not in `known` yet."""
    return tuple(dict.fromkeys((*known, *(_declared(node) if node else ()))))


def _declared(node: NodeInfo) -> Iterator[str]:
    if node.external:
        yield f"brings in {node.external}"
    yield from (f"calls {tool}" for tool in node.tools)
    for inner in (*node.members, *(node.graph.nodes if node.graph else ())):
        yield from _declared(inner)


class _FirstInvalid(msgspec.Struct):
    """The first step that is no longer valid, and why; the step after the newest if all are valid.

    Attributes:
        changed: what has changed since that step ran; if all are valid, since any of them ran.
    """

    step: int
    changed: tuple[str, ...] = ()
    unknown: str = ""
    rerouted: bool = False


def _first_invalid(store: Store, cursor: Cursor, graph: CompiledGraph) -> _FirstInvalid:
    graphs = _graphs_by_step(store, cursor.thread_id)
    compared = [_Comparison(store, digest, graph.info) for _, digest in graphs]
    invalid = _FirstInvalid(
        cursor.head + 1,
        tuple(dict.fromkeys(word for each in compared for word in each.words)),
        next((each.unknown for each in compared if each.unknown), ""),
    )
    if not invalid.changed:
        return invalid
    written: set[str] = set()
    words_after: dict[int, tuple[str, ...]] = {}
    at = 0
    for point, channels in _with_channels(store, cursor, any(each.channels for each in compared)):
        while at + 1 < len(graphs) and graphs[at + 1][0] < point.step:
            at += 1
        if point.step and compared[at].is_invalid(point, channels, written):
            invalid.step, invalid.changed = point.step, compared[at].words
            break
        written |= channels
        if compared[at].may_reroute(point):
            words_after[point.step] = compared[at].words
    if (
        words_after
        and (step := first_other_route(store, graph, cursor, words_after, invalid.step)) is not None
    ):
        invalid.step, invalid.rerouted, invalid.changed = step, True, words_after[step - 1]
    return invalid


def _graphs_by_step(store: Store, thread_id: str) -> list[tuple[int, str]]:
    """Return the digests of the graphs on which a thread ran, each with the step after which it did."""
    changes: list[tuple[float, int, str]] = []
    for place, part in enumerate(store.parts(thread_id)):
        info = store.info(part.thread_id)
        since = part.after_entry + 0.5 if place else -1.0
        changes.append((since, part.after_step if place else -1, info.graph_digest if info else ""))
    changes += [
        (entry.n, entry.step, str(entry.data.get("is", "")))
        for entry in store.ledger(thread_id)
        if entry.kind == GRAPH and isinstance(entry.data, Mapping)
    ]
    return [(step, digest) for _, step, digest in sorted(changes)]


def _with_channels(store: Store, cursor: Cursor, wanted: bool) -> Iterator[tuple[Checkpoint, frozenset[str]]]:
    """Yield all steps, oldest first, each with the channels that it wrote if they are wanted."""
    for first in range(0, cursor.head + 1, _PAGE):
        last = min(first + _PAGE - 1, cursor.head)
        by_step: dict[int, set[str]] = {}
        for record in store.records(cursor.thread_id, first, last) if wanted else ():
            by_step.setdefault(record.step, set()).add(record.channel)
        for point in _checkpoints(store, cursor, first, last):
            yield point, frozenset(by_step.get(point.step, ()))


def _checkpoints(store: Store, cursor: Cursor, first: int, last: int) -> list[Checkpoint]:
    return store.checkpoints(cursor.thread_id, last + 1, last - first + 1)[::-1] if last >= first else []


class _Comparison:
    """The differences between a graph on which a thread ran and the current graph.

    Attributes:
        words: the differences, as text for people.
        unknown: why not everything could be compared, "" if it could.
    """

    def __init__(self, store: Store, digest: str, now: GraphInfo) -> None:
        self.words: tuple[str, ...] = ()
        self.unknown = ""
        self.channels: frozenset[str] = frozenset()
        self._nodes: frozenset[str] = frozenset()
        self._routes_changed: frozenset[str] = frozenset()
        self._defaults: frozenset[str] = frozenset()
        then = self._read(store, digest)
        if then is None:
            self.unknown = "the log does not hold the graph that it ran on"
        elif then != now:
            if then.python != now.python:
                self.unknown = f"it ran under {then.python or 'an unknown Python'}: code is not compared"
                then, now = _without_code(then), _without_code(now)
            self._compare(then, now)

    @staticmethod
    def _read(store: Store, digest: str) -> GraphInfo | None:
        stored = store.graph(digest) if digest else None
        try:
            return GraphInfo.of(stored) if stored else None
        except LogCorrupt:
            return None  # `verify` reports it

    def _compare(self, then: GraphInfo, now: GraphInfo) -> None:
        names = [node.name for node in then.nodes]
        self._nodes = frozenset(
            name for name in names if _determines_steps(then, name) != _determines_steps(now, name)
        )
        self._routes_changed = frozenset(
            name for name in (START, *names) if _determines_route(then, name) != _determines_route(now, name)
        )
        later = {channel.name: channel for channel in now.channels}
        known = [(channel, later[channel.name]) for channel in then.channels if channel.name in later]
        self.channels = frozenset(
            old.name
            for old, new in known
            if (old.reducer, old.code, old.schema) != (new.reducer, new.code, new.schema)
        )
        self._defaults = frozenset(old.name for old, new in known if old.default != new.default)
        self.words = (
            *(name for name in names if name in self._nodes),
            *(f"the route after {name}" for name in (START, *names) if name in self._routes_changed),
            *(f"channel {name}" for name in later if name in self.channels | self._defaults),
        )

    def is_invalid(self, point: Checkpoint, channels: frozenset[str], written: set[str]) -> bool:
        """Whether a step is no longer valid.

        Args:
            channels: those that it wrote.
            written: those that earlier steps wrote: their defaults no longer matter.
        """
        if point.source not in RAN:
            return False
        defaults = self._defaults - written
        return (
            point.node in self._nodes
            or bool(channels & self.channels)
            or bool(defaults and (not point.read or defaults & set(point.read)))
        )

    def may_reroute(self, point: Checkpoint) -> bool:
        """Whether the route after a step may have changed."""
        return (START if point.source == "input" else point.node) in self._routes_changed


def _determines_steps(graph: GraphInfo, name: str) -> Any:
    """Return what determines a node's steps."""
    node = graph.node(name)
    return node and (_made_by(node), [gate for gate in graph.gates if gate.node == name])


def _made_by(node: NodeInfo) -> NodeInfo:
    return replace(
        node,
        attempts=1,
        timeout=None,
        max_concurrent=None,
        route_code="",
        members=tuple(map(_made_by, node.members)),
    )


def _determines_route(graph: GraphInfo, name: str) -> Any:
    """Return what determines the route after a node."""
    node = graph.node(name)
    edges = {(edge.label, edge.target) for edge in graph.edges if edge.source == name}
    return edges, node.route_code if node else ""


def _without_code(graph: GraphInfo) -> GraphInfo:
    """Return a graph without its code, as it is declared."""

    def bare(node: NodeInfo) -> NodeInfo:
        inner = _without_code(node.graph) if node.graph else None
        members = tuple(map(bare, node.members))
        return replace(node, code="", route_code="", tools=(), members=members, graph=inner)

    return replace(
        graph,
        nodes=tuple(map(bare, graph.nodes)),
        channels=tuple(replace(channel, code="") for channel in graph.channels),
        python="",
    )
