"""The value domain of channels: JSON, immutable once inside.

Specified in docs/spec/values.md.
"""

from __future__ import annotations

import builtins
import datetime
import decimal
import enum
import inspect
import math
import pathlib
import sys
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import msgspec

from hitl_tui.engine.state.canonical import canonical
from hitl_tui.engine.state.frozen import (
    HEIGHT,
    JOINED,
    PART,
    PLAIN,
    SIZE_SHIFT,
    FrozenDict,
    FrozenList,
    known,
)
from hitl_tui.errors import ValueRejected

GIVE_JSON = "return text, numbers, lists, dicts, dataclasses or pydantic models"


def as_json_hint(value: Any) -> str:
    """Suggest a JSON value for one that no channel can hold; closes a coroutine, as nothing awaits it."""
    if inspect.iscoroutine(value):
        value.close()
        return f"await it: write async def, and await {value.__name__}(…)"
    if inspect.isawaitable(value) or isinstance(value, AsyncIterator):
        return "await it: write async def, and keep what comes of it"
    if isinstance(value, (bytes, bytearray)):
        return "make text of it, as value.decode()"
    if isinstance(value, (set, frozenset)):
        return "make a list of it, as sorted(value)"
    if not isinstance(value, type):
        for method in ("tolist", "to_dict"):  # numpy and pandas have them
            if callable(getattr(value, method, None)):
                return f"make JSON of it, as value.{method}()"
    if inspect.isroutine(value) or isinstance(value, type):
        return "call it: this is the function or class itself"
    if isinstance(value, Mapping):
        return "make a dict of it, as dict(value)"
    if isinstance(value, Iterable):
        return "make a list of it, as list(value)"
    if isinstance(value, datetime.timedelta):
        return "make a number of it, as value.total_seconds()"
    return GIVE_JSON


MAX_DEPTH = 64
# Values are nested further inside answers, requests, steps and lines of an export.
_STORED_DEPTH = 2 * MAX_DEPTH
_LONGEST_PATH = 40
DEFAULT_MAX_BYTES = 1 << 20
# Python refuses to convert longer numbers to text, as a guard against slow conversions.
MAX_INT_BITS = 14_280


def check_nesting(data: bytes | str | msgspec.Raw, value: Any = msgspec.UNSET) -> None:
    """Refuse stored JSON that is nested deeper than any value we write, as recursion over it would fail.

    Args:
        value: the parsed `data`, if it was parsed already.

    Raises:
        ValueError: it is too deep, or (msgspec's errors) it is no JSON.
    """
    text = data.encode() if isinstance(data, str) else bytes(data)
    if text.count(b"[") + text.count(b"{") <= _STORED_DEPTH:
        return
    level = [msgspec.json.decode(text) if value is msgspec.UNSET else value]
    for _ in range(_STORED_DEPTH):
        level = [part for whole in level for part in _parts(whole)]
        if not level:
            return
    raise ValueError(f"nested deeper than {_STORED_DEPTH} levels")


