"""The value domain of channels: JSON, immutable once inside (SPEC 1)."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import inspect
import math
import pathlib
import uuid
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from hitl_tui.errors import ValueRejected

GIVE_JSON = "return text, numbers, lists, dicts, dataclasses or pydantic models"


def as_json_hint(value: Any) -> str:
    """What to write instead of a value that no channel keeps; a coroutine is closed, as nothing awaits it."""
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
        for method in ("tolist", "to_dict"):  # as numpy and pandas have them
            if callable(getattr(value, method, None)):
                return f"make JSON of it, as value.{method}()"
    if inspect.isroutine(value) or isinstance(value, type):
        return "call it: this is the function or class itself"
    if isinstance(value, Iterable):
        return "make a list of it, as list(value)"
    return GIVE_JSON


MAX_DEPTH = 64
# Values stand inside answers, requests, steps and lines of an export.
_STORED_DEPTH = 2 * MAX_DEPTH
_LONGEST_PATH = 40
DEFAULT_MAX_BYTES = 1 << 20
# Python itself refuses to write longer numbers as text, as a guard against slow conversions.
MAX_INT_BITS = 14_280


def check_nesting(data: bytes | str | msgspec.Raw, value: Any = msgspec.UNSET) -> None:
    """Refuse stored JSON that is nested deeper than any that is written: what walks through it would fail.

    Args:
        value: what `data` holds, where it was read already.

    Raises:
        ValueError: it is too deep; msgspec's errors where it is no JSON.
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


def freeze(value: Any) -> Any:
    """A JSON value that is known to be in the domain, as channels keep it."""
    if type(value) in _DONE:
        return value
    if isinstance(value, list):
        return FrozenList(value if _DONE.issuperset(map(type, value)) else map(freeze, value))
    if isinstance(value, dict):
        return FrozenDict({key: freeze(item) for key, item in value.items()})
    return value


def _refuse(self: Any, *_args: Any, **_kwargs: Any) -> NoReturn:
    raise TypeError(
        "state is read-only inside a node: make a copy (list(value), dict(value)) "
        "and return it as an update instead"
    )


class FrozenList(list[Any]):
    """A list that refuses changes."""

    __slots__ = ()
    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return thaw(self)  # type: ignore[no-any-return]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return (list, (list(self),))


