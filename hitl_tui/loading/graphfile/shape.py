"""Format of graph files; the JSON Schema for editors is made from these classes.

Names follow the public Python API, so that a file reads like the equivalent code.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from hitl_tui.engine.log.taint import OnTaint

Count: TypeAlias = Annotated[int, Meta(ge=1)]
Text: TypeAlias = Annotated[str, Meta(min_length=1)]


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A table of a graph file."""


class GraphTable(Table, frozen=True):
    """The graph as a whole."""

    name: Annotated[str, Meta(description="Shown on screens; the file's name by default.")] = ""
    output: Annotated[str, Meta(description="The channel that is the result of a run.")] = "output"
    workflow: Annotated[
        str,
        Meta(
            description="A ready-made workflow instead of nodes and edges.",
            examples=["advisor", "sequential", "supervisor", "debate", "planner"],
        ),
    ] = ""
    private_context: Annotated[
        list[Text], Meta(description="Names in the context of an invocation whose values are private.")
    ] = []


class ChannelTable(Table, frozen=True):
    """A named slot of the state."""

    default: Annotated[Any, Meta(description="The value at the start; by the reducer if left out.")] = UNSET
    initial: Annotated[Any, Meta(description="Another name for default.")] = UNSET
    unset: Annotated[bool, Meta(description="Start at null; min and max then take their first update.")] = (
        False
    )
    reducer: Annotated[
        str,
        Meta(
            description="How an update changes the value; overwrite by default.",
            examples=["overwrite", "append", "extend", "last_n(8)", "sum", "my_reducers.py:highest"],
        ),
    ] = ""
    schema: Annotated[
        str | dict[str, Any],
        Meta(description="JSON Schema of the value: a table, or a JSON file beside this one."),
    ] = msgspec.field(default_factory=dict)
    visibility: Annotated[
        Literal["public", "private"], Meta(description="Private values stay out of views and exports.")
    ] = "public"
    description: Annotated[str, Meta(description="For people, and in the block that agents read.")] = ""


class ReplyTable(Table, frozen=True):
    """One line of an agent's script."""

    say: Annotated[str, Meta(description="The reply.")]
    when: Annotated[
        str, Meta(description="Use this reply if the prompt matches this regular expression.")
    ] = ""


class AgentTable(Table, frozen=True):
    """A model with its instructions. Keys of providers come from the environment, never from here."""

    model: Annotated[
        str,
        Meta(
            description="A litellm name, or demo/NAME for a model that needs no key.",
            examples=["anthropic/claude-sonnet-4-5", "ollama/llama3.2", "demo/advisor"],
        ),
    ] = ""
    replies: Annotated[
        list[str | ReplyTable],
        Meta(description="A script instead of a model: the first reply whose `when` matches the prompt."),
    ] = []
    instructions: Annotated[str, Meta(description="The system message.")] = ""
    role: Annotated[str, Meta(description="The agent's role in the workflow.")] = ""
    api_base: Annotated[str, Meta(description="Address of the model's server.")] = ""
    temperature: Annotated[float, Meta(ge=0)] | UnsetType = UNSET
    max_tokens: Annotated[int, Meta(ge=1, description="Most tokens of a reply.")] | UnsetType = UNSET
    timeout: Annotated[float, Meta(gt=0, description="Seconds a call may take.")] | UnsetType = UNSET
    num_retries: (
        Annotated[int, Meta(ge=0, description="Retries after a rate limit or a server error.")] | UnsetType
    ) = UNSET
    tools: Annotated[
        list[str],
        Meta(
            description="Python functions that the model may call; types and docstring say how.",
            examples=[["my_tools.py:search", "my_package.tools:send"]],
        ),
    ] = []
    servers: Annotated[
        list[str], Meta(description="MCP servers of this file; the model may call all their tools.")
    ] = []
    approve: Annotated[
        Literal["always", "never"], Meta(description="Whether a person must approve each tool call.")
    ] = "never"
    effects_once: Annotated[
        list[str],
        Meta(
            description="Names of its own tools that must not run twice: a person is asked about a call that "
            "its process did not survive.",
            examples=[["pay"]],
        ),
    ] = []
    history: Annotated[
        str,
        Meta(
            description="Where the chat turns are kept; by default each node starts without any.",
            examples=["channel:talk"],
        ),
    ] = ""
    options: Annotated[dict[str, Any], Meta(description="Other options of litellm.")] = {}


