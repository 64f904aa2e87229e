"""Patches: edits that make a large value out of the one before it.

A patch is JSON, a list of edits in the order in which they are made:

    [path, value]                put a value at a path, which is a list of keys and places
    [path]                       remove a key of a dict
    [path, start, stop, items]   replace the items from `start` up to `stop` of the list at a path,
                                 or the characters of a text

It restores the value exactly, including the order of keys.

Specified in docs/spec/log.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from hitl_tui.engine.state.frozen import FrozenDict, FrozenList, freeze

Edit = list[Any]

_encode = msgspec.json.Encoder().encode
_CONTAINERS = (FrozenDict, FrozenList)
_FEWEST_SHARED = 32
"""Characters that two texts must share at their beginning and end to make a patch worthwhile."""


def patch(old: Any, new: Any, most: int) -> list[Edit] | None:
    """Return the edits that turn `old` into `new`, both frozen; None if they exceed `most` bytes of JSON.

    Shared containers are compared by identity, so they cost almost nothing.
    """
    if new is old:
        return []
    if type(old) is not type(new):
        return None
    if type(new) is str:
        edit = _text_edit([], old, new)
        return [edit] if edit and len(_encode([edit])) <= most else None
    if type(new) not in _CONTAINERS:
        return None
    edits: list[Edit] = []
    size = 2
    for edit in _edits([], old, new):
        size += len(_encode(edit)) + 1
        if size > most or edit[:-1] == [[]]:
            return None
        edits.append(edit)
    return edits


def patched(old: Any, edits: Sequence[Edit]) -> Any:
    """Apply edits to `old`; returns the frozen result and leaves `old` unchanged.

    Raises:
        ValueError: the edits do not fit the value.
    """
    root = FrozenList([old])
    own = {id(root): root}
    try:
        for path, *new in edits:
            parent, key = root, 0
            for step in path:
                parent, key = _own(parent, key, own), step
            _edit(parent, key, new, own)
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(f"a patch does not fit its value ({error})") from None
    return root[0]


def length_after(edits: Iterable[Edit], length: int) -> int:
    """Return the length of a list after edits, from its length before.

    Raises:
        ValueError: the edits are malformed.
    """
    try:
        for path, *new in edits:
            if not path and len(new) == 3:
                start, stop, items = new
                length += len(items) - (stop - start)
    except TypeError as error:
        raise ValueError(f"a patch does not fit its value ({error})") from None
    return length


def _edits(path: list[Any], old: Any, new: Any) -> Iterator[Edit]:
    if new is old or (type(new) is type(old) and type(new) in (str, int) and new == old):
        return
    if type(new) is FrozenDict and type(old) is FrozenDict and _keeps_order(old, new):
        for key in [key for key in old if key not in new]:
            yield [[*path, key]]
        for key, value in new.items():
            if key not in old:
                yield [[*path, key], value]
            elif value is not old[key]:
                yield from _edits([*path, key], old[key], value)
    elif type(new) is FrozenList and type(old) is FrozenList:
        yield from _list_edits(path, old, new)
    elif type(new) is str and type(old) is str and (edit := _text_edit(path, old, new)):
        yield edit
    else:
        yield [path, new]


def _text_edit(path: list[Any], old: str, new: str) -> Edit | None:
    """Return the edit from one text to another, None if they share too little."""
    if old[:_FEWEST_SHARED] != new[:_FEWEST_SHARED] and old[-_FEWEST_SHARED:] != new[-_FEWEST_SHARED:]:
        return None
    shorter = min(len(old), len(new))
    start, most = 0, shorter
    while start < most:
        middle = (start + most + 1) // 2
        if new.startswith(old[start:middle], start):
            start = middle
        else:
            most = middle - 1
    end, most = 0, shorter - start
    while end < most:
        middle = (end + most + 1) // 2
        if new.endswith(old[len(old) - middle : len(old) - end], 0, len(new) - end):
            end = middle
        else:
            most = middle - 1
    if start + end < _FEWEST_SHARED:
        return None
    return [path, start, len(old) - end, new[start : len(new) - end]]


def _keeps_order(old: FrozenDict, new: FrozenDict) -> bool:
    """Whether `new` has the remaining keys of `old` in the same order, with new keys only at the end."""
    keys = list(new)
    if keys == list(old):
        return True
    kept = [key for key in old if key in new]
    return keys[: len(kept)] == kept


def _list_edits(path: list[Any], old: FrozenList, new: FrozenList) -> Iterator[Edit]:
    if len(old) == len(new):
        for place, (before, after) in enumerate(zip(old, new, strict=True)):
            if after is not before:
                yield from _edits([*path, place], before, after)
        return
    shorter = min(len(old), len(new))
    start = next((place for place in range(shorter) if old[place] is not new[place]), shorter)
    rest = range(1, shorter - start + 1)
    end = next((place - 1 for place in rest if old[-place] is not new[-place]), shorter - start)
    yield [path, start, len(old) - end, new[start : len(new) - end]]


def _own(parent: Any, key: Any, own: dict[int, Any]) -> Any:
    """Return the value at a key as a copy that may be changed."""
    _check_key(parent, key)
    value = parent[key]
    if id(value) not in own:
        if type(value) not in _CONTAINERS:
            raise TypeError("a path leads through what is no list and no dict")
        value = type(value)(value)
        own[id(value)] = value
        _put(parent, key, value)
    return value


def _edit(parent: Any, key: Any, new: list[Any], own: dict[int, Any]) -> None:
    if not new:
        dict.__delitem__(parent, key)
        return
    if len(new) == 1:
        _put(parent, key, freeze(new[0]))
        return
    start, stop, given = new
    _check_key(parent, key)
    if type(text := parent[key]) is str and type(given) is str:
        _check_part(start, stop, text)
        _put(parent, key, text[:start] + given + text[stop:])
        return
    items = _own(parent, key, own)
    if type(items) is not FrozenList or not isinstance(given, list):
        raise TypeError("a part of a list is put into what is none")
    _check_part(start, stop, items)
    list.__setitem__(items, slice(start, stop), freeze(given))


def _check_part(start: int, stop: int, whole: Sequence[Any]) -> None:
    if not 0 <= start <= stop <= len(whole):
        raise TypeError("no such part of a list or a text")


def _put(parent: Any, key: Any, value: Any) -> None:
    _check_key(parent, key)
    put = dict.__setitem__ if type(parent) is FrozenDict else list.__setitem__
    put(parent, key, value)


def _check_key(parent: Any, key: Any) -> None:
    if type(key) is not (str if type(parent) is FrozenDict else int) or (type(key) is int and key < 0):
        raise TypeError("a path leads nowhere")
