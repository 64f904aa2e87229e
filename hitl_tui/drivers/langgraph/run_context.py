"""The context of a LangGraph run and its values of `configurable`.

A thread stores both as its context, the latter under `configurable`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any, Final, get_type_hints

from hitl_tui.drivers.langgraph.graph import defaults_of, type_word
from hitl_tui.drivers.langgraph.values import as_json
from hitl_tui.drivers.protocol import ContextField
from hitl_tui.engine.state.canonical import canonical
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.thread.run_inputs import checked_context
from hitl_tui.errors import UsageError
from hitl_tui.suggest import did_you_mean

CONFIGURABLE: Final = "configurable"
_JSON_TYPES: Final[Mapping[Any, str]] = {
    "string": "text", "integer": "number", "number": "number", "boolean": "boolean",
    "array": "list", "object": "dict",
}  # fmt: skip
_LANGGRAPHS: Final = ("thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map")


def checked(app: Any, given: Any) -> Mapping[str, Any]:
    """Check a context and return it as a thread stores it.

    Args:
        app: the compiled graph.

    Raises:
        UsageError: the graph's context schema refuses a field, or a required one is missing; or a value of
            `configurable` is reserved by LangGraph.
        ValueRejected: it contains something that is not JSON.
    """
    context = checked_context(given)
    configurable = context.get(CONFIGURABLE, {})
    if not isinstance(configurable, Mapping):
        raise UsageError("`configurable` of the context is not an object", "give its values by name")
    if taken := [name for name in configurable if name in _LANGGRAPHS or name.startswith("__")]:
        raise UsageError(f"{taken[0]} of configurable is set by LangGraph", "leave it out")
    schema, fields = getattr(app, "context_schema", None), fields_given(context)
    if schema is None:
        return context
    known = _fields(schema)
    for name in fields:
        if name not in known:
            hint = did_you_mean(name, list(known)) or f"it has: {', '.join(known)}"
            raise UsageError(f"the graph's context has no field {name!r}", hint)
    if fields and (missing := [name for name, needed in known.items() if needed and name not in fields]):
        raise UsageError(f"the graph's context needs {', '.join(missing)}", f"give --context {missing[0]}=…")
    if hasattr(schema, "model_validate"):
        try:
            schema(**fields) if fields else None
        except ValueError as error:
            raise UsageError(
                f"the graph refuses this context: {error}", "give the fields it takes"
            ) from error
    return context


def with_defaults(
    app: Any, defaults: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a context completed with defaults.

    Args:
        app: the compiled graph; defaults that are no fields of its context are ignored.
        defaults: a `context` and values of `configurable`.
    """
    known = {field.name for field in context_fields(app)}
    fields = {name: value for name, value in defaults.get("context", {}).items() if name in known}
    configurable = {**defaults.get(CONFIGURABLE, {}), **given.get(CONFIGURABLE, {})}
    return {**fields, **given, **({CONFIGURABLE: configurable} if configurable else {})}


def context_of(app: Any, kept: Mapping[str, Any]) -> Any:
    """Return the context for a run; if none was given, one made of defaults, as a LangGraph server does.

    Args:
        app: the compiled graph.
        kept: the context that the thread stores.
    """
    schema, fields = getattr(app, "context_schema", None), fields_given(kept)
    if fields or schema is None:
        return fields or None
    return None if any(_fields(schema).values()) else {}


def configurable_of(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of `configurable` that a thread stores."""
    return dict(thaw(kept.get(CONFIGURABLE, {})))


def context_fields(app: Any) -> tuple[ContextField, ...]:
    """Return the fields that a graph's context schema declares; none is required for a server's graph."""
    declared = getattr(app, "context_properties", None)
    if declared is not None:
        return tuple(
            ContextField(name, _JSON_TYPES.get(about.get("type"), "any"), _typed(about.get("default")))
            for name, about in declared.items()
        )
    schema = getattr(app, "context_schema", None)
    defaults, types = defaults_of(schema), _types(schema)
    return tuple(
        ContextField(name, type_word(types.get(name)), _typed(defaults.get(name)), required)
        for name, required in _fields(schema).items()
    )


def _typed(value: Any) -> str:
    """Return a default as a person would type it."""
    value = as_json(value)
    return "" if value is None else value if isinstance(value, str) else canonical(value).decode()


def _types(schema: Any) -> Mapping[str, Any]:
    try:
        return get_type_hints(schema)
    except Exception:  # a name that only a type checker knows, or no schema
        return {}


def fields_given(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a thread's context, without `configurable`."""
    return {name: thaw(value) for name, value in context.items() if name != CONFIGURABLE}


def _fields(schema: Any) -> dict[str, bool]:
    """Return the fields of a context schema by name, each with whether it is required."""
    if hasattr(schema, "model_fields"):
        return {name: field.is_required() for name, field in schema.model_fields.items()}
    if dataclasses.is_dataclass(schema):
        missing = dataclasses.MISSING
        return {
            field.name: field.default is missing and field.default_factory is missing
            for field in dataclasses.fields(schema)
            if field.init
        }
    if hasattr(schema, "__required_keys__"):  # a `TypedDict`, which is never validated
        return dict.fromkeys(schema.__annotations__ | inspect.get_annotations(schema), False)
    return {}