class ServerTable(Table, frozen=True):
    """An MCP server: a program that is started, or an address. `$NAME` in env and headers is a variable."""

    command: Annotated[
        list[str],
        Meta(description="The program and its arguments.", examples=[["python", "server.py"]]),
    ] = []
    url: Annotated[str, Meta(description="The address, instead.", examples=["http://localhost:8000/mcp"])] = (
        ""
    )
    env: Annotated[
        dict[str, str],
        Meta(description="Variables for the program.", examples=[{"GITHUB_TOKEN": "$GITHUB_TOKEN"}]),
    ] = {}
    headers: Annotated[
        dict[str, str],
        Meta(
            description="Headers of requests to the address.",
            examples=[{"Authorization": "Bearer $DOCS_TOKEN"}],
        ),
    ] = {}
    only: Annotated[list[str], Meta(description="The tools that are offered; all by default.")] = []
    prefix: Annotated[str, Meta(description="Put before the names of its tools.")] = ""
    external: Annotated[bool, Meta(description="Whether the results of its tools are untrusted data.")] = True
    approve: Annotated[
        Literal["always", "never"] | UnsetType,
        Meta(description="Whether a person must approve each call; by default as for its agent."),
    ] = UNSET
    timeout: Annotated[float, Meta(gt=0, description="Seconds a call may take.")] = 60.0
    effects: Annotated[
        Literal["repeatable", "once"],
        Meta(description="`once`: a person is asked about a call that its process did not survive."),
    ] = "repeatable"


class RetryTable(Table, frozen=True):
    """How often a failing node is tried, and how long to wait in between."""

    max_attempts: Annotated[int, Meta(ge=1, description="Attempts in all, the first included.")] = 3
    wait: Annotated[float, Meta(ge=0, description="Seconds before the second attempt.")] = 1.0
    backoff: Annotated[float, Meta(ge=1, description="Factor by which the wait grows.")] = 2.0
    jitter: Annotated[float, Meta(ge=0, le=1, description="Share of the wait that is random.")] = 0.1
    overlap: Annotated[
        bool, Meta(description="Whether an attempt starts although code of a timed-out one still runs.")
    ] = False


class ChoiceTable(Table, frozen=True):
    """One answer of a gate."""

    id: Annotated[Text, Meta(description="The id to answer with.")]
    label: Annotated[str, Meta(description="The label for people; the id by default.")] = ""
    key: Annotated[str, Meta(description="The key suggested on screen.")] = ""
    set: Annotated[dict[str, Any], Meta(description="Channel values that the answer sets.")] = {}
    words: Annotated[str, Meta(description="The channel that gets the person's text.")] = ""
    text: Annotated[
        Literal["none", "optional", "required"] | UnsetType,
        Meta(description="Whether the answer takes a text; required if `words` names a channel."),
    ] = UNSET


class GateTable(Table, frozen=True):
    """A question to a person, with what each answer does to the state."""

    title: Annotated[Text, Meta(description="The question.")]
    choices: Annotated[list[ChoiceTable], Meta(description="The allowed answers.", min_length=1)]
    subject: Annotated[str, Meta(description="The channel that the decision is about.")] = ""
    show: Annotated[list[str], Meta(description="Channels shown with the question.")] = []
    binds: Annotated[
        list[str], Meta(description="The shown channels that an answer applies to; all if left out.")
    ] = []
    recommended: Annotated[str, Meta(description="Id of the recommended answer.")] = ""
    reviewers: Annotated[list[str], Meta(description="Who may answer; anyone if left out.")] = []
    quorum: Annotated[int, Meta(ge=1, description="How many people must give the same answer.")] = 1
    one_account: Annotated[bool, Meta(description="May one account give several of these votes?")] = False
    logins: Annotated[
        list[str], Meta(description="Database users or groups who may answer; needs PostgreSQL.")
    ] = []
    signed: Annotated[bool, Meta(description="Must an answer be signed with the reviewer's key?")] = False
    rubric: Annotated[
        list[str], Meta(description="Criteria that a person may score from 1 to 5 with the answer.")
    ] = []
    second_reading: Annotated[
        float,
        Meta(ge=0, le=1, description="The share of answered questions that another person reads again."),
    ] = 0.0
    four_eyes: Annotated[
        bool, Meta(description="Must somebody answer who has given the thread no input and no edit?")
    ] = False
    deadline: Annotated[float, Meta(gt=0, description="Seconds until the question expires.")] | UnsetType = (
        UNSET
    )
    on_timeout: Annotated[str, Meta(description="Id of the answer then; without it the run fails.")] = ""
    escalate_to: Annotated[list[str], Meta(description="Who may also answer after `escalate_after`.")] = []
    escalate_after: (
        Annotated[float, Meta(description="Seconds until it escalates; below 0, before the deadline.")]
        | UnsetType
    ) = UNSET
    risk: Annotated[
        Literal["normal", "high"], Meta(description="high needs a second key press on screen.")
    ] = "normal"


