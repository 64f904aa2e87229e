"""What the threads of a checkpointer take, by channel: as its checkpoints are when they are written."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from hitl_tui.drivers.langgraph.discovery import thread_heads
from hitl_tui.drivers.langgraph.pregel import is_async_saver, on_loop_of
from hitl_tui.engine.log.threads import Space, ThreadSize
from hitl_tui.errors import UsageError

if TYPE_CHECKING:
    from hitl_tui.engine.log.store import Store
    from hitl_tui.stores.deletion import Watch

_ONCE: Final = ("InMemorySaver", "BasePostgresSaver")
"""Checkpointers that keep a value once for as long as it stays; others write all of them with each step."""
_PAGES: Final = ("page_count", "freelist_count", "page_size")


class _Measure:
    """Adds up the checkpoints of a thread.

    Args:
        once: a value that stays is kept once.
    """

    def __init__(self, *, once: bool) -> None:
        self._once = once
        self._seen: set[tuple[str, str, Any]] = set()
        self._serializer = JsonPlusSerializer()
        self.steps = self.rest = 0
        self.channels: Counter[str] = Counter()

    def add(self, saved: Any) -> None:
        """Take a checkpoint, as a checkpointer gives it."""
        checkpoint: Mapping[str, Any] = saved.checkpoint
        place = saved.config["configurable"].get("checkpoint_ns", "")
        versions = checkpoint.get("channel_versions", {})
        self.steps += not place
        self.rest += self._bytes({**checkpoint, "channel_values": None}) + self._bytes(saved.metadata)
        for name, value in checkpoint.get("channel_values", {}).items():
            kept = (place, name, versions.get(name))
            if not (self._once and kept in self._seen):
                self._seen.add(kept)
                self._count(name, value)
        for _task, name, value in saved.pending_writes or ():
            self._count(name, value)

    def _count(self, name: str, value: Any) -> None:
        """Count a value to its channel; what LangGraph keeps for itself is part of the steps."""
        if name.startswith("__") or ":" in name:
            self.rest += self._bytes(value)
        else:
            self.channels[name] += self._bytes(value)

    def _bytes(self, value: Any) -> int:
        try:
            return len(self._serializer.dumps_typed(value)[1])
        except Exception:  # what only a serializer of its own can write
            return len(repr(value))


async def sizes_of(
    saver: Any, store: Store, threads: Iterable[str] | None = None, watch: Watch | None = None
) -> list[ThreadSize]:
    """What threads take, with all that ran inside them and our ledger of them, the largest first.

    Args:
        store: their mirror.
        threads: which; None for all.
        watch: called with (threads looked at, threads there are); what it raises ends it.

    Raises:
        UsageError: it is on a server, which does not tell.
    """
    if not hasattr(saver, "list"):
        raise UsageError(
            "a LangGraph server does not report the size of its threads", "ask its administrator"
        )
    names = list(await thread_heads(saver) if threads is None else threads)
    sizes = []
    for name in names:
        measure = _Measure(once=any(kind.__name__ in _ONCE for kind in type(saver).__mro__))
        config = {"configurable": {"thread_id": name}}
        if is_async_saver(saver):
            await on_loop_of(saver, _add_awaited(measure, saver, config))
        else:
            await asyncio.to_thread(_add_all, measure, saver, config)
        decisions = store.size(name).decisions if store.info(name) is not None else 0
        sizes.append(ThreadSize(name, measure.steps, dict(measure.channels), measure.rest, 0, decisions))
        if watch:
            watch(len(sizes), len(names))
    return sorted(sizes, key=lambda size: -size.bytes)


def _add_all(measure: _Measure, saver: Any, config: Any) -> None:
    for saved in saver.list(config):
        measure.add(saved)


async def _add_awaited(measure: _Measure, saver: Any, config: Any) -> None:
    async for saved in saver.alist(config):
        measure.add(saved)


async def space_of(saver: Any) -> Space:
    """What the file of a checkpointer in SQLite takes; nothing for any other."""
    if "SqliteSaver" not in {kind.__name__ for kind in type(saver).__mro__}:
        return Space(0, 0)
    with saver.cursor(transaction=False) as cursor:
        pages, free, size = (cursor.execute(f"PRAGMA {fact}").fetchone()[0] for fact in _PAGES)
    return Space(pages * size, free * size)
