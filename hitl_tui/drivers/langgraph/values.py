"""Converts values of LangGraph's channels to JSON, and back for edits.

JSON stays as it is.  Messages, pydantic models, dataclasses and named tuples become readable dicts, sets and
tuples become lists; anything else becomes a read-only stand-in `{"type": ..., "repr": ...}`.  No value raises
an error: an odd one must not hide a thread.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import math
import pathlib
import re
import uuid
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from hitl_tui.engine.state.canonical import canonical
from hitl_tui.engine.state.frozen import FrozenDict, FrozenList, freeze
from hitl_tui.engine.state.values import MAX_DEPTH, MAX_INT_BITS
from hitl_tui.errors import ValueRejected
from hitl_tui.loading.modules import plain_name

MOST: Final = 1 << 20
"""Bytes of JSON from which on a stand-in takes the place of an update."""
_REPR = 2_000
_DEEPEST = MAX_DEPTH - 8
"""Some levels less than a channel may have: values stand inside lists and updates."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_STAND_IN = frozenset({"type", "repr"})
_PLAIN = frozenset({str, int, float, bool, type(None)})
_NO_MESSAGES = _PLAIN | {list, dict, tuple}


def convert(value: Any, old: Any, converted: Any) -> Any:
    """Convert a value to frozen JSON, which shares unchanged parts with an older value.

    Args:
        old: the older value, unchanged since it was converted.
        converted: the JSON of the older value.
    """
    if (
        isinstance(value, list)
        and isinstance(old, list)
        and isinstance(converted, list)
        and len(old) == len(converted)
    ):
        shared = _alike(old, value)
        if shared == len(value) == len(old):
            return converted
        return FrozenList([*converted[:shared], *map(as_json, value[shared:])])
    return converted if _same(old, value) else as_json(value)


def _alike(old: list[Any], new: list[Any]) -> int:
    """Return how many items at the start of two lists are the same."""
    for place, (before, after) in enumerate(zip(old, new, strict=False)):
        if not _same(before, after):
            return place
    return min(len(old), len(new))


def _same(before: Any, after: Any, depth: int = _DEEPEST) -> bool:
    """Whether two values, which no node can have changed, are certainly the same."""
    kind = type(before)
    if kind is not type(after) or depth <= 0:
        return False
    if kind in _PLAIN:
        return bool(before == after)
    if kind is list or kind is tuple:
        return len(before) == len(after) and all(
            _same(one, other, depth - 1) for one, other in zip(before, after, strict=True)
        )
    if kind is dict:
        return _same_dict(before, after, depth)
    fields = getattr(before, "__dict__", None)
    if not fields or not (hasattr(kind, "model_fields") or dataclasses.is_dataclass(kind)):
        return False
    return _same_dict(fields, after.__dict__, depth)


def _same_dict(before: dict[Any, Any], after: dict[Any, Any], depth: int) -> bool:
    return list(before) == list(after) and all(_same(before[key], after[key], depth - 1) for key in before)


def copied(value: Any, depth: int = _DEEPEST) -> Any:
    """Copy what a node has written; no node can change a copy that is made of plain values."""
    kind = type(value)
    if kind in _PLAIN or depth <= 0:
        return value
    if kind is list:
        return [copied(item, depth - 1) for item in value]
    if kind is dict:
        return {key: copied(item, depth - 1) for key, item in value.items()}
    if is_message(value):
        return value.model_copy()
    return value


def as_json(value: Any) -> Any:
    """Convert a LangGraph value to frozen JSON; what is not JSON, or too deep, becomes a stand-in."""
    return freeze(_json(value, _DEEPEST))


def bounded(value: Any) -> Any:
    """Return JSON from `as_json`, or a stand-in if it is too long for an update."""
    if type(value) in (FrozenList, FrozenDict, str) and (size := len(canonical(value))) > MOST:
        kind = "list" if isinstance(value, list) else "dict" if isinstance(value, dict) else "str"
        return freeze({"type": kind, "repr": f"{size:,} bytes, too long to be kept here"})
    return value


def stand_in(value: Any) -> dict[str, str]:
    """Return the stand-in for a value that is not JSON."""
    kind = type(value)
    try:
        text = repr(value)
    except Exception as error:
        text = f"its repr() raised {type(error).__name__}"
    module = plain_name(kind.__module__)
    text = _ADDRESS.sub("", text).replace(kind.__module__, module)
    if len(text) > _REPR:
        text = f"{text[:_REPR]}… ({len(text):,} characters)"
    return {"type": f"{module}.{kind.__qualname__}", "repr": _text(text)}


def is_stand_in(value: Any) -> bool:
    """Whether JSON is a stand-in, which can't be edited."""
    return isinstance(value, dict) and value.keys() == _STAND_IN


