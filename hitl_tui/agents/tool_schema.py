"""From a function's signature and docstring to the JSON Schema that a model is shown."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from hitl_tui.engine.channels.declared import as_schema
from hitl_tui.errors import HitlError, UsageError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_SECTION = re.compile(r"\n[ \t]*(?:Args|Arguments|Parameters|Returns|Raises|Yields|Examples?):")
_ARGUMENT = re.compile(r"^(\s+)\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")
_UNNAMED = (
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
    inspect.Parameter.POSITIONAL_ONLY,
)


def body(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that a callable object runs, which has its types; a function itself."""
    if inspect.isroutine(function):
        return function
    found: Callable[..., Any] = function.__call__  # type: ignore[operator]
    return found


def parameter_types(function: Callable[..., Any], tool: str) -> dict[str, Any]:
    """The type of each parameter, in order.

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
    """The JSON Schema of a function's arguments, closed: other names are refused.

    Raises:
        UsageError: as `parameter_types`, or a type that has no schema.
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
            # Beside a $ref older drafts ignore other keys, so the text goes around it.
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
    """A docstring's text up to its sections."""
    text = inspect.getdoc(function) or ""
    return _SECTION.split(text, maxsplit=1)[0].strip()


def argument_texts(function: Callable[..., Any]) -> dict[str, str]:
    """What the "Args:" section of a docstring says about each parameter."""
    found: dict[str, str] = {}
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
            found[latest] = match[3].strip()
        elif latest and line.strip():
            found[latest] = f"{found[latest]} {line.strip()}".strip()
    return found


def check_name(name: str) -> str:
    """The name as given, if a provider would take it; raises `UsageError`."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a tool", "give name= with letters, digits, _ and -, at most 64"
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
    """An annotated type without the plain texts beside it, which schema makers don't know."""
    if get_origin(kind) is not Annotated:
        return kind
    base, *extras = get_args(kind)
    kept = [extra for extra in extras if not isinstance(extra, str)]
    return Annotated[(base, *kept)] if kept else base


def convert(value: Any, kind: Any) -> Any:
    """A JSON value as the Python value that a parameter's type stands for; raises `ValueError`."""
    try:
        msgspec.json.schema(kind)
    except (TypeError, msgspec.MsgspecError):  # a type made of models, such as list[Plan]
        pydantic = sys.modules["pydantic"]
        return pydantic.TypeAdapter(kind).validate_python(value)  # its error is a ValueError
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def as_keywords(arguments: Mapping[str, Any], types: Mapping[str, Any]) -> dict[str, Any]:
    """Checked JSON arguments as keyword arguments; raises `ValueError` naming the argument."""
    given = {}
    for name, value in arguments.items():
        try:
            given[name] = convert(value, types[name])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return given
