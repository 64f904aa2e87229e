"""Reducers: combine the previous value and an update into the next value.

Wherever a reducer is accepted, its text (`"append"`, `"last_n(8)"`, `"my_pkg.reducers:highest"`) or a
plain function `(old, new) -> value` works too.  Reducers treat a null previous value as empty.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib
import inspect
import math
import re
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal

import msgspec

from hitl_tui.declared import declares
from hitl_tui.engine.state.canonical import canonical
from hitl_tui.engine.state.frozen import FrozenDict, FrozenList
from hitl_tui.engine.state.values import MAX_INT_BITS, normalise
from hitl_tui.errors import GraphInvalid, ReducerError, in_words

__all__ = [
    "Reducer",
    "append",
    "as_reducer",
    "by_type",
    "extend",
    "last_n",
    "max",
    "merge",
    "merge_deep",
    "min",
    "overwrite",
    "parse_reducer",
    "set_union",
    "sum",
]

IS_FILE = "__hitl_file__"
"""Attribute with the name of a module that was loaded from a single file, wherever the file is."""

Part = Literal["whole", "items", "members", "properties", "none"]
Kind = Literal["replace", "element", "members", "merge", "sum", "extreme", "by_type", "custom"]
Reduce = Callable[[Any, Any], Any]


class Refused(Exception):
    """A reducer's refusal, without the channel's name; `hint` says how to fix it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Reducer(msgspec.Struct, frozen=True, eq=False):
    """A reducer and its properties, so that callers never compare its text.

    Attributes:
        text: as written in files and in the log.
        reduce: `(previous, update) -> next` on frozen values; raises `Refused`.
        kind: what an update does: "replace" the value; become one "element" more of a list; add its
            "members" to a list; "merge" its keys into a dict; be added to a "sum"; be kept if it is the
            "extreme"; be passed to one of several reducers ("by_type") or to a user's function ("custom").
        needs_old: the digest of the next value can't be computed from the digests of the old value and the
            update.
        window: the number of elements that a list keeps, None for all.
        default: the channel's default if none is given.
        part: which part of a channel's schema an update must fit: the whole, `items`,
            the members of a list against `items`, `properties`, or none.
        appends: whether the next value is the previous list with elements added at its end.
        wraps: whether an update becomes an element of a list, one level deeper.
        custom: whether a user's function takes part; its results are stored in the log.
        source_hash: of a custom function's source, "" for built-in reducers.
    """

    text: str
    reduce: Reduce
    kind: Kind
    needs_old: bool = True
    window: int | None = None
    default: Any = None
    part: Part = "whole"
    appends: bool = False
    wraps: bool = False
    custom: bool = False
    source_hash: str = ""

    def __call__(self, previous: Any, update: Any) -> Any:
        """Reduce an update of plain values, to try the reducer: `append()([1], 2)` is `[1, 2]`.

        Raises:
            ReducerError: the reducer refuses them.
            ValueRejected: one of them is not JSON.
        """
        try:
            return self.reduce(
                normalise(previous, what="the previous value"), normalise(update, what="the update")
            )
        except Refused as refusal:
            raise ReducerError(f"{self.text}: {refusal}", refusal.hint) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reducer) and (self.text, self.source_hash) == (other.text, other.source_hash)

    def __hash__(self) -> int:
        return hash((self.text, self.source_hash))

    @property
    def alike(self) -> bool:
        """Whether an update has the same structure as the channel's value, so that they may share parts."""
        return self.kind in ("replace", "merge", "custom")

    @property
    def signature(self) -> str:
        """The reducer's name in the log; for a custom function with the start of its source hash, so that a
        replay can report that it changed."""
        return f"{self.text}#{self.source_hash[:8]}" if self.custom else self.text


def overwrite() -> Reducer:
    """The update replaces the value; null sets null.  `last` is another name for it."""
    return _PLAIN["overwrite"]


def append() -> Reducer:
    """The update becomes one more element, a list included."""
    return _PLAIN["append"]


