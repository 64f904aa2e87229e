"""Tools: Python functions that a model may call, with their JSON Schemas."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints
from uuid import uuid4

import msgspec

from hitl_tui.declared import declares
from hitl_tui.engine.nodes.activity import Activity
from hitl_tui.engine.nodes.calling import SyncCaller
from hitl_tui.engine.nodes.calling import call as call_function
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.state.schema import as_schema
from hitl_tui.engine.state.values import keepable, normalise
from hitl_tui.engine.state.workflow_state import WorkflowState
from hitl_tui.errors import HitlError, UndeclaredChannel, UsageError, WriteDenied, in_words

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_SECTION = re.compile(r"\n[ \t]*(?:Args|Arguments|Parameters|Returns|Raises|Yields|Examples?):")
_ARGUMENT = re.compile(r"^(\s+)\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")
_UNNAMED = (
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
    inspect.Parameter.POSITIONAL_ONLY,
)


def body(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that a callable object runs, which has its types; or the function itself."""
    if inspect.isroutine(function):
        return function
    call: Callable[..., Any] = function.__call__  # type: ignore[operator]
    return call


def parameter_types(function: Callable[..., Any], tool: str) -> dict[str, Any]:
    """Return the type of each parameter that a model gives, in order.

    Raises:
        UsageError: one has no type, can't be given by name, or its type can't be found.
    """
    try:
        hints = get_type_hints(body(function), include_extras=True)
    except Exception as error:
        raise UsageError(
            f"tool {tool!r}: its types can't be read: {error}", "import the types its signature names"
        ) from None
    types = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if hints.get(name) is ToolConfig:
            continue
        if parameter.kind in _UNNAMED:
            raise UsageError(
                f"tool {tool!r}: parameter {str(parameter)!r} can't be given by name",
                "a model gives arguments by name: write them out one by one",
            )
        if name not in hints:
            raise UsageError(
                f"tool {tool!r}: parameter {name!r} has no type", f"write one, as in {name}: str"
            )
        types[name] = hints[name]
    return types