def _text(text: str) -> str:
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def _json(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return _text(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if value.bit_length() <= MAX_INT_BITS else stand_in(value)
    if kind is float:
        return value if math.isfinite(value) else stand_in(value)
    if depth <= 0:
        return stand_in(value)
    if kind is list or kind is tuple:
        return [_json(item, depth - 1) for item in value]
    if kind is dict:
        return _dict(value, depth)
    return _object(value, depth)


def _dict(value: Mapping[Any, Any], depth: int) -> Any:
    if all(isinstance(key, str) for key in value):
        return {_text(str(key)): _json(item, depth - 1) for key, item in value.items()}
    keys = [str(key) for key in value]
    if len(set(keys)) < len(keys):
        return stand_in(value)
    return {_text(key): _json(item, depth - 1) for key, item in zip(keys, value.values(), strict=True)}


def _object(value: Any, depth: int) -> Any:
    kind = type(value)
    try:
        if is_message(value):
            return _message(value, depth)
        if isinstance(value, enum.Enum):
            return _json(value.value, depth - 1)
        if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
            return value.isoformat()
        if isinstance(value, (uuid.UUID, decimal.Decimal, pathlib.PurePath)):
            return _text(str(value))
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return {name: _json(getattr(value, name), depth - 1) for name in kind._fields}
        if isinstance(value, (set, frozenset)):
            items = [_json(item, depth - 1) for item in value]
            return sorted(items, key=canonical)
        if hasattr(kind, "model_fields") and hasattr(kind, "model_validate"):
            return _dict({name: getattr(value, name) for name in kind.model_fields}, depth)
        if dataclasses.is_dataclass(kind):
            fields = dataclasses.fields(kind)
            return _dict({field.name: getattr(value, field.name) for field in fields}, depth)
        if isinstance(value, Mapping):
            return _dict(value, depth)
        plain: type[Any]
        for plain in (str, int, float, list):
            if isinstance(value, plain):
                return _json(plain(value), depth)
    except Exception:  # user code: properties and methods
        return stand_in(value)
    return stand_in(value)


def is_message(value: Any) -> bool:
    """Whether a value is a LangChain message; imports nothing."""
    kind: Any = type(value)
    return kind not in _NO_MESSAGES and _is_message_class(kind)


@lru_cache(maxsize=1_000)
def _is_message_class(kind: Any) -> bool:
    return any(
        base.__name__ == "BaseMessage" and base.__module__.startswith("langchain_core")
        for base in kind.__mro__
    )


_NOTHING: Final[tuple[Any, ...]] = (None, "", [], {}, False)


def _message(value: Any, depth: int) -> Any:
    """Return the fields of a message, without empty ones."""
    fields = {"type": value.type, "content": value.content}
    for name in type(value).model_fields:
        held = getattr(value, name)
        if name not in fields and held not in _NOTHING and not (name == "status" and held == "success"):
            fields[name] = held
    return _dict(fields, depth)


def from_json(value: Any, like: Any = None) -> Any:
    """Convert JSON that a person has edited to a LangGraph value.

    Args:
        value: the JSON, thawed or frozen.
        like: the channel's current value, whose types are used for a model, a dataclass or a list's items.

    Raises:
        ValueRejected: the old value was not JSON and can't be rebuilt, or its type refuses the new one.
    """
    if like is not None and value == as_json(like):
        return like
    if is_stand_in(value):
        raise ValueRejected(
            f"a value of type {value['type']} can't be edited: it is not JSON",
            "leave it as it is, or replace it",
        )
    try:
        return _made(value, like)
    except ValueRejected:
        raise
    except Exception as error:  # their validation
        kind = type(like).__name__ if like is not None else "value"
        raise ValueRejected(f"the {kind} can't be made: {error}", "give the fields that it takes") from error


def _made(value: Any, like: Any) -> Any:
    kind = type(like)
    if isinstance(value, dict):
        if is_message(like) or (like is None and _looks_like_a_message(value)):
            return _message_of(value)
        if isinstance(like, tuple) and hasattr(kind, "_fields"):
            return kind(**{name: from_json(item, getattr(like, name, None)) for name, item in value.items()})
        if hasattr(kind, "model_fields") and hasattr(kind, "model_validate"):
            return kind.model_validate(
                {name: from_json(item, getattr(like, name, None)) for name, item in value.items()}
            )
        if dataclasses.is_dataclass(like):
            return kind(**{name: from_json(item, getattr(like, name, None)) for name, item in value.items()})
        held = like if isinstance(like, Mapping) else {}
        keys = {str(key): key for key in held}
        return {
            keys.get(key, key): from_json(item, held.get(keys.get(key, key))) for key, item in value.items()
        }
    if isinstance(value, list):
        # A removed item moves those after it: each item is first searched for unchanged.
        known = [(as_json(item), item) for item in like] if isinstance(like, (list, tuple)) else []
        items = [_item(item, place, known) for place, item in enumerate(value)]
        if isinstance(like, (set, frozenset)) or kind is tuple:
            return kind(items)
        return items
    if isinstance(like, enum.Enum):
        return kind(value)
    if isinstance(value, str):
        if isinstance(like, (datetime.datetime, datetime.date, datetime.time)):
            return kind.fromisoformat(value)
        if isinstance(like, (uuid.UUID, decimal.Decimal, pathlib.PurePath)):
            return kind(value)
    return value


def _item(item: Any, place: int, known: list[tuple[Any, Any]]) -> Any:
    for json, held in known:
        if json == item:
            return held
    like = known[place][1] if place < len(known) else None
    return from_json(item, like)


def _looks_like_a_message(value: Mapping[str, Any]) -> bool:
    return value.get("type") in ("human", "ai", "system", "tool") and "content" in value


def _message_of(value: Mapping[str, Any]) -> Any:
    from langchain_core.messages import messages_from_dict

    return messages_from_dict([{"type": value.get("type", ""), "data": dict(value)}])[0]