@declares()
def last_n(n: int) -> Reducer:
    """Append, then keep the newest `n` elements.

    Raises:
        GraphInvalid: n is less than 1.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise GraphInvalid(
            f"last_n({n!r}): the window must be a whole number of at least 1", "as in last_n(20)"
        )

    def reduce(previous: Any, update: Any) -> Any:
        return FrozenList([*_list(previous), update][-n:])

    return Reducer(
        f"last_n({n})", reduce, "element", window=n, default=FrozenList(), part="items", wraps=True
    )


def extend() -> Reducer:
    """The elements of the update, a list, are added; [] changes nothing and is recorded."""
    return _PLAIN["extend"]


def merge() -> Reducer:
    """Shallow: keys of the update win; null sets null and never deletes."""
    return _PLAIN["merge"]


def merge_deep() -> Reducer:
    """Dicts are merged into dicts at every level; everything else is replaced."""
    return _PLAIN["merge_deep"]


def set_union() -> Reducer:
    """Adds the value, or the members of a list, if no canonically equal one is there yet; keeps the order."""
    return _PLAIN["set_union"]


def sum() -> Reducer:  # noqa: A001 - the public name of the reducer
    """Adds numbers."""
    return _PLAIN["sum"]


def min() -> Reducer:  # noqa: A001 - the public name of the reducer
    """Keeps the smaller number; a tie keeps the previous one."""
    return _PLAIN["min"]


def max() -> Reducer:  # noqa: A001 - the public name of the reducer
    """Keeps the larger number; a tie keeps the previous one."""
    return _PLAIN["max"]


@declares()
def by_type(reducers: Mapping[str, ReducerLike]) -> Reducer:
    """Passes a dict to the reducer for its `type`, without that key.

    If `content` is the only other key, the reducer gets the content alone.
    """
    import json

    known = {name: as_reducer(reducer) for name, reducer in reducers.items()}
    if not known:
        raise GraphInvalid("by_type needs at least one type", 'as in by_type({"submit_draft": "overwrite"})')

    def reduce(previous: Any, update: Any) -> Any:
        kind = update.get("type") if isinstance(update, dict) else None
        if not isinstance(kind, str) or kind not in known:
            words = in_words(update)
            if isinstance(update, dict):
                words = f"type {kind!r}" if "type" in update else "one without"
            raise Refused(
                f"takes a dict with a known `type`, not {words}", f"known types: {', '.join(known)}"
            )
        rest = {key: value for key, value in update.items() if key != "type"}
        return known[kind].reduce(previous, rest["content"] if set(rest) == {"content"} else FrozenDict(rest))

    text = json.dumps({name: reducer.text for name, reducer in known.items()}, separators=(",", ":"))
    hashes = "".join(reducer.source_hash for reducer in known.values())
    custom = any(reducer.custom for reducer in known.values())
    wraps = any(reducer.wraps for reducer in known.values())
    return Reducer(
        f"by_type({text})", reduce, "by_type", part="none", wraps=wraps, custom=custom, source_hash=hashes
    )


ReducerLike = Reducer | str | Callable[[Any, Any], Any]


def as_reducer(given: ReducerLike) -> Reducer:
    """Return a reducer from a reducer, its text, or a function `(old, new)`.

    Raises:
        GraphInvalid: an unknown name, bad arguments, or something else.
    """
    if isinstance(given, Reducer):
        return given
    if isinstance(given, str):
        return parse_reducer(given)
    if getattr(given, "__module__", "") == __name__ and getattr(given, "__name__", "") in __all__:
        arguments = {"last_n": "20", "by_type": "{…}"}.get(given.__name__, "")
        raise GraphInvalid(
            f"the reducer {given.__name__} is not called", f"write {given.__name__}({arguments})"
        )
    if callable(given):
        return _custom(given)
    raise GraphInvalid(
        f"a reducer can't be {in_words(given)}",
        "give a name such as 'append', or a function (old, new)",
    )


_LONGEST = 100_000
"""Characters; by_type may name many types."""


@lru_cache(maxsize=256)
def parse_reducer(text: str) -> Reducer:
    """Return a reducer from its text, as in files; `module:function` is imported.

    Raises:
        GraphInvalid: names the known reducers.
    """
    return _parsed(text, importing=True)


@lru_cache(maxsize=256)
def logged_reducer(text: str) -> Reducer | None:
    """Return a built-in reducer from its text in a log, without ever importing what the log names.

    None for custom reducers.
    """
    try:
        return _parsed(text, importing=False)
    except GraphInvalid:
        return None


def _parsed(text: str, *, importing: bool) -> Reducer:
    if len(text) > _LONGEST:
        raise GraphInvalid(f"reducer {text[:40]!r}…: it is longer than {_LONGEST} characters")
    name, opened, rest = text.strip().partition("(")
    name = name.rstrip() if not opened or rest.endswith(")") else ""
    argument = rest.removesuffix(")").strip()
    name = _ALIASES.get(name, name)
    if name in _PLAIN and not argument:
        return _PLAIN[name]
    if name == "last_n" and re.fullmatch(r"-?\d{1,9}", argument):
        return last_n(int(argument))
    if name == "by_type":
        import json

        try:
            named = json.loads(argument).items()
            return by_type({kind: _part(part, importing=importing) for kind, part in named})
        except (ValueError, AttributeError, RecursionError) as error:
            raise GraphInvalid(f"reducer {text!r}: {error}", 'as in by_type({"note":"append"})') from None
    if importing and re.fullmatch(r"[\w.]+:[\w.]+", text):
        return _custom(_import_function(text), text)
    raise GraphInvalid(
        f"unknown reducer {text!r}",
        f"known: {', '.join((*_PLAIN, *_ALIASES))}, last_n(N), by_type({{...}}) or module:function",
    )


def _part(given: Any, *, importing: bool) -> Reducer:
    """Return one reducer of a `by_type` that is read from text."""
    return _parsed(given, importing=importing) if isinstance(given, str) else as_reducer(given)


def _import_function(text: str) -> Callable[[Any, Any], Any]:
    module, _, path = text.partition(":")
    try:
        target: Any = importlib.import_module(module)
        for part in path.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError) as error:
        raise GraphInvalid(
            f"reducer {text!r} can't be imported: {error}", "check the module and the name"
        ) from error
    if not callable(target):
        raise GraphInvalid(
            f"reducer {text!r} is not a function", "a reducer is a function (old, new) -> value"
        )
    return target  # type: ignore[no-any-return]


def _custom(function: Callable[[Any, Any], Any], text: str = "") -> Reducer:
    _check_call(function)
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        source = getattr(function, "__qualname__", repr(function))
    name = getattr(function, "__qualname__", type(function).__name__)
    module = getattr(function, "__module__", "")
    place = getattr(sys.modules.get(module), IS_FILE, module)
    return Reducer(
        text or f"{place}:{name}",
        function,
        "custom",
        part="none",
        custom=True,
        source_hash=hashlib.sha256(source.encode()).hexdigest(),
    )


def _check_call(function: Callable[[Any, Any], Any]) -> None:
    """Refuse a function that can't be called with two arguments."""
    name = getattr(function, "__qualname__", type(function).__name__)
    hint = "a reducer is a plain function (old, new) -> value"
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        raise GraphInvalid(f"the reducer {name} is async", hint)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # some functions written in C have no signature
    try:
        signature.bind(None, None)
    except TypeError as error:
        raise GraphInvalid(f"the reducer {name} can't be called as (old, new): {error}", hint) from None