def parameters_schema(function: Callable[..., Any], tool: str) -> dict[str, Any]:
    """Return the JSON Schema of a function's arguments, which refuses other names.

    Raises:
        UsageError: those of `parameter_types`, or a type without a schema.
    """
    described = argument_texts(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    shared: dict[str, Any] = {}
    signature = inspect.signature(function)
    for name, kind in parameter_types(function, tool).items():
        schema = _schema_of(kind, name, tool)
        shared.update(schema.pop("$defs", {}))
        text = _annotation_text(kind) or described.get(name, "")
        if text and "description" not in schema:
            # Older drafts ignore other keys next to a $ref, so the text is added around it.
            schema = (
                {"allOf": [schema], "description": text}
                if "$ref" in schema
                else {**schema, "description": text}
            )
        default = signature.parameters[name].default
        if default is inspect.Parameter.empty:
            required.append(name)
        elif isinstance(default, str | int | float | bool | None):
            schema = {**schema, "default": default}
        properties[name] = schema
    whole: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        whole["required"] = required
    if shared:
        whole["$defs"] = shared
    return whole


def summary(function: Callable[..., Any]) -> str:
    """Return a docstring's text before its sections."""
    text = inspect.getdoc(function) or ""
    return _SECTION.split(text, maxsplit=1)[0].strip()


def argument_texts(function: Callable[..., Any]) -> dict[str, str]:
    """Return what the "Args:" section of a docstring says about each parameter."""
    descriptions: dict[str, str] = {}
    lines = iter((inspect.getdoc(function) or "").splitlines())
    for line in lines:
        if line.strip() in ("Args:", "Arguments:", "Parameters:"):
            break
    latest, depth = "", 0
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if line.strip() and not indent:
            break
        match = _ARGUMENT.match(line)
        if match and (not latest or indent <= depth):
            latest, depth = match[2], len(match[1])
            descriptions[latest] = match[3].strip()
        elif latest and line.strip():
            descriptions[latest] = f"{descriptions[latest]} {line.strip()}".strip()
    return descriptions


def check_name(name: str) -> str:
    """Return the name if providers accept it; raises `UsageError`."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a tool name", "give name= with letters, digits, _ and -, at most 64"
        )
    return name


def _schema_of(kind: Any, name: str, tool: str) -> dict[str, Any]:
    try:
        return dict(as_schema(_without_texts(kind), name))
    except HitlError as error:
        raise UsageError(
            f"tool {tool!r}: parameter {name!r}: no JSON Schema can be made from {kind!r}",
            "use str, int, float, bool, list, dict, Literal, a dataclass or a pydantic model",
        ) from error


def _annotation_text(kind: Any) -> str:
    if get_origin(kind) is not Annotated:
        return ""
    return next((extra for extra in get_args(kind)[1:] if isinstance(extra, str)), "")


def _without_texts(kind: Any) -> Any:
    """Return an annotated type without plain texts, which schema makers don't know."""
    if get_origin(kind) is not Annotated:
        return kind
    base, *extras = get_args(kind)
    kept = [extra for extra in extras if not isinstance(extra, str)]
    return Annotated[(base, *kept)] if kept else base


def convert(value: Any, kind: Any) -> Any:
    """Convert a JSON value to a parameter's Python type; raises `ValueError`."""
    try:
        msgspec.json.schema(kind)
    except (TypeError, msgspec.MsgspecError):  # a type that contains models, such as list[Plan]
        pydantic = sys.modules["pydantic"]
        return pydantic.TypeAdapter(kind).validate_python(value)  # its error is a ValueError
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def keyword_arguments(arguments: Mapping[str, Any], types: Mapping[str, Any]) -> dict[str, Any]:
    """Return checked JSON arguments as keyword arguments; raises `ValueError` with the argument's name."""
    given = {}
    for name, value in arguments.items():
        try:
            given[name] = convert(value, types[name])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return given


Approve = Literal["always", "never"] | Callable[[Mapping[str, Any]], bool]
"""When a person must approve a call: always, never, or if a function of its arguments says so."""

Effects = Literal["repeatable", "once"]
"""Whether a call that may have been made can be made again after its process has died."""

_PROBLEMS = 3
_ANY_SIZE = 1 << 40  # the model's copy is cut, the one that runs here is not


class ToolConfig:
    """What a tool gets in a parameter of this type, which is hidden from the model.

    Attributes:
        context: the context of the invocation, read-only; {} outside a graph.
        state: what the node may read, as it was when the node started; None outside a graph.
        idempotency_key: identifies this call to other systems: the same in every attempt of the node, also
            after a crash, and different for every other call.
    """

    def __init__(self, tool: str, activity: Activity | None, call: str = "") -> None:
        self.idempotency_key = _idempotency_key(activity, call)
        self.context: Mapping[str, Any] = activity.context if activity else {}
        self.state: WorkflowState | None = activity.state if activity else None
        self.updates: tuple[tuple[str, Any], ...] = ()
        self.over = False
        self._tool = tool
        self._check = activity.check_updates if activity else None

    def update(self, updates: Mapping[str, Any]) -> None:
        """Update channels of the node's `writes`, through their reducers, as part of the node's step.

        Updates of a failed call are dropped, and so are all of a failed attempt.

        Raises:
            UndeclaredChannel, WriteDenied: no such channel, or the node may not write it; this fails the
                node.
            ValueRejected, SchemaMismatch, ReducerError: the model gets the error, unless the tool catches it.
            UsageError: there is no node, or the call has ended.
        """
        if self._check is None or self.over:
            why = "the call has ended" if self.over else "the agent works outside a graph"
            raise UsageError(f"tool {self._tool!r} can't update channels: {why}", "call it below a node")
        if not isinstance(updates, Mapping):
            raise UsageError(f"the updates are {in_words(updates)}", 'give a dict, as {"notes": "…"}')
        try:
            self.updates += tuple(self._check(updates.items()))
        except (UndeclaredChannel, WriteDenied) as error:
            message = error.message.removeprefix("it writes ")
            raise type(error)(f"tool {self._tool!r} writes {message}", error.hint) from None


def _idempotency_key(activity: Activity | None, call: str) -> str:
    if activity is None or activity.cursor is None or not call:
        return uuid4().hex  # nothing can make this call a second time
    return hashlib.sha256(f"{activity.idempotency_key}\0{call}".encode()).hexdigest()[:32]


class BadArguments(ValueError):
    """Arguments that a tool does not accept; the text is for the model that wrote them."""


class PreparedCall(NamedTuple):
    """The arguments with which a call of a tool will run.

    Args:
        arguments: as JSON, with defaults and converted values; a value that is not JSON as its `repr`.
        keywords: the Python values.
    """

    arguments: dict[str, Any]
    keywords: Mapping[str, Any]


def _shown(value: Any) -> Any:
    """Return a Python argument as JSON, for the person who approves it and for the record."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    try:
        return msgspec.json.decode(msgspec.json.encode(value, enc_hook=_dumped))
    except Exception:
        return keepable(repr(value))


def _dumped(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True)


class Tool:
    """A function that a model may call, described by its signature and docstring.

    Args:
        function: sync (runs in its own thread) or async (runs on the agents' loop, so it must not block).
            Every parameter has a type, which becomes its JSON Schema; except one of type `ToolConfig`,
            which has the run's context and updates channels.  `Annotated[str, "text"]` or
            the docstring's Args section describes a parameter.
        name: its name for the model; by default the function's name.
        description: its description for the model; by default the docstring.
        external: False declares its results trusted: they taint nothing.
        approve: when a person must approve a call; None uses the agent's rule.
        timeout: seconds a call may take.
        effects: "once" for a tool that must not run twice, for example a payment: if the process dies during
            a call, a person is asked whether the call was made. Calls of other tools run again then.

    Raises:
        UsageError: a parameter without a type, or one of a type without a JSON Schema; or no such option.
    """

    @declares(UsageError)
    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        external: bool = True,
        approve: Approve | None = None,
        timeout: float | None = None,
        effects: Effects = "repeatable",
    ) -> None:
        if not callable(function):
            raise UsageError(f"{function!r} is not a tool", "give a function with types and a docstring")
        check_approve(approve)
        self.effects = checked_effects(effects)
        if timeout is not None and not timeout > 0:
            raise UsageError(f"a tool's timeout is {timeout!r}", "give seconds above 0, or None for no limit")
        self.function = function
        named: str = getattr(function, "__name__", type(function).__name__)
        self.name = check_name(name or named)
        self.description = summary(function) if description is None else description
        self.external = external
        self.approve = approve
        self.timeout = timeout
        self.parameters = parameters_schema(function, self.name)
        self._types = parameter_types(function, self.name)
        parameters = inspect.signature(function).parameters
        self._config_names = [name for name in parameters if name not in self._types]
        self._defaults = {
            name: parameters[name].default
            for name in self._types
            if parameters[name].default is not inspect.Parameter.empty
        }

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    @property
    def schema(self) -> dict[str, Any]:
        """Return the tool in the format of providers."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    def read(self, text: str) -> dict[str, Any]:
        """Return the arguments that a model wrote.

        Raises:
            BadArguments: not JSON, or they don't fit the schema.
        """
        try:
            arguments = json.loads(text) if text.strip() else {}
            json.dumps(arguments, ensure_ascii=False).encode()  # a lone surrogate can't be encoded
        except (ValueError, RecursionError) as error:
            raise BadArguments(f"the arguments are not JSON: {error}") from None
        return self.check(arguments)

    def check(self, arguments: Any) -> dict[str, Any]:
        """Return the arguments if they fit the schema; raises `BadArguments` with what does not fit."""
        if not isinstance(arguments, dict):
            raise BadArguments(f"the arguments are {in_words(arguments)}, not a JSON object")
        problems = []
        for error in self._validator.iter_errors(arguments):
            where = ".".join(map(str, error.instance_path))
            problems.append(f"{where}: {error.message}" if where else str(error.message))
            if len(problems) == _PROBLEMS:
                break
        if problems:
            raise BadArguments("the arguments don't fit: " + "; ".join(map(_short, problems)))
        return arguments

    async def run(self, arguments: Mapping[str, Any], config: ToolConfig | None = None) -> str:
        """Call the function and return its result as text for the model.

        Args:
            config: for the parameter of that type, if the function has one.

        Raises:
            BadArguments: a value that its Python type does not accept.
            Exception: what the function raised.
        """
        return await self.call(self.prepare(arguments), config)

    def prepare(self, arguments: Mapping[str, Any]) -> PreparedCall:
        """Return the call for checked arguments, with defaults filled in and values converted.

        Raises:
            BadArguments: a value that its Python type does not accept.
        """
        try:
            keywords = keyword_arguments(arguments, self._types)
        except ValueError as error:
            raise BadArguments(f"the arguments don't fit: {error}") from None
        given = {**self._defaults, **keywords}
        return PreparedCall({name: _shown(given[name]) for name in self._types if name in given}, keywords)

    async def call(self, prepared: PreparedCall, config: ToolConfig | None = None) -> str:
        """Make a prepared call; see `run`."""
        keywords = dict(prepared.keywords)
        keywords |= dict.fromkeys(self._config_names, config or ToolConfig(self.name, None))
        threads = SyncCaller()
        try:
            result = await call_function(
                self._start, (keywords,), threads if self._blocks else None, self.timeout
            )
        finally:
            threads.close()
        return as_text(result)

    def _start(self, keywords: dict[str, Any]) -> Any:
        return self.function(**keywords)

    @cached_property
    def _blocks(self) -> bool:
        return not inspect.iscoroutinefunction(body(self.function))

    @cached_property
    def _validator(self) -> Any:
        import jsonschema_rs

        return jsonschema_rs.validator_for(self.parameters, retriever=_refuse_outside)


def _refuse_outside(address: str) -> Any:
    """Refuse references in a schema, which may come from a server, to the network or to files."""
    raise ValueError(f"a schema must hold all it refers to, and {address} is outside")


def as_tools(given: Sequence[Any], agent: str) -> dict[str, Tool]:
    """Return tools by name, from tools and plain functions.

    Raises:
        UsageError: two have the same name, or one is not a tool.
    """
    tools: dict[str, Tool] = {}
    for candidate in given:
        tool = candidate if isinstance(candidate, Tool) else Tool(candidate)
        if tool.name in tools:
            raise UsageError(f"agent {agent!r} has two tools named {tool.name!r}", "give one another name=")
        tools[tool.name] = tool
    return tools


def check_tools(given: Any, agent: str) -> None:
    """Refuse anything but a list of tools; raises `UsageError`."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise UsageError(f"agent {agent!r}: tools={given!r} is not a list", "give a list of functions")


def check_approve(approve: Any) -> None:
    """Refuse an invalid approval rule; raises `UsageError`."""
    if approve is not None and approve not in ("always", "never") and not callable(approve):
        raise UsageError(
            f"approve={approve!r} is not a rule", 'give "always", "never" or a function of the arguments'
        )


def checked_effects(effects: Any) -> Effects:
    """Return the option; raises `UsageError` if it is invalid."""
    if effects not in ("repeatable", "once"):
        raise UsageError(f"effects={effects!r} is not an option", 'give "once", or leave it out')
    return "once" if effects == "once" else "repeatable"


def as_text(result: Any) -> str:
    """Return a tool's result as text for the model: text as it is, anything else as JSON.

    Raises:
        ValueRejected: it is not a JSON value.
    """
    if isinstance(result, str):
        return result
    return msgspec.json.encode(thaw(normalise(result, what="the result", max_bytes=_ANY_SIZE))).decode()


def cut(text: str, longest: int) -> str:
    """Return a text of at most `longest` characters that can be stored, with a note if it was cut."""
    text = text.encode(errors="replace").decode()  # file names may contain bytes that are not characters
    if len(text) <= longest:
        return text
    return f"{text[:longest]}\n[cut here: the first {longest} of {len(text)} characters]"


def _short(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:200]} … {text[-90:]}"
