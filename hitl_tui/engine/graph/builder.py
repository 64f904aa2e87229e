"""Builds a graph of nodes, edges and channels, and checks its shape.

Specified in docs/spec/graphs.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self

from hitl_tui.declared import declares
from hitl_tui.engine.graph.compensation import Compensating, Handler
from hitl_tui.engine.graph.compiled import (
    CompiledGraph,
    Node,
    NodeFunction,
    Route,
    RouteFunction,
    SubgraphWork,
    route_key,
)
from hitl_tui.engine.graph.composition import MAX_DEPTH, Composing, depth_of, resolve
from hitl_tui.engine.graph.description import InputField
from hitl_tui.engine.graph.functions import check_arguments, takes_second
from hitl_tui.engine.graph.gates import Gate
from hitl_tui.engine.graph.names_elsewhere import BUILDING, refuse_attribute
from hitl_tui.engine.graph.options import (
    check_compiled_with,
    check_listed,
    check_names,
    check_places,
    check_retry,
)
from hitl_tui.engine.graph.retry import RetryPolicy
from hitl_tui.engine.graph.termination import Termination
from hitl_tui.engine.log.records import END, START, Limits
from hitl_tui.engine.log.taint import OnTaint, declared_policy, declared_source
from hitl_tui.engine.state.channel import BoundChannel, Channel, bind, check_channels
from hitl_tui.engine.state.values import DEFAULT_MAX_BYTES, is_name
from hitl_tui.errors import GraphInvalid, in_words

if TYPE_CHECKING:
    from hitl_tui.engine.log.signing import Signer
    from hitl_tui.engine.log.store import Store
    from hitl_tui.engine.runner import GraphRunner


DEFAULT_OUTPUT = "output"
"""The channel that `RunResult.output()` returns if the graph has one with this name."""
Edges = Sequence[tuple[str, str]]
Routes = Mapping[str, Mapping[str, str]]


def check_topology(nodes: Collection[str], edges: Edges, routes: Routes, has_termination: bool) -> None:
    """Raise `GraphInvalid` for the first error in the shape of a graph."""
    _check_names(nodes, edges, routes)
    _check_start(edges, routes)
    _check_exits(nodes, edges, routes)
    targets: dict[str, set[str]] = {name: set() for name in (START, *nodes)}
    for source, target in edges:
        targets[source].add(target)
    for source, route in routes.items():
        targets[source].update(route.values())
    reached = _reachable(targets, [START])
    lost = [name for name in nodes if name not in reached]
    if lost:
        raise GraphInvalid(
            f"no path leads from START to {', '.join(map(repr, lost))}",
            "add an edge to it, or remove the node",
        )
    if END not in reached and not has_termination:
        raise GraphInvalid(
            "no path leads to END, so a run could never finish",
            "add an edge to END, or give a termination condition such as max_turns(8)",
        )


def _check_names(nodes: Collection[str], edges: Edges, routes: Routes) -> None:
    known = ", ".join(nodes) or "none"
    pairs = [*edges, *((source, target) for source, route in routes.items() for target in route.values())]
    for source, target in pairs:
        if source not in nodes and source != START:
            raise GraphInvalid(
                f"an edge starts at an unknown node {source!r}",
                _hint_for_end(source, START) or f"nodes: {known}",
            )
        if target not in nodes and target != END:
            raise GraphInvalid(
                f"an edge from {source!r} leads to an unknown node {target!r}",
                _hint_for_end(target, END) or f"nodes: {known}, END",
            )
    for source, route in routes.items():
        if not route:
            raise GraphInvalid(f"the conditional edge of {source!r} has no targets", "give a route_map")


def _hint_for_end(name: object, end: str) -> str:
    """Return a hint if START or END was written as in other frameworks."""
    return f"did you mean {end}?" if str(name).strip("_").upper() == end else ""


def _check_start(edges: Edges, routes: Routes) -> None:
    starts = [target for source, target in edges if source == START]
    if START in routes:
        raise GraphInvalid("START can't have a conditional edge", "let a first node decide")
    if len(starts) != 1:
        problem = f"{len(starts)} edges lead from START" if starts else "no edge leads from START"
        raise GraphInvalid(problem, 'add exactly one, as in add_edge(START, "first")')
    if starts == [END]:
        raise GraphInvalid("START leads straight to END", "add a node in between")


def _check_exits(nodes: Collection[str], edges: Edges, routes: Routes) -> None:
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


class StateGraph(Composing, Compensating):
    """A graph under construction; every method returns the graph, so that calls chain.

    Args:
        channels: name to `Channel`.
        name: shown on screens and kept with threads.
    """

    @declares()
    def __init__(self, channels: Mapping[str, Channel], name: str = "graph") -> None:
        if not is_name(name):
            raise GraphInvalid(
                f"the graph's name {name!r} is not allowed", 'give text, as StateGraph(…, name="review")'
            )
        check_channels(channels)
        self.channels = channels
        self.name = name
        self._nodes: dict[str, Node] = {}
        self._edges: list[tuple[str, str]] = []
        self._routes: dict[str, Route] = {}
        self._members: dict[str, tuple[str, ...]] = {}
        self._subgraphs: dict[str, tuple[StateGraph | GraphRunner, Mapping[str, str], Mapping[str, str]]] = {}
        self._compiling = False
        self._compensations: dict[str, Handler] = {}

    def __repr__(self) -> str:
        return f"StateGraph({self.name!r}, nodes={list(self._nodes)})"

    if not TYPE_CHECKING:  # otherwise a type checker would accept any attribute

        def __getattr__(self, name: str) -> NoReturn:
            from hitl_tui.engine.runner import GraphRunner

            compiled = not name.startswith("_") and hasattr(GraphRunner, name)
            first = {name: f"a graph is compiled first: graph.compile().{name}(…)"} if compiled else BUILDING
            refuse_attribute(self, "a StateGraph", name, first)

    @declares()
    def add_node(
        self,
        name: str,
        fn: NodeFunction,
        *,
        reads: Sequence[str] | None = None,
        writes: Sequence[str] | None = None,
        retry: RetryPolicy | None = None,
        timeout: float | None = None,
        external: bool | str = False,
        on_taint: OnTaint = "allow",
    ) -> Self:
        """Add a node: a sync or async function `(state, config) -> mapping | NodeResult | None`.

        Args:
            fn: it may leave config out; a second parameter with a default gets it only if it is named
                `config`, so `lambda state, word=word: ...` keeps its word.
            reads, writes: channels that it may read and write; None for all, "*" in reads for all public
                ones.
            retry: how often it is attempted; once by default.
            timeout: seconds an attempt may take.
            external: it brings in untrusted data (from a tool, a file, the network), so all it writes is
                tainted; a text names the source, such as "web".
            on_taint: what happens before it runs if a channel that it may read is tainted: "allow", "warn"
                (an event and a note in the ledger), "block" (the run fails, with reason "policy") or
                "approve" (a human must agree to exactly what it would read; needs a store to run).

        Raises:
            GraphInvalid: a bad or duplicate name, or no function.
        """
        if not is_name(name) or name in (START, END) or ":" in name:
            raise GraphInvalid(
                f"node name {name!r} is not allowed", f"any text but {START}, {END} and without ':'"
            )
        if name in self._nodes:
            raise GraphInvalid(f"node {name!r} was added twice", "give each node its own name")
        if not callable(fn):
            raise GraphInvalid(f"node {name!r} is {in_words(fn)}", "a node is a function (state, config)")
        for option, names in (("reads", reads), ("writes", writes)):
            if isinstance(names, str):
                raise GraphInvalid(
                    f"node {name!r}: {option}={names!r} is a text", f"give a list: {option}=[{names!r}]"
                )
            check_names(f"node {name!r}: {option}", names)
        check_retry(f"node {name!r}", retry, timeout)
        takes_config = takes_second(fn, "config")
        check_arguments(
            f"node {name!r}", fn, "state", *(["config"] if takes_config else []), may_be_async=True
        )
        self._nodes[name] = Node(
            name=name,
            function=fn,
            reads=None if reads is None else tuple(reads),
            writes=None if writes is None else tuple(writes),
            retry=retry or RetryPolicy(max_attempts=1),
            timeout=timeout,
            takes_config=takes_config,
            external=declared_source(name, external),
            on_taint=declared_policy(name, on_taint),
        )
        return self

    @declares()
    def add_edge(self, source: str, target: str) -> Self:
        """Add an edge from `source` to `target`; START and END are the ends of the graph."""
        if (source, target) in self._edges:
            raise GraphInvalid(f"the edge {source!r} -> {target!r} was added twice", "remove one")
        self._edges.append((source, target))
        return self

    @declares()
    def add_conditional_edge(
        self, source: str, route_fn: RouteFunction, route_map: Mapping[Any, str] | Sequence[str]
    ) -> Self:
        """Let `route_fn(state)`, or `route_fn(state, config)`, choose the next node after `source`.

        Args:
            route_fn: a sync function that returns a key; it may depend on the state and on `config.context`.
            route_map: key to node (or END); a list of names means that the keys are the names.
        """
        if source in self._routes:
            raise GraphInvalid(
                f"node {source!r} has two conditional edges", "put all its targets in one route_map"
            )
        if not callable(route_fn):
            raise GraphInvalid(
                f"the route after {source!r} is not a function", "give a function (state) -> key"
            )
        takes_config = takes_second(route_fn, "config")
        check_arguments(
            f"the route after {source!r}", route_fn, "state", *(["config"] if takes_config else [])
        )
        targets = dict(route_map) if isinstance(route_map, Mapping) else {name: name for name in route_map}
        keys = {route_key(key): target for key, target in targets.items()}
        self._routes[source] = Route(route_fn, keys, takes_config)
        return self

    @declares()
    def compile(
        self,
        *,
        checkpointer: Store | None = None,
        agents: Mapping[str, Any] | None = None,
        interrupt_before: Sequence[str | Gate] | str | Gate = (),
        interrupt_after: Sequence[str | Gate] | str | Gate = (),
        termination: Termination | None = None,
        limits: Limits | None = None,
        inputs: Sequence[InputField] = (),
        output: str = DEFAULT_OUTPUT,
        max_update_bytes: int = DEFAULT_MAX_BYTES,
        signer: Signer | None = None,
        private_context: Sequence[str] = (),
    ) -> GraphRunner:
        """Check the graph and return a runner of it.

        Args:
            checkpointer: the store of its threads; without one nothing is kept.
            agents: what nodes find as `config.agents`.
            interrupt_before, interrupt_after: nodes to stop at, "*" for all, or gates.
            termination: ends a run as completed(termination).
            limits: what a run may use; 25 iterations by default.
            inputs: what to ask a person for when a thread starts.
            output: the channel that `RunResult.output()` returns.
            max_update_bytes: how large one update may be; 1 MiB by default.
            signer: signs decisions that name a person, for example `SshSigner`.
            private_context: names in the context of an invocation whose values are private, like those of
                private channels.

        Raises:
            GraphInvalid: says what is wrong and how to fix it.
        """
        from hitl_tui.engine.runner import GraphRunner

        check_compiled_with(checkpointer, agents, termination, limits)
        check_places(inputs, max_update_bytes, interrupt_before, interrupt_after)
        check_listed("private_context", private_context, "the context")
        channels = bind(self.channels, max_update_bytes)
        nodes = self._compiled_steps(channels, checkpointer, agents or {}, max_update_bytes)
        graph = CompiledGraph(
            name=self.name,
            channels=channels,
            nodes=nodes,
            edges={source: target for source, target in self._edges if source != START},
            routes=dict(self._routes),
            entry=next((target for source, target in self._edges if source == START), ""),
            before=_interrupts(nodes, interrupt_before, "interrupt_before"),
            after=_interrupts(nodes, interrupt_after, "interrupt_after"),
            termination=termination,
            limits=limits or Limits(),
            agents=dict(agents or {}),
            inputs=tuple(inputs),
            output=output,
            compensations=dict(self._compensations),
            private_context=tuple(private_context),
        )
        self._check(graph)
        return GraphRunner(graph, checkpointer, signer)

    def _check(self, graph: CompiledGraph) -> None:
        """Check what only the whole graph shows."""
        if depth_of(graph) > MAX_DEPTH:
            raise GraphInvalid(f"subgraphs are nested {depth_of(graph)} deep", f"at most {MAX_DEPTH}")
        check_topology(
            graph.nodes,
            self._edges,
            {name: route.targets for name, route in self._routes.items()},
            graph.termination is not None,
        )
        self._check_names(graph)

    def _compiled_steps(
        self,
        channels: Mapping[str, BoundChannel],
        checkpointer: Store | None,
        agents: Mapping[str, Any],
        max_update_bytes: int,
    ) -> dict[str, Node]:
        """Return the nodes as steps, with compiled subgraphs."""
        if self._compiling:
            raise GraphInvalid(f"the graph {self.name!r} is a subgraph of itself", "break the cycle")
        self._compiling = True
        try:
            subgraphs = {
                name: SubgraphWork(
                    self._compiled_inner(name, graph, checkpointer, agents, max_update_bytes),
                    tuple(ins.items()),
                    tuple(outs.items()),
                )
                for name, (graph, ins, outs) in self._subgraphs.items()
            }
        finally:
            self._compiling = False
        ends = {name for edge in self._edges for name in edge} | set(self._routes)
        ends |= {target for route in self._routes.values() for target in route.targets.values()}
        return resolve(self._nodes, self._members, ends, subgraphs, channels)

    @staticmethod
    def _compiled_inner(
        name: str,
        graph: StateGraph | GraphRunner,
        checkpointer: Store | None,
        agents: Mapping[str, Any],
        max_update_bytes: int,
    ) -> CompiledGraph:
        if not isinstance(graph, StateGraph):
            return graph.graph
        try:
            # The inner graph is also bounded by what is left of the outer graph's limits.
            open_end = Limits(max_iterations=None)
            runner = graph.compile(
                checkpointer=checkpointer, agents=agents, limits=open_end, max_update_bytes=max_update_bytes
            )
        except GraphInvalid as error:
            raise GraphInvalid(f"subgraph {name!r}: {error.message}", error.hint) from None
        return runner.graph

    def _check_names(self, graph: CompiledGraph) -> None:
        wanted = [(f"input {item.name!r}", item.channel) for item in graph.inputs]
        if graph.output != DEFAULT_OUTPUT:
            wanted.append(("output", graph.output))
        if graph.termination:
            wanted += [("a termination condition", name) for name in graph.termination.channels]
        for node in self._nodes.values():
            wanted += [(f"reads of node {node.name!r}", name.partition(".")[0]) for name in node.reads or ()]
            wanted += [(f"writes of node {node.name!r}", name) for name in node.writes or ()]
        for gate in filter(None, (*graph.before.values(), *graph.after.values())):
            wanted += [(f"gate at {gate.node!r}", name) for name in gate.channels]
        for where, name in wanted:
            if name not in graph.channels and (name != "*" or not where.startswith("reads")):
                raise GraphInvalid(
                    f"{where}: there is no channel {name!r}", f"channels: {', '.join(graph.channels)}"
                )


def _interrupts(
    nodes: Mapping[str, Node], given: Sequence[str | Gate] | str | Gate, option: str
) -> dict[str, Gate | None]:
    gates: dict[str, Gate | None] = {}
    for entry in [given] if isinstance(given, (str, Gate)) else given:
        if entry == "*":
            gates.update({name: None for name in nodes if name not in gates})
            continue
        name, gate = (entry.node, entry) if isinstance(entry, Gate) else (entry, None)
        if name not in nodes:
            raise GraphInvalid(f"{option} names an unknown node {name!r}", f"nodes: {', '.join(nodes)}")
        gates[name] = gate
    return gates
