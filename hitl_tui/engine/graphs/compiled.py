"""A graph as it runs: its steps, its ways on, and what it declares as data (SPEC 5)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from msgspec.structs import replace as change

from hitl_tui.engine.channels.channel import BoundChannel
from hitl_tui.engine.channels.state import WorkflowState
from hitl_tui.engine.graphs.compensation import Handler
from hitl_tui.engine.graphs.description import EdgeInfo, GraphInfo, InputField, NodeInfo
from hitl_tui.engine.graphs.gates import Gate
from hitl_tui.engine.graphs.raised_at import raised_at
from hitl_tui.engine.graphs.retry import RetryPolicy
from hitl_tui.engine.graphs.termination import Termination
from hitl_tui.engine.graphs.work import SubgraphWork, Work, kind_of
from hitl_tui.engine.log.records import START, Limits
from hitl_tui.engine.log.taint import OnTaint
from hitl_tui.errors import HitlError

NodeFunction = Callable[..., Any]
RouteFunction = Callable[[WorkflowState], Any]


@dataclass(frozen=True)
class Node:
    """A node as added; `reads` and `writes` None mean all channels, `external` is a source or ""."""

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


@dataclass(frozen=True)
class Route:
    """A conditional edge: the function's key picks the target."""

    function: RouteFunction
    targets: dict[str, str]


@dataclass(frozen=True)
class CompiledGraph:
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
    compensations: Mapping[str, Handler] = field(default_factory=dict)

    @cached_property
    def info(self) -> GraphInfo:
        """The graph as data."""
        edges = [EdgeInfo(START, self.entry, "")] if self.nodes else []
        for name in self.nodes:
            if name in self.edges:
                edges.append(EdgeInfo(name, self.edges[name], ""))
            elif name in self.routes:
                edges += [EdgeInfo(name, target, key) for key, target in self.routes[name].targets.items()]
        return GraphInfo(
            name=self.name,
            nodes=tuple(node.info for node in self.nodes.values()),
            edges=tuple(edges),
            channels=tuple(channel.info for channel in self.channels.values()),
            inputs=self.inputs,
        )

    @cached_property
    def digest(self) -> str:
        """A hash of what the graph declares: nodes, edges, channels, reducers."""
        return self.info.digest

    def route(self, node: str, state: WorkflowState) -> str:
        """Where the run goes after `node`, "" where there is no way on.

        Raises:
            HitlError: the routing function raised or returned an unknown key.
        """
        if node in self.edges:
            return self.edges[node]
        if node not in self.routes:
            return ""
        route = self.routes[node]
        try:
            key = route.function(state)
        except HitlError:
            raise
        except Exception as error:
            raise HitlError(
                f"the routing function after node {node!r} raised {type(error).__name__}: {error}",
                f"at {place}" if (place := raised_at(error)) else "",
            ) from error
        if inspect.iscoroutine(key):
            key.close()
        name = route_key(key)
        if name not in route.targets:
            raise HitlError(
                f"the routing function after node {node!r} returned {key!r}",
                f"valid keys: {', '.join(map(repr, route.targets))}",
            )
        return route.targets[name]


def route_key(key: Any) -> str:
    """A routing key as text: true, 1, and the value of a text enum."""
    if isinstance(key, str):
        return str.__str__(key)
    return str(key).lower() if isinstance(key, bool) else str(key)
