"""Measures the space that threads take in a checkpointer, by channel, as serialized."""

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
UPKEEP_REFUSAL: Final = (
    "LangGraph's checkpointer keeps these threads: delete them there, `threads` forgets them then"
)


class _Measure:
    """Sums up the checkpoints of a thread.

    Args:
        once: an unchanged value is stored only once.
    """

    def __init__(self, *, once: bool) -> None:
        self._once = once
        self._seen: set[tuple[str, str, Any]] = set()
        self._serializer = JsonPlusSerializer()
        self.steps = self.rest = 0
        self.channels: Counter[str] = Counter()

    def add(self, saved: Any) -> None:
        """Add a checkpoint, as the checkpointer returns it."""
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
        """Add a value to its channel; LangGraph's internal channels count as part of the steps."""
        if name.startswith("__") or ":" in name:
            self.rest += self._bytes(value)
        else:
            self.channels[name] += self._bytes(value)

    def _bytes(self, value: Any) -> int:
        try:
            return len(self._serializer.dumps_typed(value)[1])
        except Exception:  # a value that only the graph's own serializer can write
            return len(repr(value))


async def sizes_of(
    saver: Any, store: Store, threads: Iterable[str] | None = None, watch: Watch | None = None
) -> list[ThreadSize]:
    """Return the space of threads, with their subgraphs' runs and our ledger, the largest first.

    Args:
        store: their mirror.
        threads: the threads to measure; None for all.
        watch: called with (threads measured, all threads); an error that it raises stops the measuring.

    Raises:
        UsageError: the threads are on a LangGraph server, which does not report sizes.
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
    """Return the space of a SQLite checkpointer's file; nothing for other checkpointers."""
    if "SqliteSaver" not in {kind.__name__ for kind in type(saver).__mro__}:
        return Space(0, 0)
    with saver.cursor(transaction=False) as cursor:
        pages, free, size = (cursor.execute(f"PRAGMA {fact}").fetchone()[0] for fact in _PAGES)
    return Space(pages * size, free * size)
