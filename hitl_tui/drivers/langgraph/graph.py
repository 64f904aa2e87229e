"""Describes a compiled LangGraph graph as data: nodes, edges, channels with their operators, subgraphs."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Final, get_type_hints

from msgspec.structs import replace

from hitl_tui.drivers.langgraph.pregel import OUTPUT, Graph
from hitl_tui.drivers.langgraph.subgraphs import why_closed
from hitl_tui.drivers.langgraph.values import as_json
from hitl_tui.engine.graph.description import EdgeInfo, GraphInfo, InputField, NodeInfo
from hitl_tui.engine.graph.limits import UNLIMITED
from hitl_tui.engine.log.records import END, START
from hitl_tui.engine.state.canonical import canonical
from hitl_tui.engine.state.channel import BoundChannel, Channel, ChannelInfo
from hitl_tui.engine.state.reducers import Reducer, overwrite
from hitl_tui.engine.thread.recorded import RecordedGraph, graph_of_info
from hitl_tui.errors import UsageError

_THEIR_START, _THEIR_END = "__start__", "__end__"
_DEEPEST = 8
IN_ONE_GO: Final = "LangGraph runs an entrypoint's tasks in one go, and stops there for a question alone"
_PLAIN_CHANNELS = ("LastValue", "LastValueAfterFinish", "AnyValue", "EphemeralValue", "UntrackedValue")


def describe(app: Graph, name: str, *, depth: int = 0) -> GraphInfo:
    """Describe a graph.

    Args:
        name: the name of the graph.
        depth: how many graphs it is nested in.
    """
    drawn = app.get_graph()
    names = [node for node in app.nodes if node != _THEIR_START]
    inside = dict(app.get_subgraphs()) if depth < _DEEPEST else {}
    nodes = tuple(_node(app, node, inside.get(node) or _graph_of(app, node), depth) for node in names)
    labelled = not is_entrypoint(app)
    edges = tuple(_edge(edge, labelled=labelled and edge.conditional) for edge in drawn.edges)
    channels = tuple(_channel(app, channel) for channel in state_channels(app))
    return GraphInfo(name=name, nodes=nodes, edges=edges, channels=channels, inputs=_inputs(app, channels))


def recorded(info: GraphInfo) -> RecordedGraph:
    """Return the graph for a thread's session; our engine runs none of its nodes."""
    return replace(graph_of_info(info, info.digest), limits=UNLIMITED)


def state_channels(app: Graph) -> list[str]:
    """Return the names of the channels that make up the state."""
    keys = app.stream_channels_asis
    return [OUTPUT] if isinstance(keys, str) else list(keys)


def bound_channels(app: Graph) -> dict[str, BoundChannel]:
    """The channels as changes name them: each with its operator's name, whose results the log keeps."""
    return {
        name: BoundChannel(name, Channel(default_of(app, name), reducer=_reducer(app, name)), checked=False)
        for name in state_channels(app)
    }


def operator_of(app: Graph, name: str) -> Any:
    """Return a channel's reducer function, None if an update replaces the value."""
    channel = app.channels.get(name)
    return getattr(channel, "operator", None) or getattr(channel, "reducer", None)


def default_of(app: Graph, name: str) -> Any:
    """Return what a channel holds before the first write, null if it is empty."""
    channel: Any = app.channels.get(name)
    try:
        if hasattr(channel, "from_checkpoint"):  # the value of a new thread: a declared channel may be empty
            from langgraph._internal._typing import MISSING

            channel = channel.from_checkpoint(MISSING)
        return as_json(channel.get()) if channel is not None else None
    except Exception:  # an empty channel raises a LangGraph error
        return None


def operator_name(operator: Any) -> str:
    """Return the name of an operator, such as `operator.add` or `add_messages`."""
    name = str(getattr(operator, "__qualname__", "") or getattr(operator, "__name__", ""))
    name = name.rpartition("<locals>.")[2]
    if not name:
        inner = getattr(operator, "func", None)
        return operator_name(inner) if inner is not None else type(operator).__name__
    module = str(getattr(operator, "__module__", "") or "")
    if module in ("_operator", "operator"):
        return f"operator.{name}"
    return name.lstrip("_") if name != "<lambda>" else "lambda"


