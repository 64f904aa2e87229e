"""Reads the items of a graph's long-term store; writes nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from hitl_tui.drivers.langgraph.pregel import microseconds, on_loop_of
from hitl_tui.drivers.langgraph.values import as_json
from hitl_tui.drivers.protocol import StoredItem
from hitl_tui.engine.state.frozen import thaw

NO_STORE: Final = "the graph was compiled without a store"
_PAGE: Final = 100
"""Items that are asked for at once; aegra gives no more."""
_MOST: Final = 10_000
"""Items that are looked through."""


async def find_items(store: Any, prefix: Sequence[str], query: str, limit: int) -> tuple[StoredItem, ...]:
    """Find items of a LangGraph store, in the store's order.

    Args:
        store: a `BaseStore`, or any object with its `search`.
        prefix: the beginning of their namespace.
        query: words that each item must have in its namespace, key or value; case is ignored.
    """
    items: list[StoredItem] = []
    words = query.lower().split()
    for offset in range(0, _MOST, _PAGE):
        page = await _page(store, tuple(prefix), offset)
        items += [item for item in map(_item, page) if _matches(item, words)]
        if len(page) < _PAGE or len(items) >= limit:
            break
    return tuple(items[:limit])


async def _page(store: Any, prefix: tuple[str, ...], offset: int) -> Sequence[Any]:
    if type(store).__name__.startswith("Async"):
        page: Sequence[Any] = await on_loop_of(store, store.asearch(prefix, limit=_PAGE, offset=offset))
        return page
    return await asyncio.to_thread(lambda: list(store.search(prefix, limit=_PAGE, offset=offset)))


def _item(item: Any) -> StoredItem:
    return StoredItem(
        tuple(str(as_json(str(part))) for part in item.namespace),
        str(as_json(str(item.key))),
        as_json(item.value),
        _time(item.created_at),
        _time(item.updated_at),
    )


def _time(moment: Any) -> int:
    return microseconds(moment.isoformat() if isinstance(moment, datetime) else str(moment))


def _matches(item: StoredItem, words: Sequence[str]) -> bool:
    if not words:
        return True
    text = json.dumps([item.namespace, item.key, thaw(item.value)], ensure_ascii=False).lower()
    return all(word in text for word in words)
