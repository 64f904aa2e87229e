"""What values are inside a channel: JSON that refuses changes, and what is known of it.

Specified in docs/spec/values.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn


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
        "state and context are read-only inside a node: make a copy (list(value), dict(value)), "
        "and return it as an update where it is to be kept"
    )


class FrozenList(list[Any]):
    """A list that refuses changes.

    `known` is what `normalise` has found out about it (see `known`), `json` its canonical bytes where
    `canonical` keeps them: both are empty slots until then.
    """

    __slots__ = ("json", "known")
    json: bytes
    known: int
    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return thaw(self)  # type: ignore[no-any-return]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return (list, (list(self),))


class FrozenDict(dict[str, Any]):
    """A dict that refuses changes; `known` and `json` are those of a `FrozenList`."""

    __slots__ = ("json", "known")
    json: bytes
    known: int
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


PART = 1024
"""Bytes: from this size on a list or a dict inside a value is a part of its own, encoded once for all values
that share it."""

# The bits of what is known, lowest first: how many levels of lists and dicts it has; `PLAIN`: there are no
# floats in it and only ASCII keys, so that msgspec writes its canonical bytes; `JOINED`: some list or dict
# directly in it is a `PART`; then about its canonical size in bytes, escapes left aside.  A number takes a
# fifth of what a tuple does, and a value may hold many.
HEIGHT, PLAIN, JOINED, SIZE_SHIFT = 127, 128, 256, 9
_READ_KNOWN = {kind: vars(kind)["known"].__get__ for kind in (FrozenList, FrozenDict)}


def known(value: Any) -> int:
    """What is known of a list or a dict that came from `normalise`, so that all in it is; else 0."""
    # By the slot itself: FrozenDict makes words of an attribute that is not there.
    read = _READ_KNOWN.get(type(value))
    try:
        return read(value) if read else 0
    except AttributeError:
        return 0
