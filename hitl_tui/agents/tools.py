"""Tools: Python functions that a model may call."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import msgspec

from hitl_tui.agents.tool_schema import (
    as_keywords,
    body,
    check_name,
    parameter_types,
    parameters_schema,
    summary,
)
from hitl_tui.engine.channels.values import normalise, thaw
from hitl_tui.engine.nodes.calling import SyncCaller, call
from hitl_tui.errors import UsageError, in_words

Approve = Literal["always", "never"] | Callable[[Mapping[str, Any]], bool]
"""When a person must agree to a call: always, never, or where a function of its arguments says so."""

_PROBLEMS = 3
_ANY_SIZE = 1 << 40  # what a model gets of it is cut, what runs here is not


class BadArguments(ValueError):
    """Arguments that a tool does not take; the text is for the model that wrote them."""


class Tool:
    """A function that a model may call, by its signature and docstring.

    Args:
        function: sync (runs in a thread of its own) or async (runs on the agents' loop, so it must
            not block); every parameter has a type, which becomes its JSON Schema.  `Annotated[str,
            "text"]` or the docstring's Args section describes a parameter.
        name: what the model calls it; the function's name by default.
        description: what the model is told; the docstring by default.
        external: False declares its results trusted: they taint nothing (SPEC 8).
        approve: when a person must agree to a call; None leaves it to the agent.
        timeout: seconds a call may take.

    Raises:
        UsageError: a parameter without a type, or one of a type without a JSON Schema.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        external: bool = True,
        approve: Approve | None = None,
        timeout: float | None = None,
    ) -> None:
        if not callable(function):
            raise UsageError(f"{function!r} is no tool", "give a function with types and a docstring")
        check_approve(approve)
        self.function = function
        named: str = getattr(function, "__name__", type(function).__name__)
        self.name = check_name(name or named)
        self.description = summary(function) if description is None else description
        self.external = external
        self.approve = approve
        self.timeout = timeout
        self.parameters = parameters_schema(function, self.name)
        self._types = parameter_types(function, self.name)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    @property
    def schema(self) -> dict[str, Any]:
        """The tool as a provider is told."""
        told = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": told}

    def read(self, text: str) -> dict[str, Any]:
        """The arguments that a model wrote.

        Raises:
            BadArguments: not JSON, or they don't fit the schema.
        """
        try:
            arguments = json.loads(text) if text.strip() else {}
            json.dumps(arguments, ensure_ascii=False).encode()  # a lone half of a character is no text
        except (ValueError, RecursionError) as error:
            raise BadArguments(f"the arguments are not JSON: {error}") from None
        return self.check(arguments)

    def check(self, arguments: Any) -> dict[str, Any]:
        """The arguments, if they fit the schema; raises `BadArguments` with what does not."""
        if not isinstance(arguments, dict):
            raise BadArguments(f"the arguments are {in_words(arguments)}, not a JSON object")
        found = []
        for error in self._validator.iter_errors(arguments):
            where = ".".join(map(str, error.instance_path))
            found.append(f"{where}: {error.message}" if where else str(error.message))
            if len(found) == _PROBLEMS:
                break
        if found:
            raise BadArguments("the arguments don't fit: " + "; ".join(map(_short, found)))
        return arguments

    async def run(self, arguments: Mapping[str, Any]) -> str:
        """Call the function and give its result as the text a model reads.

        Raises:
            BadArguments: a value its Python type does not take.
            Exception: what the function raised.
        """
        try:
            keywords = as_keywords(arguments, self._types)
        except ValueError as error:
            raise BadArguments(f"the arguments don't fit: {error}") from None
        threads = SyncCaller()
        try:
            result = await call(self._start, (keywords,), threads if self._blocks else None, self.timeout)
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

        return jsonschema_rs.validator_for(self.parameters)


def as_tools(given: Sequence[Any], agent: str) -> dict[str, Tool]:
    """Tools by name, from tools and plain functions.

    Raises:
        UsageError: two have the same name, or one is no tool.
    """
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise UsageError(f"agent {agent!r}: tools={given!r} is no list", "give a list of functions")
    tools: dict[str, Tool] = {}
    for one in given:
        tool = one if isinstance(one, Tool) else Tool(one)
        if tool.name in tools:
            raise UsageError(f"agent {agent!r} has two tools named {tool.name!r}", "give one another name=")
        tools[tool.name] = tool
    return tools


def check_approve(approve: Any) -> None:
    """Refuse what is no approval rule; raises `UsageError`."""
    if approve is not None and approve not in ("always", "never") and not callable(approve):
        raise UsageError(
            f"approve={approve!r} is no rule", 'give "always", "never" or a function of the arguments'
        )


def as_text(result: Any) -> str:
    """A tool's result as a model reads it: text as it is, anything else as JSON.

    Raises:
        ValueRejected: it is no JSON value.
    """
    if isinstance(result, str):
        return result
    return msgspec.json.encode(thaw(normalise(result, "the result", max_bytes=_ANY_SIZE))).decode()


def cut(text: str, longest: int) -> str:
    """A text of at most `longest` characters that can be stored, and a note where more is left out."""
    text = text.encode(errors="replace").decode()  # names of files may hold bytes that are no characters
    if len(text) <= longest:
        return text
    return f"{text[:longest]}\n[cut here: the first {longest} of {len(text)} characters]"


def _short(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:200]} … {text[-90:]}"