def _parts(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


class _NotJson(Exception):
    """Error in a value: what is wrong, where, and how to fix it."""

    def __init__(self, what: str, hint: str, longest_path: int = sys.maxsize) -> None:
        super().__init__(what)
        self.path = ""
        self.what = what
        self.hint = hint
        self._longest_path = longest_path

    @property
    def place(self) -> str:
        """The path in words, to follow a channel's name."""
        path, longest = self.path, self._longest_path
        if len(path) > longest:
            path = f"{path[:longest]}…"
        return f" at {path.lstrip('.')}" if path else ""


def normalise(
    value: Any,
    channel: str = "",
    *,
    what: str = "",
    max_bytes: int = DEFAULT_MAX_BYTES,
    private: bool = False,
    within: int = 0,
    old: Any = None,
) -> Any:
    """Return a value as a channel stores it: checked and frozen JSON.

    Args:
        value: any type that docs/spec/values.md lists.
        channel: named in errors.
        what: in errors, what the value is, if it is not a channel's.
        max_bytes: upper bound of its canonical size in bytes.
        private: whether errors must not quote anything of it, including the keys of a path.
        within: the number of levels around it, such as 1 for an element that is appended to a list.
        old: the channel's value: equal parts at the same place are reused.

    Raises:
        ValueRejected: names channel, path and type, or the size.
    """
    try:
        frozen, facts = _freeze(value, within, old)
    except _NotJson as error:
        whose = what or f"channel {channel!r}"
        if private:
            raise ValueRejected(f"{whose}: {error.what}", GIVE_JSON) from None
        raise ValueRejected(f"{whose}{error.place}: {error.what}", error.hint) from error.__cause__
    # The estimate errs only by escapes, so it settles most cases.
    if facts >> SIZE_SHIFT > max_bytes // 6:
        exact = len(canonical(frozen))
        if exact > max_bytes:
            raise ValueRejected(
                f"{what or f'channel {channel!r}'}: an update of {exact:,} bytes is over the limit of "
                f"{max_bytes:,}",
                "store it elsewhere, as in a file, and keep a reference to it in the channel; or allow more: "
                "compile(max_update_bytes=…)",
            )
    return frozen


def _freeze(value: Any, depth: int, old: Any) -> tuple[Any, int]:
    """Return a frozen value (`old` itself if it is equal), and its facts as the bits of `known`."""
    kind = type(value)
    if kind is str:
        if not value.isascii():
            _check_text(value)
        facts = len(value) << SIZE_SHIFT | PLAIN
    elif kind is bool or value is None:
        facts = 5 << SIZE_SHIFT | PLAIN
    elif kind is int:
        facts = 1 + _check_int(value) // 3 << SIZE_SHIFT | PLAIN
    elif kind is float:
        facts = 24 << SIZE_SHIFT
        _check_float(value)
    elif isinstance(value, (list, tuple, dict)):
        facts = known(value)
        if facts and depth + (facts & HEIGHT) <= MAX_DEPTH:
            return value, facts
        if depth >= MAX_DEPTH:
            raise _NotJson(f"nested deeper than {MAX_DEPTH} levels", "flatten the value", _LONGEST_PATH)
        if isinstance(value, dict):
            return _freeze_dict(value, depth + 1, old if type(old) is FrozenDict else _NOTHING)
        return _freeze_list(value, depth + 1, old if type(old) is FrozenList else ())
    elif hasattr(value, "model_dump") and not isinstance(value, type):
        return _freeze(_dumped(value, depth), depth, old)
    else:
        return _freeze(_convert(value), depth, old)
    return old if type(old) is kind and old == value else value, facts


_NOTHING: Mapping[Any, Any] = {}


def _freeze_list(value: Sequence[Any], depth: int, old: Sequence[Any]) -> tuple[FrozenList, int]:
    size, plain, joined, height = 2, PLAIN, 0, 0
    items = []
    same = len(value) == len(old)
    priors = chain(old, repeat(None))
    for index, (item, prior) in enumerate(zip(value, priors, strict=False)):
        try:
            part, facts = _freeze(item, depth, prior)
        except _NotJson as error:
            error.path = f"[{index}]{error.path}"
            raise
        items.append(part)
        same = same and part is prior
        size += (facts >> SIZE_SHIFT) + 1
        plain &= facts
        if below := facts & HEIGHT:
            height = max(height, below)
            joined |= JOINED * (facts >= PART << SIZE_SHIFT)
    facts = size << SIZE_SHIFT | joined | plain | height + 1
    return _noted(old if same and type(old) is FrozenList else FrozenList(items), facts)


def _freeze_dict(value: dict[Any, Any], depth: int, old: Mapping[Any, Any]) -> tuple[FrozenDict, int]:
    size, plain, joined, height = 2, PLAIN, 0, 0
    items = {}
    same = len(value) == len(old)
    for key, item in value.items():
        text = key if type(key) is str else _key(key)
        if not text.isascii():
            _check_text(text)
            plain = 0
        prior = old.get(text)
        # Large values are mostly text, or parts that a step has left alone: a call for each would take long.
        if type(item) is str and item.isascii():
            if item != prior:
                same = False
                prior = item
            items[text] = prior
            size += len(text) + len(item) + 4
            continue
        part, facts = item, known(item) if item is prior else 0
        if not facts or depth + (facts & HEIGHT) > MAX_DEPTH:
            try:
                part, facts = _freeze(item, depth, prior)
            except _NotJson as error:
                error.path = f".{text}{error.path}"
                raise
        items[text] = part
        same = same and part is prior
        size += len(text) + (facts >> SIZE_SHIFT) + 4
        plain &= facts
        if below := facts & HEIGHT:
            height = max(height, below)
            joined |= JOINED * (facts >= PART << SIZE_SHIFT)
    facts = size << SIZE_SHIFT | joined | plain | height + 1
    # Equality ignores the order of keys, but a node sees it.
    same = same and type(old) is FrozenDict and list(items) == list(old)
    return _noted(old if same else FrozenDict(items), facts)


def _noted(frozen: Any, facts: int) -> tuple[Any, int]:
    frozen.known = facts
    return frozen, facts


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise _NotJson(
            f"a key of type {type(key).__name__}, JSON keys are text",
            f"use {str(key.value if isinstance(key, enum.Enum) else key)!r}",
        )
    return str.__str__(key)


def _check_int(value: int) -> int:
    bits = value.bit_length()
    if bits > MAX_INT_BITS:
        raise _NotJson(
            "a whole number of more than 4,300 digits",
            "keep such a number as text",
        )
    return bits


def _check_float(value: float) -> None:
    if not math.isfinite(value):
        raise _NotJson(f"{value} is not a JSON number", "use null where there is no value")


def keepable(text: str) -> str:
    """Escape lone surrogates, as `\\ud800`: UTF-8 has none, so no store could keep them."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def is_name(name: object) -> bool:
    """Whether a value is text that a store can keep and a person can read."""
    return isinstance(name, str) and bool(name.strip()) and keepable(name) == name


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _NotJson(
            f"text with a lone surrogate at {error.start}",
            'decode bytes with errors="replace"',
        ) from None


def _dumped(value: Any, depth: int) -> Any:
    """Dump a pydantic model as JSON; the error names the part that is no JSON."""
    try:
        return value.model_dump(mode="json")
    except Exception as error:
        cause = error
    try:
        fields = value.model_dump()
    except Exception:
        fields = {}
    _freeze(fields, depth, None)
    raise _NotJson(
        f"a value of type {type(value).__name__} can't be written as JSON",
        "see what its fields hold and how they are serialised",
    ) from cause


def _convert(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):  # such as numpy's float64
        return float.__float__(value)
    if hasattr(type(value), "__dataclass_fields__"):
        import dataclasses  # already imported if there is a value of it

        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (uuid.UUID, pathlib.PurePath, decimal.Decimal)):
        return str(value)
    raise _NotJson(f"a value of type {_type_name(value)} is not JSON", as_json_hint(value))


def _type_name(value: Any) -> str:
    """Return the name of a value's type, with its module if a built-in type has the same name."""
    kind = type(value)
    known = getattr(builtins, kind.__name__, kind)
    return kind.__name__ if known is kind else f"{kind.__module__}.{kind.__name__}"
