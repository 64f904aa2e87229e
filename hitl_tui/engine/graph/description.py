"""A graph as data, without functions: screens draw it, and digests are made from it."""

import hashlib
from typing import Annotated, Any, Literal, Self

import msgspec

from hitl_tui.declared import Declaration
from hitl_tui.engine.log.records import StoredGraph
from hitl_tui.engine.log.requests import Choice, RequestKind
from hitl_tui.engine.log.taint import OnTaint
from hitl_tui.engine.log.units import about
from hitl_tui.engine.state.channel import ChannelInfo
from hitl_tui.engine.state.values import check_nesting
from hitl_tui.errors import LogCorrupt

NodeKind = Literal["node", "map", "parallel", "subgraph"]

_GO_BACK = "restore a backup of the store"


class NodeInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node as declared: what it may do, and its kind.

    Args:
        reads, writes: the channels that it may read and write, ("*",) for all.
        kind: "" for a plain node, else "map", "parallel" or "subgraph".
        over: for a map, the channel or path with its items.
        join: for a map or a parallel, "all", "first" or "quorum(n)".
        max_concurrent: for a map or a parallel, how many branches run at once; None for all.
        max_items: for a map; more items are an error.
        on_error: for a map or a parallel, "fail" if one failed branch fails the node.
        members: for a parallel, the nodes that run at once, in their order.
        graph: for a subgraph, the graph inside.
        closed: for a subgraph, why it can't be stepped into; "" if it can.
        inputs, outputs: for a subgraph, (parent's channel, child's) and (child's, parent's).
        external: the source of the untrusted data that it brings in, "" for none.
        on_taint: what happens before it reads tainted channels.
        attempts: how often it is attempted.
        timeout: seconds that an attempt may take; None for no limit.
        code, route_code: digests of its function and of its routing function (see `graph.code_digest`), ""
            for none.
        tools: the tools that the agents it is known to use may call.
    """

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    kind: NodeKind = "node"
    over: str = ""
    join: str = ""
    max_concurrent: int | None = None
    max_items: int | None = None
    on_error: str = ""
    members: tuple["NodeInfo", ...] = ()
    graph: "GraphInfo | None" = None
    closed: str = ""
    inputs: tuple[tuple[str, str], ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()
    external: str = ""
    on_taint: OnTaint = "allow"
    attempts: int = 1
    timeout: float | None = None
    code: str = ""
    route_code: str = ""
    tools: tuple[str, ...] = ()


class EdgeInfo(msgspec.Struct, frozen=True):
    """An arrow of the graph; `label` is the routing key, "" for a fixed edge."""

    source: Annotated[str, about("A node, or `START`.")]
    target: Annotated[str, about("A node, or `END`.")]
    label: Annotated[str, about("The routing key; empty for a fixed edge.")]


class InputField(Declaration, frozen=True):
    """An input that a graph asks for when a thread starts: a name for people, and its channel."""

    name: Annotated[str, about("The input's name, as in `--input`.")]
    channel: Annotated[str, about("The channel that it sets.")]
    label: Annotated[str, about("The question.")]
    example: Annotated[str, about("An example.")] = ""


class GateInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A gate before or after a node, as declared: what it asks, whom, and which answers let a run pass.

    Args:
        sets: by the id of a choice, the channel values that it sets; choices that set a private channel, or
            values from a function, are left out.
        deadline: seconds until it expires; None for never.
        on_timeout: the id of the choice that applies then; "" if the thread fails.
    """

    node: Annotated[str, about("The node that has the gate.")]
    when: Annotated[Literal["before", "after"], about("Whether it asks before or after the node.")]
    title: Annotated[str, about("The question.")]
    kind: Annotated[RequestKind, about("The kind of answer.")]
    choices: Annotated[tuple[Choice, ...], about("The allowed answers.")]
    sets: Annotated[
        dict[str, dict[str, Any]],
        about("By the id of a choice, the channel values it sets, except private and computed ones."),
    ] = {}
    subject: Annotated[str | None, about("The channel that the decision is about.")] = None
    recommended: Annotated[str | None, about("The recommended choice.")] = None
    reviewers: Annotated[tuple[str, ...], about("Who may answer; empty for anyone.")] = ()
    quorum: Annotated[int, about("How many people must agree.")] = 1
    one_account: Annotated[bool, about("Whether one operating system account may give several votes.")] = (
        False
    )
    logins: Annotated[
        tuple[str, ...], about("Database users or groups who may answer; empty for anyone.")
    ] = ()
    signed: Annotated[bool, about("Whether an answer must be signed.")] = False
    rubric: Annotated[tuple[str, ...], about("The criteria to score from 1 to 5 with an answer.")] = ()
    second_reading: Annotated[
        float, about("The share of its answered requests that another person reads again.")
    ] = 0.0
    four_eyes: Annotated[bool, about("Whether authors of the thread may not answer.")] = False
    deadline: Annotated[float | None, about("Seconds until it expires; null for never.")] = None
    on_timeout: Annotated[
        str, about("The id of the choice that applies at the deadline; empty if the thread fails.")
    ] = ""
    escalate_to: Annotated[tuple[str, ...], about("Who may also answer once it escalates.")] = ()
    escalate_after: Annotated[
        float | None,
        about("Seconds until it escalates; below 0, seconds before the deadline; null for never."),
    ] = None
    risk: Annotated[Literal["normal", "high"], about("A decision of `high` risk needs `--yes`.")] = "normal"
    binds: Annotated[
        tuple[str, ...],
        about("The parts of the payload that an answer applies to; empty for all."),
    ] = ()

    @property
    def names_people(self) -> bool:
        """Whether it says who may answer it, or how; otherwise anyone may."""
        return bool(self.reviewers or self.logins or self.signed or self.four_eyes or self.quorum > 1)


class GraphInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A whole graph: nodes (START and END are only in the edges), edges, channels, gates.

    Args:
        python: the version of Python for which its digests of code are valid, "" if it has none.
    """

    name: str
    nodes: tuple[NodeInfo, ...]
    edges: tuple[EdgeInfo, ...]
    channels: tuple[ChannelInfo, ...]
    inputs: tuple[InputField, ...]
    gates: tuple[GateInfo, ...] = ()
    python: str = ""

    def why_closed(self, name: str) -> str:
        """Return why a subgraph's node can't be stepped into; "" for any other node."""
        node = self.node(name)
        return node.closed if node else ""

    def node(self, name: str) -> NodeInfo | None:
        """Return a node by its name; None for START, END and unknown names."""
        return next((node for node in self.nodes if node.name == name), None)

    def kind_of(self, name: str) -> NodeKind:
        """Return the kind of a node."""
        node = self.node(name)
        return node.kind if node else "node"

    def members_of(self, name: str) -> tuple[str, ...]:
        """Return the names of the nodes in a parallel, in their order; () for others."""
        node = self.node(name)
        return tuple(member.name for member in node.members) if node else ()

    @property
    def body(self) -> bytes:
        """The graph as JSON, as stores keep it by its digest."""
        return msgspec.json.encode(self, order="sorted")

    @property
    def digest(self) -> str:
        """A hash of what the graph declares (nodes, edges, channels, reducers, gates) and of its code."""
        return hashlib.sha256(self.body).hexdigest()

    @property
    def stored(self) -> StoredGraph:
        """The graph in the form in which a store keeps it."""
        body = self.body
        return StoredGraph(hashlib.sha256(body).hexdigest(), body)

    @classmethod
    def of(cls, stored: StoredGraph) -> Self:
        """Return the graph that a store keeps, after checking its hash.

        Raises:
            LogCorrupt: the body does not match the digest, or is not a graph.
        """
        if hashlib.sha256(stored.body).hexdigest() != stored.digest:
            raise LogCorrupt(f"the graph {stored.digest[:12]} was changed after it was stored", _GO_BACK)
        try:
            check_nesting(stored.body)
            return msgspec.json.decode(stored.body, type=cls)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise LogCorrupt(f"the graph {stored.digest[:12]} can't be read: {error}", _GO_BACK) from error