def _reducer(app: Graph, name: str) -> Reducer:
    operator = operator_of(app, name)
    channel = app.channels.get(name)
    if operator is None and (channel is None or type(channel).__name__ in _PLAIN_CHANNELS):
        return overwrite()
    text = operator_name(operator) if operator is not None else type(channel).__name__
    return Reducer(text, _never, "custom", part="none", custom=True, source_hash=_code(operator))


def _never(_previous: Any, _update: Any) -> Any:
    raise RuntimeError("the results of LangGraph's operators are in the log")


def _code(operator: Any) -> str:
    try:
        source = inspect.getsource(operator)
    except (OSError, TypeError):
        source = operator_name(operator)
    return hashlib.sha256(source.encode()).hexdigest()


def _channel(app: Graph, name: str) -> ChannelInfo:
    reducer = _reducer(app, name)
    return ChannelInfo(
        name=name,
        type=type_word(getattr(app.channels.get(name), "typ", None)),
        reducer=reducer.text,
        visibility="public",
        description="",
        schema={},
        default=default_of(app, name),
        code=reducer.source_hash[:8],
    )


_WORDS: Final[Mapping[str, str]] = {"str": "text", "int": "number", "float": "number", "bool": "boolean"}


def type_word(kind: Any) -> str:
    """Return a short name for a channel's annotated type."""
    if kind is None or kind is Any:
        return "any"
    kind = getattr(kind, "__origin__", kind) if hasattr(kind, "__metadata__") else kind  # `Annotated`
    name = getattr(kind, "__name__", "") or str(kind)
    name = name.rpartition(".")[2]
    return _WORDS.get(name, name)[:40]


def _graph_of(app: Graph, name: str) -> Any:
    """Return the graph that a node runs as a subgraph, even without a checkpointer; None for other nodes."""
    bound = getattr(app.nodes[name], "bound", None)
    return bound if hasattr(bound, "stream_channels_asis") and hasattr(bound, "get_subgraphs") else None


def functions(app: Graph, name: str) -> tuple[Any, ...]:
    """Return the functions that a node calls, then those that choose its route."""
    branches = getattr(getattr(app, "builder", None), "branches", {}).get(name, {})
    runnables = (getattr(app.nodes.get(name), "bound", None), *(branch.path for branch in branches.values()))
    called = (getattr(each, "func", None) or getattr(each, "afunc", None) for each in runnables)
    return tuple(function for function in called if function is not None)


def _node(app: Graph, name: str, inner: Any, depth: int) -> NodeInfo:
    node: Any = app.nodes[name]
    policies = node.retry_policy or ()
    policies = policies if isinstance(policies, (list, tuple)) else (policies,)
    return NodeInfo(
        name=name,
        reads=("*",),
        writes=("*",),
        kind="subgraph" if inner is not None else "node",
        graph=describe(inner, name, depth=depth + 1) if inner is not None else None,
        inputs=_shared(app, _taken(inner)) if inner is not None else (),
        outputs=_shared(app, _given(inner)) if inner is not None else (),
        closed=_closed(app, inner),
        attempts=max((policy.max_attempts for policy in policies), default=1),
        timeout=_seconds(getattr(node, "timeout", None)),
    )