def _list(previous: Any) -> list[Any]:
    if previous is None:
        return []
    if not isinstance(previous, list):
        raise Refused(
            f"needs a list to add to, the channel holds {in_words(previous)}", "edit it to a list first"
        )
    return previous


def _dict(previous: Any) -> dict[str, Any]:
    if previous is None:
        return {}
    if not isinstance(previous, dict):
        raise Refused(
            f"needs a dict to merge into, the channel holds {in_words(previous)}", "edit it to a dict first"
        )
    return previous


def _given_dict(update: Any) -> dict[str, Any]:
    if not isinstance(update, dict):
        raise Refused(f"takes a dict, not {in_words(update)}", "return a dict of the keys to set")
    return update


def _number(previous: Any) -> int | float:
    if isinstance(previous, bool) or not isinstance(previous, (int, float)):
        raise Refused(
            f"needs a number to start from, but the channel holds {in_words(previous)}",
            "edit it to a number first",
        )
    return previous


def _given_number(update: Any) -> int | float:
    if isinstance(update, bool) or not isinstance(update, (int, float)):
        raise Refused(f"takes a number, not {in_words(update)}", "return an int or a float")
    return update


def _reduce_append(previous: Any, update: Any) -> Any:
    items = FrozenList(_list(previous))
    list.append(items, update)
    return items