class GateAtTable(GateTable, frozen=True, kw_only=True):
    """A gate before or after a node that does work of its own."""

    node: Annotated[Text, Meta(description="The node that has the gate.")]


class NodeTable(Table, frozen=True):
    """A step of the graph: an agent, a Python function, or a gate; one of the three keys says which."""

    agent: Annotated[str, Meta(description="The agent to call.")] = ""
    prompt: Annotated[
        str,
        Meta(
            description=(
                "What the agent is asked: {channel} stands for a value among `reads`, "
                "{workflow_state} for all of them; {{channel}} is left as {channel}."
            )
        ),
    ] = "{workflow_state}"
    answer: Annotated[
        Literal["text", "json", "envelope"] | UnsetType,
        Meta(
            description=(
                "text or json: the reply is the update of the one channel in `writes`; envelope: a JSON "
                "object with state_updates, text and status. By default text for one channel, else envelope."
            )
        ),
    ] = UNSET
    function: Annotated[
        str,
        Meta(
            description="A Python function (state, config) that returns a dict of updates.",
            examples=["my_nodes.py:fetch", "my_package.nodes:fetch"],
        ),
    ] = ""
    gate: Annotated[GateTable | UnsetType, Meta(description="A question to a person.")] = UNSET
    reads: Annotated[
        str | list[str], Meta(description='Channels it may read; "*" for all public ones, none by default.')
    ] = []
    writes: Annotated[
        str | list[str], Meta(description='Channels it may write; "*" for all, none by default.')
    ] = []
    retry: Annotated[Count | RetryTable, Meta(description="Attempts in all, or a table.")] = 1
    timeout: Annotated[float, Meta(gt=0, description="Seconds an attempt may take.")] | UnsetType = UNSET
    external: Annotated[
        bool | Text,
        Meta(
            description=(
                "It brings in untrusted data (from a tool, a file, the network), so all it writes is "
                "tainted; a text names the source."
            ),
            examples=[True, "web"],
        ),
    ] = False
    on_taint: Annotated[
        OnTaint,
        Meta(
            description=(
                "What happens before it runs if a channel in `reads` is tainted: allow, warn (a note in the "
                "ledger), block (the run fails) or approve (a human must agree to what it would read)."
            )
        ),
    ] = "allow"


Join: TypeAlias = Literal["all", "first"] | Count
OnError: TypeAlias = Literal["collect", "fail"]


class MapTable(NodeTable, frozen=True, kw_only=True):
    """A node that runs once for each item of a list, in parallel; its prompt shows {item}."""

    over: Annotated[
        Text, Meta(description="The channel with the list, or a path into one.", examples=["plan.steps"])
    ]
    join: Annotated[Join, Meta(description="all, first, or how many successes are enough.")] = "all"
    on_error: Annotated[
        OnError, Meta(description="collect records failed branches; fail fails the node at the first one.")
    ] = "collect"
    max_concurrent: Annotated[int, Meta(ge=1, description="How many branches run at once.")] = 5
    max_items: Annotated[int, Meta(ge=1, description="More items are an error.")] = 1000


class ParallelTable(Table, frozen=True):
    """Nodes that run at once, as one step; they need no edges of their own."""

    nodes: Annotated[list[Text], Meta(min_length=1, description="Names of nodes, in their order.")]
    join: Annotated[Join, Meta(description="all, first, or how many successes are enough.")] = "all"
    on_error: Annotated[
        OnError, Meta(description="collect records failed nodes; fail fails the step at the first one.")
    ] = "collect"
    max_concurrent: (
        Annotated[int, Meta(ge=1, description="How many run at once; all by default.")] | UnsetType
    ) = UNSET


