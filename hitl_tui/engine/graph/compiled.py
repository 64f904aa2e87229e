"""A compiled graph: its nodes, with the work of maps, parallels and subgraphs, its routes and its gates.

Specified in docs/spec/branches.md.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Literal

import msgspec
from msgspec.structs import replace as change

from hitl_tui.declared import Declaration
from hitl_tui.engine.graph.code_digest import PYTHON, CodeReader
from hitl_tui.engine.graph.compensation import Handler
from hitl_tui.engine.graph.description import EdgeInfo, GraphInfo, InputField, NodeInfo
from hitl_tui.engine.graph.functions import raised_at
from hitl_tui.engine.graph.gates import Gate
from hitl_tui.engine.graph.retry import RetryPolicy
from hitl_tui.engine.graph.termination import Termination
from hitl_tui.engine.log.records import START, Limits
from hitl_tui.engine.log.taint import OnTaint
from hitl_tui.engine.state.channel import BoundChannel, ChannelInfo
from hitl_tui.engine.state.workflow_state import WorkflowState
from hitl_tui.errors import GraphInvalid, HitlError, described

OnError = Literal["collect", "fail"]


class Quorum(Declaration, frozen=True):
    """A join that is complete once `n` branches have succeeded."""

    n: int

    examples: ClassVar[Mapping[str, str]] = {"n": "a whole number of at least 1"}

    def check(self) -> None:
        """Refuse a number below 1."""
        if self.n < 1:
            raise GraphInvalid(f"quorum({self.n}): give a whole number of at least 1")

    def __str__(self) -> str:
        return f"quorum({self.n})"


Join = Literal["all", "first"] | Quorum


def quorum(n: int) -> Quorum:
    """Return a join for `add_map` and `add_parallel`: the first `n` successes count, the rest is stopped.

    Raises:
        GraphInvalid: `n` is not a whole number of at least 1.
    """
    return Quorum(n)


class FanOutWork(msgspec.Struct, frozen=True):
    """Branches that run in parallel: the same node for each item, or the members of a parallel.

    Attributes:
        over: for a map, the channel or path with the items.
        members: for a parallel, the nodes, in their order.
        max_concurrent: how many branches run at once; None for all.
        max_items: more items are an error.
    """

    join: Join
    on_error: OnError
    max_concurrent: int | None
    over: str = ""
    max_items: int = 0
    members: tuple[Node, ...] = ()

    @property
    def needed(self) -> int | None:
        """How many successes complete the join; None if it waits for all branches."""
        if self.join == "all":
            return None
        return self.join.n if isinstance(self.join, Quorum) else 1

    @property
    def declared(self) -> dict[str, Any]:
        """The fields of `NodeInfo` that describe it."""
        return {
            "over": self.over,
            "join": str(self.join),
            "max_concurrent": self.max_concurrent,
            "max_items": self.max_items or None,
            "on_error": self.on_error,
            "members": tuple(member.info for member in self.members),
        }


class SubgraphWork(msgspec.Struct, frozen=True):
    """A graph inside a node; `inputs` are (parent's, child's) channels, `outputs` (child's, parent's)."""

    graph: CompiledGraph
    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]


Work = FanOutWork | SubgraphWork


def kind_of(work: Work | None) -> Literal["", "map", "parallel", "subgraph"]:
    """Return the kind of a node; "" for a plain one."""
    if isinstance(work, SubgraphWork):
        return "subgraph"
    if work is None:
        return ""
    return "map" if work.over else "parallel"


NodeFunction = Callable[..., Any]
RouteFunction = Callable[..., Any]


class Node(msgspec.Struct, frozen=True):
    """A node as declared; None for `reads` or `writes` means all channels; `external` is a source or ""."""

    name: str
    function: NodeFunction
    reads: tuple[str, ...] | None
    writes: tuple[str, ...] | None
    retry: RetryPolicy
    timeout: float | None
    takes_config: bool
    external: str = ""
    on_taint: OnTaint = "allow"
    work: Work | None = None

    @property
    def info(self) -> NodeInfo:
        """The node as data."""
        reads = ("*",) if self.reads is None else self.reads
        writes = ("*",) if self.writes is None else self.writes
        plain = NodeInfo(
            self.name,
            reads,
            writes,
            external=self.external,
            on_taint=self.on_taint,
            attempts=self.retry.max_attempts,
            timeout=self.timeout,
        )
        work = self.work
        if work is None:
            return plain
        if isinstance(work, SubgraphWork):
            inside = work.graph.info
            return change(plain, kind=kind_of(work), graph=inside, inputs=work.inputs, outputs=work.outputs)
        return change(plain, kind=kind_of(work), **work.declared)


class Route(msgspec.Struct, frozen=True):
    """A conditional edge: the key that the function returns chooses the target."""

    function: RouteFunction
    targets: dict[str, str]
    takes_config: bool = False


class RouteConfig(msgspec.Struct, frozen=True):
    """The second argument of a routing function, if it takes one.

    Attributes:
        context: the context of the invocation, read-only.
    """

    context: Mapping[str, Any] = {}


class CompiledGraph(msgspec.Struct, frozen=True, dict=True):
    """A checked graph, ready to run; immutable and shared by all threads of a runner."""

    name: str
    channels: dict[str, BoundChannel]
    nodes: dict[str, Node]
    edges: dict[str, str]
    routes: dict[str, Route]
    entry: str
    before: dict[str, Gate | None]
    after: dict[str, Gate | None]
    termination: Termination | None
    limits: Limits
    agents: Mapping[str, Any]
    inputs: tuple[InputField, ...]
    output: str
    compensations: Mapping[str, Handler] = {}
    private_context: tuple[str, ...] = ()

    @cached_property
    def info(self) -> GraphInfo:
        """The graph as data."""
        edges = [EdgeInfo(START, self.entry, "")] if self.nodes else []
        for name in self.nodes:
            if name in self.edges:
                edges.append(EdgeInfo(name, self.edges[name], ""))
            elif name in self.routes:
                edges += [EdgeInfo(name, target, key) for key, target in self.routes[name].targets.items()]
        reader = CodeReader(self.agents)
        return GraphInfo(
            name=self.name,
            nodes=tuple(self._with_code(node, node.info, reader) for node in self.nodes.values()),
            edges=tuple(edges),
            channels=tuple(_with_reducer(channel, reader) for channel in self.channels.values()),
            inputs=self.inputs,
            gates=(
                *(gate.info("before", self.channels) for gate in self.before.values() if gate),
                *(gate.info("after", self.channels) for gate in self.after.values() if gate),
            ),
            python=PYTHON,
        )

    @cached_property
    def four_eyes(self) -> bool:
        """Whether a gate of it, or of a graph inside it, may not be answered by authors of the thread."""
        gates = (*self.before.values(), *self.after.values())
        inside = [node.work.graph for node in self.nodes.values() if isinstance(node.work, SubgraphWork)]
        return any(gate.four_eyes for gate in gates if gate) or any(graph.four_eyes for graph in inside)

    def _with_code(self, node: Node, info: NodeInfo, reader: CodeReader) -> NodeInfo:
        route = self.routes.get(node.name)
        return change(
            info,
            members=tuple(
                self._with_code(member, member.info, reader)
                for member in (node.work.members if isinstance(node.work, FanOutWork) else ())
            ),
            code=reader.digest(node.function),
            tools=reader.tools,
            route_code=reader.digest(route.function) if route else "",
        )

    def functions(self, name: str) -> tuple[Callable[..., Any], ...]:
        """Return the functions of a node: its own, those of its subgraph, then its routing function."""
        node, route = self.nodes.get(name), self.routes.get(name)
        if node is None:
            return ()
        match node.work:
            case SubgraphWork(graph=inside):
                inner: tuple[Node, ...] = tuple(inside.nodes.values())
            case FanOutWork(members=members):
                inner = members
            case _:
                inner = ()
        own = tuple(each.function for each in inner or (node,))
        return (*own, route.function) if route else own

    @cached_property
    def digest(self) -> str:
        """A hash of what the graph declares (nodes, edges, channels, reducers, gates) and of its code."""
        return self.info.digest

    def route(self, node: str, state: WorkflowState, context: Mapping[str, Any]) -> str:
        """Return where the run goes after `node`; "" if nothing follows.

        Args:
            context: the context of the invocation.

        Raises:
            HitlError: the routing function raised or returned an unknown key.
        """
        if node in self.edges:
            return self.edges[node]
        return self.ask_route(node, state, context)[1] if node in self.routes else ""

    def ask_route(self, node: str, state: WorkflowState, context: Mapping[str, Any]) -> tuple[str, str]:
        """Return what the routing function after `node` returns, as text, and where that leads.

        Raises:
            HitlError: the routing function raised or returned an unknown key.
        """
        route = self.routes[node]
        try:
            key = route.function(state, RouteConfig(context)) if route.takes_config else route.function(state)
        except HitlError:
            raise
        except Exception as error:
            raise HitlError(
                f"the routing function after node {node!r} raised {described(error)}",
                f"at {place}" if (place := raised_at(error)) else "",
            ) from error
        name = route_key(key)
        if name not in route.targets:
            if inspect.iscoroutine(key):
                key.close()
            truth = "write bool(…) around it; " if name.lower() in ("true", "false") else ""
            raise HitlError(
                f"the routing function after node {node!r} returned {key!r}",
                f"{truth}valid keys: {', '.join(map(repr, route.targets))}",
            )
        return name, route.targets[name]


def _with_reducer(channel: BoundChannel, reader: CodeReader) -> ChannelInfo:
    if not channel.reducer.custom:
        return channel.info
    return change(channel.info, code=reader.digest(channel.reducer.reduce))


def route_key(key: Any) -> str:
    """Return a routing key as text: "true" for True, "1" for 1, and the value of a text enum."""
    if isinstance(key, str):
        return str.__str__(key)
    return str(key).lower() if isinstance(key, bool) else str(key)