class FrozenDict(dict[str, Any]):
    """A dict that refuses changes."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    pop = popitem = clear = update = setdefault = _refuse

    if not TYPE_CHECKING:  # or a type checker would take any attribute

        def __getattr__(self, name: str) -> NoReturn:
            how = f"; a model is kept as a dict: write value[{name!r}]" if name in self else ""
            raise AttributeError(f"a dict has no attribute {name!r}{how}", name=name, obj=self)

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return thaw(self)  # type: ignore[no-any-return]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return (dict, (dict(self),))


def thaw(value: Any) -> Any:
    """A deep copy in plain lists and dicts, free to change."""
    if isinstance(value, list):
        return [thaw(item) for item in value]
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    return value


_DONE = frozenset({str, int, float, bool, type(None), FrozenList, FrozenDict})


class _NotJson(Exception):
    """What is wrong with a value, where in it, and how to mend it."""

    def __init__(self, path: str, what: str, hint: str) -> None:
        super().__init__(what)
        self.path = path
        self.what = what
        self.hint = hint


def normalise(
    value: Any, channel: str, *, max_bytes: int = DEFAULT_MAX_BYTES, private: bool = False, within: int = 0
) -> Any:
    """A value as a channel keeps it: JSON, frozen, checked.

    Args:
        value: anything of the table above.
        channel: named in errors.
        max_bytes: upper bound of its canonical size in bytes.
        private: whether errors must not quote anything of it, the keys of a path included.
        within: how many levels of the channel's value are around it, as the list that it is appended to.

    Raises:
        ValueRejected: names channel, path and type, or the size.
    """
    try:
        frozen, size = _freeze(value, "", within)
    except _NotJson as found:
        if private:
            raise ValueRejected(f"channel {channel!r}: {found.what}", GIVE_JSON) from None
        raise ValueRejected(
            f"channel {channel!r}{_at(found.path)}: {found.what}", found.hint
        ) from found.__cause__
    # The estimate never exceeds the canonical size by more than escapes need, so most are settled here.
    if size > max_bytes // 6:
        from hitl_tui.engine.state.canonical import canonical

        exact = len(canonical(frozen))
        if exact > max_bytes:
            raise ValueRejected(
                f"channel {channel!r}: an update of {exact:,} bytes is over the limit of {max_bytes:,}",
                "store it elsewhere, as in a file, and keep a reference to it in the channel; or allow more: "
                "compile(max_update_bytes=…)",
            )
    return frozen


def _freeze(value: Any, path: str, depth: int) -> tuple[Any, int]:
    kind = type(value)
    if kind is str:
        if not value.isascii():
            _check_text(value, path)
        return value, len(value)
    if kind is bool or value is None:
        return value, 5
    if kind is int:
        return value, 1 + _check_int(value, path) // 3
    if kind is float:
        return _check_float(value, path), 24
    if isinstance(value, (list, tuple)):
        _check_depth(depth, path)
        return _freeze_list(value, path, depth)
    if isinstance(value, dict):
        _check_depth(depth, path)
        return _freeze_dict(value, path, depth)
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return _freeze(_dumped(value, path, depth), path, depth)
    return _freeze(_convert(value, path), path, depth)


def _check_depth(depth: int, path: str) -> None:
    if depth >= MAX_DEPTH:
        begins = path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}…"
        raise _NotJson(begins, f"nested deeper than {MAX_DEPTH} levels", "flatten the value")


def _freeze_list(value: Any, path: str, depth: int) -> tuple[FrozenList, int]:
    total = 2
    items = []
    for index, item in enumerate(value):
        frozen, size = _freeze(item, f"{path}[{index}]", depth + 1)
        items.append(frozen)
        total += size + 1
    return FrozenList(items), total


def _freeze_dict(value: dict[Any, Any], path: str, depth: int) -> tuple[FrozenDict, int]:
    total = 2
    items = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise _NotJson(
                path,
                f"a key of type {type(key).__name__}, JSON keys are text",
                f"use {str(key.value if isinstance(key, enum.Enum) else key)!r}",
            )
        text = str.__str__(key)
        if not text.isascii():
            _check_text(text, path)
        frozen, size = _freeze(item, f"{path}.{text}", depth + 1)
        items[text] = frozen
        total += len(text) + size + 4
    return FrozenDict(items), total


def _check_int(value: int, path: str) -> int:
    bits = value.bit_length()
    if bits > MAX_INT_BITS:
        raise _NotJson(
            path,
            "a whole number of more than 4,300 digits",
            "keep such a number as text",
        )
    return bits


def _check_float(value: float, path: str) -> float:
    if not math.isfinite(value):
        raise _NotJson(
            path,
            f"{value} is not a JSON number",
            "use null where there is no value",
        )
    return value


def keepable(text: str) -> str:
    """`text` with lone surrogates written out, as `\\ud800`: UTF-8 has none, so no store could keep them."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def is_name(name: object) -> bool:
    """Whether it is text that a store can keep and a person can read."""
    return isinstance(name, str) and bool(name.strip()) and keepable(name) == name


def _check_text(text: str, path: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _NotJson(
            path,
            f"text with a lone surrogate at {error.start}",
            'decode bytes with errors="replace"',
        ) from None


def _dumped(value: Any, path: str, depth: int) -> Any:
    """A pydantic model as JSON; where it can't be written, the error names what in it is no JSON."""
    try:
        return value.model_dump(mode="json")
    except Exception as error:
        cause = error
    try:
        fields = value.model_dump()
    except Exception:
        fields = {}
    _freeze(fields, path, depth)
    raise _NotJson(
        path,
        f"a value of type {type(value).__name__} can't be written as JSON",
        "see what its fields hold and how they are serialised",
    ) from cause


def _convert(value: Any, path: str) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):  # as numpy's float64
        return float.__float__(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (uuid.UUID, pathlib.PurePath, decimal.Decimal)):
        return str(value)
    raise _NotJson(path, f"a value of type {type(value).__name__} is not JSON", as_json_hint(value))


def _at(path: str) -> str:
    return f" at {path.lstrip('.')}" if path else ""
