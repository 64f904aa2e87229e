"""Maps, parallels and subgraphs: how they are added to a graph, and made into steps when it is compiled.

Specified in docs/spec/branches.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from hitl_tui.declared import declares, has
from hitl_tui.engine.graph.compiled import FanOutWork, Join, OnError, Quorum, SubgraphWork, kind_of
from hitl_tui.engine.graph.retry import RetryPolicy
from hitl_tui.engine.log.taint import OnTaint
from hitl_tui.engine.log.threads import is_unprintable
from hitl_tui.engine.state.channel import RUN_INPUTS
from hitl_tui.errors import GraphInvalid, in_words

if TYPE_CHECKING:
    from hitl_tui.engine.graph.builder import StateGraph
    from hitl_tui.engine.graph.compiled import CompiledGraph, Node
    from hitl_tui.engine.runner import GraphRunner


def resolve(
    nodes: Mapping[str, Node],
    members: Mapping[str, tuple[str, ...]],
    ends: set[str],
    subgraphs: Mapping[str, SubgraphWork],
    channels: Mapping[str, Any],
) -> dict[str, Node]:
    """Return the steps of a graph: parallels with their members, subgraphs with their graphs.

    Args:
        ends: the nodes that edges and routes name.

    Raises:
        GraphInvalid: a member is unknown, has edges, is in two parallels or has branches itself.
    """
    group_of: dict[str, str] = {}
    for group, names in members.items():
        for member in names:
            if member not in nodes:
                raise GraphInvalid(
                    f"parallel {group!r} names an unknown node {member!r}", f"nodes: {', '.join(nodes)}"
                )
            if member in group_of:
                raise GraphInvalid(f"node {member!r} is in the parallels {group_of[member]!r} and {group!r}")
            if nodes[member].work or member in members or member in subgraphs:
                raise GraphInvalid(
                    f"parallel {group!r}: {member!r} is a {kind_of(nodes[member].work) or 'subgraph'} itself",
                    "its nodes are plain ones; put the map or the subgraph before or after it",
                )
            if member in ends:
                raise GraphInvalid(
                    f"node {member!r} is in the parallel {group!r} and has an edge",
                    f"let the edge lead to or from {group!r}",
                )
            group_of[member] = group
    steps = {}
    for name, node in nodes.items():
        if name in subgraphs:
            steps[name] = _subgraph_node(node, subgraphs[name], channels)
        elif name in members and isinstance(node.work, FanOutWork):
            steps[name] = _parallel_node(node, node.work, tuple(nodes[member] for member in members[name]))
        elif name not in group_of:
            if isinstance(node.work, FanOutWork):
                _check_channel(f"map {name!r}: over", node.work.over.partition(".")[0], channels)
            steps[name] = node
    return steps


def _parallel_node(node: Node, work: FanOutWork, members: tuple[Node, ...]) -> Node:
    reads = [member.reads for member in members]
    writes = [member.writes for member in members]
    policies: list[OnTaint] = ["allow", "warn", "approve", "block"]
    # The strictest policy applies to all members, since they run at once.
    strictest = max((member.on_taint for member in members), key=policies.index)
    work = replace(work, members=members)
    return replace(node, reads=_union(reads), writes=_union(writes), on_taint=strictest, work=work)


def _subgraph_node(node: Node, work: SubgraphWork, channels: Mapping[str, Any]) -> Node:
    where = f"subgraph {node.name!r}"
    for parent, child in work.inputs:
        _check_channel(
            f"{where}: inputs",
            parent.partition(".")[0],
            (*channels, *RUN_INPUTS),
            "inputs goes from this graph's channel to the inner one's; this graph's ",
        )
        _check_channel(f"{where}: inputs, inside", child, (*work.graph.channels, *RUN_INPUTS))
    for child, parent in work.outputs:
        _check_channel(f"{where}: outputs, inside", child, work.graph.channels)
        _check_channel(f"{where}: outputs", parent, channels)
    _check_private_copies(where, work, channels)
    reads = tuple(name for name, _ in work.inputs if name not in RUN_INPUTS)
    return replace(node, reads=reads, writes=tuple(dict.fromkeys(to for _, to in work.outputs)), work=work)


def _check_private_copies(where: str, work: SubgraphWork, channels: Mapping[str, Any]) -> None:
    """Refuse to copy a private channel of one graph into a public channel of the other."""
    inside: Mapping[str, Any] = work.graph.channels
    checks = (
        ("inputs", work.inputs, channels, "", inside, " inside"),
        ("outputs", work.outputs, inside, " inside", channels, ""),
    )
    for option, pairs, known, here, others, there in checks:
        for path, target in pairs:
            source = path.partition(".")[0]
            leaks = source in known and known[source].visibility == "private"
            if leaks and (target not in others or others[target].visibility != "private"):
                raise GraphInvalid(
                    f"{where}: {option} copy the private channel {source!r}{here} into the public "
                    f"{target!r}{there}",
                    f'declare {target!r}{there} with visibility="private", too'
                    if target in others
                    else f"copy it into a channel{there} that is private",
                )


def _union(lists: Sequence[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    known = [names for names in lists if names is not None]
    if len(known) < len(lists):
        return None
    return tuple(dict.fromkeys(name for names in known for name in names))


def _check_channel(
    where: str, name: str, known: Mapping[str, Any] | Sequence[str], direction: str = ""
) -> None:
    if name not in known:
        raise GraphInvalid(
            f"{where}: there is no channel {name!r}", f"{direction}channels: {', '.join(known)}"
        )


MAX_DEPTH = 32
"""How deep subgraphs may be nested."""


class Composing:
    """The part of `StateGraph` that makes nodes of several branches, or of a whole graph."""

    _nodes: dict[str, Node]
    _members: dict[str, tuple[str, ...]]
    _subgraphs: dict[str, tuple[StateGraph | GraphRunner, Mapping[str, str], Mapping[str, str]]]
    add_node: Callable[..., Self]

    @property
    def subgraphs(self) -> list[StateGraph | GraphRunner]:
        """The graphs that are nodes of this one."""
        return [graph for graph, _, _ in self._subgraphs.values()]

    @declares()
    def add_map(
        self,
        name: str,
        *,
        over: str,
        node: Callable[..., Any],
        max_concurrent: int = 5,
        max_items: int = 1000,
        join: Join = "all",
        on_error: OnError = "collect",
        reads: Sequence[str] | None = None,
        writes: Sequence[str] | None = None,
        retry: RetryPolicy | None = None,
        timeout: float | None = None,
        external: bool | str = False,
        on_taint: OnTaint = "allow",
    ) -> Self:
        """Run a node once for each item of a list, in parallel, as one step.

        A branch gets its item as `config.item` and its place as `config.index`, and reads the state as
        it was when the map started.  Updates are committed together, by place, then channel name.

        Args:
            over: the channel with the list, or a path into one, such as `plan.steps`.
            node: a sync or async function as in `add_node`; sync ones run in threads.
            max_concurrent: how many branches run at once.
            max_items: more items than that are an error.
            join: "all" waits for every branch; "first" and `quorum(n)` count successes and stop the rest; if
                they can't be reached, the node fails.
            on_error: "collect" records failed branches and continues; "fail" fails the node at the first
                failed branch.
            reads, writes, retry, timeout, external, on_taint: as in `add_node`, for each branch.

        Raises:
            GraphInvalid: a bad name, join or limit.
        """
        if not isinstance(over, str) or not over.strip():
            raise GraphInvalid(
                f"map {name!r}: over is {over!r}", 'name a channel or a path, as over="plan.steps"'
            )
        _check_join(f"map {name!r}", join, on_error)
        _check_count(f"map {name!r}: max_concurrent", max_concurrent)
        _check_count(f"map {name!r}: max_items", max_items)
        # A branch uses its item, so the map reads the list even if its `reads` does not name it.
        reads = reads if reads is None or over in reads else (*reads, over)
        self.add_node(
            name,
            node,
            reads=reads,
            writes=writes,
            retry=retry,
            timeout=timeout,
            external=external,
            on_taint=on_taint,
        )
        work = FanOutWork(join, on_error, max_concurrent, over=over, max_items=max_items)
        self._nodes[name] = replace(self._nodes[name], work=work)
        return self

    @declares()
    def add_parallel(
        self,
        name: str,
        nodes: Sequence[str],
        *,
        join: Join = "all",
        on_error: OnError = "collect",
        max_concurrent: int | None = None,
    ) -> Self:
        """Run named nodes at once, as one step; they need no edges of their own.

        Each reads the state as it was when the step started.  Updates are committed together, by place in the
        list, then channel name. If two nodes write the same overwrite channel, the later one in the list
        wins, and the checkpoint says so.

        Args:
            nodes: names of nodes added with `add_node`, before or after this.
            join, on_error: as in `add_map`.
            max_concurrent: how many run at once; all by default.

        Raises:
            GraphInvalid: a bad name, join or list.
        """
        if isinstance(nodes, str) or not all(isinstance(node, str) for node in nodes):
            raise GraphInvalid(
                f"parallel {name!r}: nodes is {nodes!r}", 'a list of names of nodes, as nodes=["a", "b"]'
            )
        doubles = sorted({node for node in nodes if list(nodes).count(node) > 1})
        if not nodes or doubles:
            problem = f"it names {doubles[0]!r} twice" if doubles else "it has no nodes"
            raise GraphInvalid(f"parallel {name!r}: {problem}", "name each node once")
        _check_join(f"parallel {name!r}", join, on_error)
        if isinstance(join, Quorum) and join.n > len(nodes):
            raise GraphInvalid(
                f"parallel {name!r}: {join} of {len(nodes)} nodes can't be reached",
                f"at most quorum({len(nodes)})",
            )
        if max_concurrent is not None:
            _check_count(f"parallel {name!r}: max_concurrent", max_concurrent)
        self.add_node(name, _placeholder)
        self._nodes[name] = replace(self._nodes[name], work=FanOutWork(join, on_error, max_concurrent))
        self._members[name] = tuple(nodes)
        return self

    @declares()
    def add_subgraph(
        self,
        name: str,
        graph: StateGraph | GraphRunner,
        *,
        inputs: Mapping[str, str],
        outputs: Mapping[str, str],
        on_taint: OnTaint = "allow",
    ) -> Self:
        """Run a whole graph as one node, on a thread of its own.

        Args:
            graph: a graph, which shares this one's agents, or a compiled one with its own agents, gates and
                limits. Its threads are kept in this graph's store.
            inputs: this graph's channel to the inner one's; copied in at the start.
            outputs: the inner graph's channel to this one's; goes through this one's reducer at the end.
            on_taint: as in `add_node`, for the channels that `inputs` copy.

        Raises:
            GraphInvalid: a bad name. Unknown channels, cycles and copies of a private channel into a public
                one are reported by `compile`.
        """
        if not has(graph, "compile") and not has(graph, "graph"):
            raise GraphInvalid(f"subgraph {name!r} is {in_words(graph)}", "give a StateGraph")
        for option, pairs in (("inputs", inputs), ("outputs", outputs)):
            if not isinstance(pairs, Mapping):
                raise GraphInvalid(
                    f"subgraph {name!r}: {option} is {pairs!r}", f'a mapping, as {option}={{"from": "to"}}'
                )
        self.add_node(name, _placeholder, on_taint=on_taint)
        if is_unprintable(name):
            raise GraphInvalid(
                f"subgraph {name!r} can't be called that: its name goes into those of its threads",
                "use a name without control characters",
            )
        self._subgraphs[name] = (graph, dict(inputs), dict(outputs))
        return self


def depth_of(graph: CompiledGraph) -> int:
    """Return how deeply graphs are nested in a graph."""
    inner = [node.work.graph for node in graph.nodes.values() if isinstance(node.work, SubgraphWork)]
    return 1 + max(map(depth_of, inner)) if inner else 0


def asks_humans(graph: CompiledGraph) -> str:
    """Return where a graph or a subgraph asks a person, also about untrusted data; "" for nowhere."""
    for name in (*graph.before, *graph.after):
        return f"the interrupt at {name!r}"
    for node in graph.nodes.values():
        if node.on_taint == "approve":
            return f"on_taint='approve' of node {node.name!r}"
    for node in graph.nodes.values():
        if isinstance(node.work, SubgraphWork) and (inside := asks_humans(node.work.graph)):
            return f"{inside} inside subgraph {node.name!r}"
    return ""


def _check_join(where: str, join: Any, on_error: Any) -> None:
    if join not in ("all", "first") and not isinstance(join, Quorum):
        raise GraphInvalid(f"{where}: join is {join!r}", 'one of "all", "first" and quorum(n)')
    if on_error not in ("collect", "fail"):
        raise GraphInvalid(f"{where}: on_error is {on_error!r}", 'one of "collect" and "fail"')


def _check_count(where: str, count: Any) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise GraphInvalid(f"{where} is {count!r}", "give a whole number of at least 1")


def _placeholder(_state: Any) -> None:
    """Placeholder for the function of a node whose work is done by its branches or its subgraph."""
