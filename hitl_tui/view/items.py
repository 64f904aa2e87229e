"""Describes items of a graph's long-term store: place, time of writing, and value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from hitl_tui.drivers.protocol import StoredItem
from hitl_tui.view.cells import cells, cut, fitted
from hitl_tui.view.format import inline
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, trusted

MOST: Final = 500
"""Most items that are listed at once."""
_PLACE: Final = 60
_VALUE: Final = 400
_KEY, _HELD = 24, 60


def place_of(item: StoredItem) -> str:
    """Return an item's namespace, sanitised, as `users.ann`."""
    return sanitise_line(".".join(item.namespace), _PLACE)


def value_words(value: Any, limit: int = _VALUE) -> str:
    """Return an item's value on one line, an object by its keys' values; sanitised."""
    if not isinstance(value, Mapping):
        return inline(value, limit)
    return cut(
        ", ".join(f"{sanitise_line(str(key), _KEY)} {inline(held, _HELD)}" for key, held in value.items()),
        limit,
    )


def item_lines(
    items: Sequence[StoredItem], written: Callable[[StoredItem], str] = lambda item: ""
) -> list[Line]:
    """Return a line for each item, in columns.

    Args:
        written: returns when an item was last written, as text.
    """
    keys = [sanitise_line(item.key, _PLACE) for item in items]
    places = [place_of(item) for item in items]
    width, key_width = max(map(cells, places), default=0), max(map(cells, keys), default=0)
    return [
        (
            trusted(f"{fitted(place, width)}  ", "dim"),
            trusted(f"{fitted(key, key_width)}  ", "name"),
            trusted(value_words(item.value), "value"),
            trusted(f"  {words}" if (words := written(item)) else "", "dim"),
        )
        for item, place, key in zip(items, places, keys, strict=True)
    ]