def _shared(app: Graph, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return the channels that a subgraph shares with its parent by name: LangGraph passes those on."""
    own = set(state_channels(app))
    return tuple((name, name) for name in names if name in own)


def _taken(inner: Graph) -> list[str]:
    """Return the channels that a subgraph takes from its input."""
    builder: Any = getattr(inner, "builder", None)
    schema = getattr(builder, "schemas", {}).get(getattr(builder, "input_schema", None))
    return [name for name in state_channels(inner) if schema is None or name in schema]


def _given(inner: Graph) -> list[str]:
    """Return the channels that a subgraph returns."""
    given = getattr(inner, "output_channels", None)
    return [given] if isinstance(given, str) else list(given or state_channels(inner))


def _closed(app: Graph, inner: Any) -> str:
    """Return why a node can't be stepped into; "" if it can, or if it is no subgraph."""
    if is_entrypoint(app):
        return IN_ONE_GO
    return getattr(inner, "why_no_steps", "") or why_closed(inner) if inner is not None else ""


def is_entrypoint(app: Graph) -> bool:
    """Whether a graph is one function of the functional API."""
    return bool(app.stream_channels_asis == _THEIR_END)


def entry_of(app: Graph, inputs: Mapping[str, Any]) -> Any:
    """Return a graph's first input from inputs by name; for an entrypoint, its parameter's value.

    Raises:
        UsageError: its parameter takes no such names.
    """
    parameter, kind = _parameter(app)
    if parameter and inputs.keys() == {parameter}:
        return inputs[parameter]
    if parameter and kind is not Any:
        raise UsageError(
            f"the entrypoint {app.name} takes one input, {parameter!r}, not {', '.join(inputs) or 'none'}",
            f"give it as {parameter}=…",
        )
    if hasattr(kind, "model_validate") or dataclasses.is_dataclass(kind):
        try:
            return kind(**inputs)
        except Exception as error:  # their validation
            raise UsageError(f"the input does not fit: {error}", "give its fields") from error
    return dict(inputs)


def _parameter(app: Graph) -> tuple[str, Any]:
    """Return an entrypoint's single-value parameter and its type; "" if it takes values by name."""
    called = next((function for node in app.nodes for function in functions(app, node)), None)
    if is_entrypoint(app) and hasattr(app, "entry_parameter"):  # its code is on a server
        return app.entry_parameter, object if app.entry_parameter else Any
    if not is_entrypoint(app) or called is None:
        return "", None
    name = next(iter(inspect.signature(called).parameters))
    try:
        kind = get_type_hints(called).get(name, Any)
    except Exception:  # a name that only a type checker knows
        kind = Any
    return ("" if _fields(kind) is not None else name), kind


def _fields(kind: Any) -> tuple[str, ...] | None:
    """Return the field names of a dict-like type, None for any other type."""
    plain = getattr(kind, "__origin__", None) or kind
    if not isinstance(plain, type):
        return None
    if issubclass(plain, Mapping) or hasattr(plain, "model_fields") or dataclasses.is_dataclass(plain):
        own = getattr(plain, "__annotations__", {}) if plain is not dict else {}
        return tuple(own)
    return None


def _seconds(timeout: Any) -> float | None:
    timeout = getattr(timeout, "run_timeout", timeout)  # of a `TimeoutPolicy`
    if isinstance(timeout, (int, float)):
        return float(timeout)
    total = getattr(timeout, "total_seconds", None)
    return float(total()) if callable(total) else None


def _edge(edge: Any, *, labelled: bool) -> EdgeInfo:
    label = ""
    if labelled:
        label = _ours(str(edge.data) if edge.data is not None else edge.target)
    return EdgeInfo(_ours(edge.source), _ours(edge.target), label)


def _ours(node: str) -> str:
    return {_THEIR_START: START, _THEIR_END: END}.get(node, node)


def _inputs(app: Graph, channels: Iterable[ChannelInfo]) -> tuple[InputField, ...]:
    """Return a thread's input fields: the channels of the input schema, or what an entrypoint takes."""
    if is_entrypoint(app):
        parameter, kind = _parameter(app)
        named = getattr(app, "entry_fields", None) or _fields(kind) or ()
        fields = (parameter,) if parameter else named
        return tuple(InputField(name, name, name) for name in fields)
    builder: Any = getattr(app, "builder", None)
    schema = getattr(builder, "input_schema", None)
    wanted = getattr(builder, "schemas", {}).get(schema, {})
    names = [channel.name for channel in channels if channel.name in wanted]
    defaults = defaults_of(schema)
    if names and defaults.keys() >= set(names):
        return ()  # its first input is empty
    return tuple(InputField(name, name, name, _example(defaults, name)) for name in names)


def defaults_of(schema: Any) -> dict[str, Any]:
    """Return the defaults of a dataclass or pydantic model by field."""
    if hasattr(schema, "model_fields"):
        fields = {name: field for name, field in schema.model_fields.items() if not field.is_required()}
        return {name: field.get_default(call_default_factory=True) for name, field in fields.items()}
    if not dataclasses.is_dataclass(schema):
        return {}
    missing = dataclasses.MISSING
    found: dict[str, Any] = {}
    for field in dataclasses.fields(schema):
        if field.default is not missing:
            found[field.name] = field.default
        elif field.default_factory is not missing:
            found[field.name] = field.default_factory()
    return found


def _example(defaults: Mapping[str, Any], name: str) -> str:
    """Return the default of an input field as a person would type it, "" if the field is required."""
    if name not in defaults:
        return ""
    value = as_json(defaults[name])
    return value if isinstance(value, str) else canonical(value).decode()
