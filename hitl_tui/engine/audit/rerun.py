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
"""Steps behind the kept one that are looked at one by one; of more only sums and names are told."""
_MADE_BY_PEOPLE: Final = ("human", "fork")


def rerun_plan(store: Store, cursor: Cursor, graph: CompiledGraph) -> Repeats:
    """The last step of a thread that stands under a graph, and what runs again behind it."""
    falls = _first_fallen(store, cursor, graph)
    repeats = repeats_after(store, cursor, falls.step - 1, graph.info)
    return replace(repeats, changed=falls.changed, unknown=falls.unknown, rerouted=falls.rerouted)


def repeats_after(store: Store, cursor: Cursor, step: int, graph: GraphInfo) -> Repeats:
    """What a fork from a step would run again, and what that used in this thread.

    Args:
        graph: the one that it would run on.
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
            NodeRepeat(node, max(runs.get(node, 0), 0), _outside(graph.node(node), reach.get(node, ())))
            for node in (*reach, *ran)
        ),
        decisions,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=max(cursor.cost - totals.cost, 0.0),
        # One that is unknown up to here is not told apart from one that was unknown before.
        cost_known=cursor.cost_known or not (tokens_in or tokens_out),
        duration=max(cursor.active - totals.active, 0),
    )


def repeats_of_retry(cursor: Cursor, graph: GraphInfo) -> Repeats | None:
    """What going on would try again: a node that failed or was given up; None where it repeats nothing."""
    node = cursor.next_node or ""
    failed = cursor.status == "failed" and cursor.error is not None and cursor.error.node == node
    # Calls that completed are recorded, and not made again.
    given_up = bool(cursor.uses or cursor.calls) and not cursor.first_call
    if not node or graph.node(node) is None or not (failed or given_up):
        return None
    spent = spent_by(() if cursor.first_call else cursor.open_uses)
    calls = () if cursor.first_call else cursor.calls
    return Repeats(
        cursor.head,
        cursor.head,
        (NodeRepeat(node, 0, _outside(graph.node(node), _reached(calls, ()))),),
        tokens_in=spent.tokens_in,
        tokens_out=spent.tokens_out,
        cost=spent.cost,
        cost_known=spent.cost_known,
        duration=sum(call.duration for call in calls),
    )


def _reached(calls: Iterable[ToolUse], compensations: Iterable[Compensation]) -> Iterator[str]:
    yield from (f"calls {call.tool}" for call in calls)
    yield from (f"did what {entry.handler} undoes" for entry in compensations)


def outside_of(graph: GraphInfo, name: str) -> tuple[str, ...]:
    """How a node is known to reach outside by what it declares, in words."""
    return _outside(graph.node(name), ())


def _outside(node: NodeInfo | None, known: Iterable[str]) -> tuple[str, ...]:
    """What reaches outside, without saying anything twice."""
    return tuple(dict.fromkeys((*known, *(_declared(node) if node else ()))))


def _declared(node: NodeInfo) -> Iterator[str]:
    if node.external:
        yield f"brings in {node.external}"
    yield from (f"calls {tool}" for tool in node.tools)
    for inner in (*node.members, *(node.graph.nodes if node.graph else ())):
        yield from _declared(inner)


class _Fallen(msgspec.Struct):
    """The first step that does not stand, one behind the newest where all do, and why.

    Attributes:
        changed: what is another since that step ran; where all stand, since any of them did.
    """

    step: int
    changed: tuple[str, ...] = ()
    unknown: str = ""
    rerouted: bool = False


def _first_fallen(store: Store, cursor: Cursor, graph: CompiledGraph) -> _Fallen:
    graphs = _graphs_by_step(store, cursor.thread_id)
    compared = [_Comparison(store, digest, graph.info) for _, digest in graphs]
    fallen = _Fallen(
        cursor.head + 1,
        tuple(dict.fromkeys(word for each in compared for word in each.words)),
        next((each.unknown for each in compared if each.unknown), ""),
    )
    if not fallen.changed:
        return fallen
    written: set[str] = set()
    words_after: dict[int, tuple[str, ...]] = {}
    at = 0
    for point, channels in _with_channels(store, cursor, any(each.channels for each in compared)):
        while at + 1 < len(graphs) and graphs[at + 1][0] < point.step:
            at += 1
        if point.step and compared[at].falls(point, channels, written):
            fallen.step, fallen.changed = point.step, compared[at].words
            break
        written |= channels
        if compared[at].turns(point):
            words_after[point.step] = compared[at].words
    if (
        words_after
        and (step := first_other_route(store, graph, cursor, words_after, fallen.step)) is not None
    ):
        fallen.step, fallen.rerouted, fallen.changed = step, True, words_after[step - 1]
    return fallen


def _graphs_by_step(store: Store, thread_id: str) -> list[tuple[int, str]]:
    """The digests of the graphs that a thread ran on, each with the step behind which it did."""
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
    """All steps, oldest first, with the channels that each wrote where those are wanted."""
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
    """What of a graph that a thread ran on is another in the graph as it is now.

    Attributes:
        words: what, each named for people.
        unknown: why not everything could be compared, "" where it could.
    """

    def __init__(self, store: Store, digest: str, now: GraphInfo) -> None:
        self.words: tuple[str, ...] = ()
        self.unknown = ""
        self.channels: frozenset[str] = frozenset()
        self._nodes: frozenset[str] = frozenset()
        self._ways: frozenset[str] = frozenset()
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
            return None  # `verify` tells of it

    def _compare(self, then: GraphInfo, now: GraphInfo) -> None:
        names = [node.name for node in then.nodes]
        self._nodes = frozenset(name for name in names if _does(then, name) != _does(now, name))
        self._ways = frozenset(name for name in (START, *names) if _leads(then, name) != _leads(now, name))
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
            *(f"the way on after {name}" for name in (START, *names) if name in self._ways),
            *(f"channel {name}" for name in later if name in self.channels | self._defaults),
        )

    def falls(self, point: Checkpoint, channels: frozenset[str], written: set[str]) -> bool:
        """Whether a step would not be made as it was.

        Args:
            channels: those that it wrote.
            written: those that the steps before it wrote: their defaults no longer matter.
        """
        if point.source not in RAN:
            return False
        defaults = self._defaults - written
        return (
            point.node in self._nodes
            or bool(channels & self.channels)
            or bool(defaults and (not point.read or defaults & set(point.read)))
        )

    def turns(self, point: Checkpoint) -> bool:
        """Whether the way on after a step may be another now."""
        return (START if point.source == "input" else point.node) in self._ways


def _does(graph: GraphInfo, name: str) -> Any:
    """What makes a node's steps what they are."""
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


def _leads(graph: GraphInfo, name: str) -> Any:
    """What makes the way on after a node what it is."""
    node = graph.node(name)
    ways = {(edge.label, edge.target) for edge in graph.edges if edge.source == name}
    return ways, node.route_code if node else ""


def _without_code(graph: GraphInfo) -> GraphInfo:
    """A graph as it is declared alone."""

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
