"""Items of a graph's long-term store in words: where each is, when it was written, and its value."""

from __future__ import annotations

from typing import Final

from hitl_tui.drivers.protocol import StoredItem
from hitl_tui.view.format import inline
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, trusted, untrusted

MOST: Final = 500
"""Items that are listed at once."""
_PLACE: Final = 60
_VALUE: Final = 400


def place_of(item: StoredItem) -> str:
    """Its namespace, sanitised, as `users.ann`."""
    return sanitise_line(".".join(item.namespace), _PLACE)


def item_line(item: StoredItem, *, written: str = "") -> Line:
    """An item on one line.

    Args:
        written: when it was written last, in words.
    """
    return (
        untrusted(".".join(item.namespace), "dim", _PLACE),
        trusted("  "),
        untrusted(item.key, "name", _PLACE),
        trusted(f"  {inline(item.value, _VALUE)}", "value"),
        trusted(f"  {written}" if written else "", "dim"),
    )
