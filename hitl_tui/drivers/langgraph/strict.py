"""Reads values of untrusted checkpoints as data; never imports what a row names.

LangGraph's own serializer builds objects of any class that a row names (CVE-2026-28277), and of a list of
classes in its strict mode.  This one builds only messages, `Send`, `Interrupt` and `Overwrite`, which are
needed to show a thread, from one table; for everything else it returns the plain fields.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import ormsgpack

_FIELDS: Final = (2, 4, 5)
"""The extensions that hold an object by its fields: keywords, and pydantic models of both versions."""
_KNOWN: Final = (0, 1, 2, 3, 4, 5)
_DELTA: Final = 7
_MESSAGES: Final = "langchain_core.messages."


class StrictSerializer:
    """A serializer that reads checkpoints and writes none."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value of a row; if it can't be read without running code, a text that says so."""
        kind, content = data
        if kind == "null":
            return None
        if kind in ("bytes", "bytearray"):
            return bytes(content)
        if kind == "json":
            return json.loads(content)
        if kind == "msgpack":
            return _unpacked(content)
        return {"type": kind, "repr": f"{len(content):,} bytes that are not read"}

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Refuse: this serializer only reads.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("checkpoints that are only looked at are never written")


def _unpacked(content: bytes) -> Any:
    return ormsgpack.unpackb(content, ext_hook=_extension, option=ormsgpack.OPT_NON_STR_KEYS)


def _extension(code: int, content: bytes) -> Any:
    """Return the value of a LangGraph msgpack extension as data."""
    if code == _DELTA:
        return _unpacked(content)
    if code not in _KNOWN:
        return {"type": f"extension {code}", "repr": f"{len(content):,} bytes that are not read"}
    held = _unpacked(content)
    if not isinstance(held, (list, tuple)) or len(held) < 3:
        return held
    module, name, fields = held[:3]
    build = _built().get((str(module), str(name)))
    if build is None:
        return fields
    try:
        return build(*fields) if code == 1 else build(**fields) if code in _FIELDS else build(fields)
    except Exception:  # fields of another version, or invented ones
        return fields


@cache
def _built() -> Mapping[tuple[str, str], Callable[..., Any]]:
    """Return the classes that may be built, by their names in rows."""
    from langchain_core import messages
    from langgraph import types
    from langgraph.types import Interrupt, Send

    def interrupt(value: Any = None, id: Any = "", **rest: Any) -> Any:  # noqa: A002
        schema = rest.get("response_schema")
        question = Interrupt(value=value, id=str(id))
        if schema is not None and hasattr(question, "response_schema"):
            question = Interrupt(value=value, id=str(id), response_schema=schema)
        return question

    table: dict[tuple[str, str], Callable[..., Any]] = {
        ("langgraph.types", "Send"): lambda node, arg, *_rest: Send(str(node), arg),
        ("langgraph.types", "Interrupt"): interrupt,
        ("builtins", "set"): list,
        ("builtins", "frozenset"): list,
        ("collections", "deque"): list,
        ("uuid", "UUID"): _uuid,
    }
    if (overwrite := getattr(types, "Overwrite", None)) is not None:  # older versions have none
        table[("langgraph.types", "Overwrite")] = overwrite
    for module, name in _MESSAGE_CLASSES:
        kind = getattr(messages, name)
        table[(f"{_MESSAGES}{module}", name)] = kind
    return table


_MESSAGE_CLASSES: Final = (
    ("human", "HumanMessage"),
    ("ai", "AIMessage"),
    ("ai", "AIMessageChunk"),
    ("system", "SystemMessage"),
    ("chat", "ChatMessage"),
    ("tool", "ToolMessage"),
    ("function", "FunctionMessage"),
    ("modifier", "RemoveMessage"),
)


def _uuid(digits: Any) -> str:
    text = str(digits)
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