def _reduce_extend(previous: Any, update: Any) -> Any:
    if not isinstance(update, list):
        raise Refused(f"takes a list, not {in_words(update)}", "wrap the value in a list, or use append")
    return FrozenList(_list(previous) + update)


def _reduce_merge(previous: Any, update: Any) -> Any:
    return FrozenDict({**_dict(previous), **_given_dict(update)})


def _reduce_merge_deep(previous: Any, update: Any) -> Any:
    return _deep(_dict(previous), _given_dict(update))


def _deep(old: dict[str, Any], new: dict[str, Any]) -> FrozenDict:
    merged = dict(old)
    for key, value in new.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _deep(merged[key], value) if both else value
    return FrozenDict(merged)


def _reduce_union(previous: Any, update: Any) -> Any:
    items = list(_list(previous))
    seen = {canonical(item) for item in items}
    for item in update if isinstance(update, list) else [update]:
        key = canonical(item)
        if key not in seen:
            seen.add(key)
            items.append(item)
    return FrozenList(items)


def _reduce_sum(previous: Any, update: Any) -> Any:
    number = _given_number(update)
    try:
        total = number if previous is None else _number(previous) + number
    except OverflowError:
        total = math.inf
    if not math.isfinite(total) if isinstance(total, float) else total.bit_length() > MAX_INT_BITS:
        raise Refused(
            f"overflows: {_short(previous)} + {_short(number)}", "keep smaller numbers, or use whole ones"
        )
    return total


def _short(number: Any) -> str:
    text = str(number)
    return text if len(text) <= 30 else f"a number of {len(text):,} digits"


def _reduce_min(previous: Any, update: Any) -> Any:
    number = _given_number(update)
    return number if previous is None or number < _number(previous) else previous


def _reduce_max(previous: Any, update: Any) -> Any:
    number = _given_number(update)
    return number if previous is None or number > _number(previous) else previous


_PLAIN: builtins.dict[str, Reducer] = {
    reducer.text: reducer
    for reducer in (
        Reducer("overwrite", lambda _previous, update: update, "replace", needs_old=False),
        Reducer(
            "append", _reduce_append, "element",
            needs_old=False, default=FrozenList(), part="items", appends=True, wraps=True,
        ),
        Reducer(
            "extend", _reduce_extend, "members",
            needs_old=False, default=FrozenList(), part="members", appends=True,
        ),
        Reducer("merge", _reduce_merge, "merge", default=FrozenDict(), part="properties"),
        Reducer("merge_deep", _reduce_merge_deep, "merge", default=FrozenDict(), part="none"),
        Reducer(
            "set_union", _reduce_union, "members",
            default=FrozenList(), part="members", appends=True, wraps=True,
        ),
        Reducer("sum", _reduce_sum, "sum", default=0),
        Reducer("min", _reduce_min, "extreme", default=0),
        Reducer("max", _reduce_max, "extreme", default=0),
    )
}  # fmt: skip
"""The only list of reducers without arguments, by their text."""

_ALIASES = {"last": "overwrite"}


def __dir__() -> list[str]:
    return builtins.sorted(__all__)