class SubgraphTable(Table, frozen=True):
    """A whole graph as one node, with its own thread."""

    graph: Annotated[Text, Meta(description="A graph file beside this one.", examples=["team.toml"])]
    inputs: Annotated[dict[str, str], Meta(description="This graph's channel to the inner one's.")] = {}
    outputs: Annotated[dict[str, str], Meta(description="The inner graph's channel to this one's.")] = {}
    on_taint: Annotated[
        OnTaint, Meta(description="As for a node, for the channels that `inputs` copies.")
    ] = "allow"


class EdgeTable(Table, frozen=True):
    """An edge that is always taken."""

    source: Annotated[str, Meta(description="A node, or START.")] = msgspec.field(name="from")
    to: Annotated[str, Meta(description="A node, or END.")]


class RouteTable(Table, frozen=True):
    """A route that the state decides, by the value of a channel or by a function."""

    source: Annotated[str, Meta(description="A node.")] = msgspec.field(name="from")
    map: Annotated[
        dict[str, str],
        Meta(description='Channel value or returned key to a node or END; "*" for all others.', min_length=1),
    ]
    channel: Annotated[str, Meta(description="The channel whose value chooses the destination.")] = ""
    function: Annotated[str, Meta(description="A Python function (state) that returns a key.")] = ""


class InterruptsTable(Table, frozen=True):
    """Where a run stops for a person."""

    before: Annotated[
        str | list[str | GateAtTable], Meta(description='Nodes or gates to stop before; "*" for all nodes.')
    ] = []
    after: Annotated[
        str | list[str | GateAtTable], Meta(description='Nodes or gates to stop after; "*" for all nodes.')
    ] = []


class LimitsTable(Table, frozen=True):
    """What a run may use up."""

    max_iterations: Annotated[int, Meta(ge=1, description="Node runs.")] = 25
    max_tokens: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    max_cost_usd: Annotated[float, Meta(gt=0)] | UnsetType = UNSET
    max_seconds: Annotated[float, Meta(gt=0, description="Active time.")] | UnsetType = UNSET
    on_unknown_price: Annotated[
        Literal["warn", "stop"], Meta(description="What a call of unknown price does to max_cost_usd.")
    ] = "warn"


class TextMatchTable(Table, frozen=True):
    """A regular expression and the channel it is looked for in."""

    pattern: Text
    channel: Text


class TerminationTable(Table, frozen=True):
    """What ends a run as completed before END is reached."""

    max_turns: Annotated[int, Meta(ge=1, description="Node runs.")] | UnsetType = UNSET
    cost_limit: Annotated[float, Meta(gt=0, description="US dollars.")] | UnsetType = UNSET
    text_match: TextMatchTable | UnsetType = UNSET
    combine: Annotated[
        Literal["any", "all"], Meta(description="Whether one condition is enough, or all are needed.")
    ] = "any"


class InputTable(Table, frozen=True):
    """What a person is asked for when a thread starts."""

    channel: Annotated[
        str, Meta(description="The channel it sets; by default the one with the input's name.")
    ] = ""
    label: Annotated[str, Meta(description="The question; the input's name by default.")] = ""
    example: Annotated[str, Meta(description="Shown as an example.")] = ""


class GraphFile(Table, frozen=True):
    """A graph of hitl-tui."""

    graph: GraphTable = GraphTable()
    channels: Annotated[
        dict[str, ChannelTable],
        Meta(description="Channels by name; with a ready-made workflow they replace its own."),
    ] = {}
    agents: dict[str, AgentTable] = {}
    servers: dict[str, ServerTable] = {}
    nodes: dict[str, NodeTable] = {}
    maps: dict[str, MapTable] = {}
    parallels: dict[str, ParallelTable] = {}
    subgraphs: dict[str, SubgraphTable] = {}
    edges: list[EdgeTable] = []
    routes: list[RouteTable] = []
    interrupts: InterruptsTable = InterruptsTable()
    limits: LimitsTable = LimitsTable()
    termination: TerminationTable = TerminationTable()
    inputs: dict[str, InputTable] = {}
    compensations: Annotated[
        dict[str, Text],
        Meta(
            description=(
                "Handlers that undo side effects: Python functions (state, config, args). Nodes name one "
                "in NodeResult(compensation=(name, args))."
            ),
            examples=[{"cancel_hotel": "trip.py:cancel_hotel"}],
        ),
    ] = {}
    options: Annotated[dict[str, Any], Meta(description="Options of the ready-made workflow.")] = {}
