"""Immutable JSON values of channels, with cached facts about them.

Specified in docs/spec/values.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn


def freeze(value: Any) -> Any:
    """Freeze a JSON value that is known to be valid."""
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

    `known` holds the facts that `normalise` found (see the function `known`), `json` the canonical bytes if
    `canonical` cached them; both slots are empty until then.
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

    if not TYPE_CHECKING:  # hidden from type checkers, which would accept any attribute

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
    """Return a deep copy in plain lists and dicts, which may be changed."""
    if isinstance(value, list):
        return [thaw(item) for item in value]
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    return value


_DONE = frozenset({str, int, float, bool, type(None), FrozenList, FrozenDict})


PART = 512
"""Size in bytes from which a list or dict inside a value is encoded once for all values that share it."""

# The bits of `known`, lowest first: the number of levels of lists and dicts; `PLAIN`: no floats and only
# ASCII keys, so that msgspec writes its canonical bytes; `JOINED`: some list or dict directly in it is of at
# least `PART` bytes; then its approximate canonical size in bytes, without escapes.  It is a number since a
# value may hold many, and a number takes a fifth of a tuple's memory.
HEIGHT, PLAIN, JOINED, SIZE_SHIFT = 127, 128, 256, 9
_READ_KNOWN = {kind: vars(kind)["known"].__get__ for kind in (FrozenList, FrozenDict)}


def known(value: Any) -> int:
    """Return the cached facts about a list or dict that came from `normalise`, else 0."""
    # Through the slot: for a missing attribute FrozenDict's `__getattr__` builds a long error.
    read = _READ_KNOWN.get(type(value))
    try:
        return read(value) if read else 0
    except AttributeError:
        return 0
