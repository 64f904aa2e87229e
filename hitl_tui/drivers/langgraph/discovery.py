"""Finds the threads of a LangGraph checkpointer, those with new checkpoints, and who made those."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from hitl_tui.drivers.langgraph.mirror import their_thread
from hitl_tui.drivers.langgraph.pregel import App, config_of, is_async_saver, on_loop_of
from hitl_tui.errors import StaleWriter

if TYPE_CHECKING:
    from hitl_tui.drivers.langgraph.mirror import Mirror
    from hitl_tui.engine.log.store import Store

_HEADS: Final = """
    SELECT thread_id, max(checkpoint_id) FROM checkpoints WHERE checkpoint_ns = ''
    GROUP BY thread_id ORDER BY 2 DESC
"""
_MOST: Final = 5_000
"""The newest checkpoints, in which threads are looked for where a checkpointer can't be asked for them."""

_LONGEST: Final = 200
_NOT_WHO: Final = ("parents", "writes", "thread_id", "counters_since_delta_snapshot")
"""In a checkpoint's metadata: what tells nothing of who made it."""


def lists_all_threads(saver: Any) -> bool:
    """Whether `thread_heads` returns all threads of a checkpointer: for some kinds only the newest."""
    kinds = {kind.__name__ for kind in type(saver).__mro__}
    return hasattr(saver, "heads") or bool(kinds & {"InMemorySaver", "SqliteSaver", "AsyncSqliteSaver"})


async def has_thread(saver: Any, thread: str) -> bool:
    """Whether a checkpointer has a checkpoint of a thread."""
    if is_async_saver(saver):
        return await on_loop_of(saver, saver.aget_tuple(config_of(thread))) is not None
    return await asyncio.to_thread(saver.get_tuple, config_of(thread)) is not None


async def thread_heads(saver: Any) -> Mapping[str, str]:
    """Return the newest checkpoint of each thread of a checkpointer, the newest thread first."""
    if hasattr(saver, "heads"):  # the threads of a server
        heads_there: Mapping[str, str] = await asyncio.to_thread(saver.heads)
        return heads_there
    kinds = {kind.__name__ for kind in type(saver).__mro__}
    if "InMemorySaver" in kinds:
        newest = {
            str(thread): max(spaces[""]) for thread, spaces in list(saver.storage.items()) if spaces.get("")
        }
        return dict(sorted(newest.items(), key=lambda head: head[1], reverse=True))
    if "SqliteSaver" in kinds:
        with saver.cursor(transaction=False) as cursor:
            return _texts(cursor.execute(_HEADS).fetchall())
    if "AsyncSqliteSaver" in kinds:
        return _texts(await on_loop_of(saver, _rows(saver)))
    if is_async_saver(saver):
        return await on_loop_of(saver, _listed(saver))
    return _newest(await asyncio.to_thread(lambda: list(saver.list(None, limit=_MOST))))


def _texts(rows: Iterable[Any]) -> dict[str, str]:
    return {str(thread): str(head) for thread, head in rows}


def _newest(tuples: Iterable[Any]) -> dict[str, str]:
    heads: dict[str, str] = {}
    for saved in tuples:
        place = saved.config["configurable"]
        if not place.get("checkpoint_ns"):
            heads.setdefault(str(place["thread_id"]), str(place["checkpoint_id"]))
    return heads


async def _rows(saver: Any) -> Any:
    await saver.setup()
    return await saver.conn.execute_fetchall(_HEADS)


async def _listed(saver: Any) -> Mapping[str, str]:
    return _newest([saved async for saved in saver.alist(None, limit=_MOST)])


def outdated(store: Store, heads: Mapping[str, str]) -> list[str]:
    """Return the threads whose newest checkpoint is not mirrored, in order."""
    return [thread for thread, head in heads.items() if head not in _mirrored(store, thread)]


def _mirrored(store: Store, thread: str) -> set[str | None]:
    """Return the newest checkpoints of a thread's lines in the mirror."""
    if store.info(thread) is None:
        return set()
    lines, heads = [thread], set[str | None]()
    for line in lines:
        heads |= {point.origin for point in store.checkpoints(line, None, 1)}
        lines += [child.thread_id for child in store.children(line)]
    return heads


async def sync_named(mirror: Mirror, name: str) -> bool:
    """Bring the mirror of one thread up to date; returns False if there is no such thread on either side.

    Args:
        name: of the thread, or of a line of it or of a subgraph's run inside it.
    """
    return bool(await mirror.sync(thread_named(mirror.store, name)))


def thread_named(store: Store, name: str) -> str:
    """The thread of theirs that a thread of their mirror is of; the name itself where that has none."""
    if (info := store.info(name)) is None:
        return name
    while info.owner is not None and (owner := store.info(info.owner.thread_id)) is not None:
        info = owner
    return their_thread(info)


async def sync_threads(
    mirror: Mirror, on_progress: Callable[[int, int], object] = lambda done, total: None
) -> None:
    """Bring the mirror of every thread that has moved up to date.

    Args:
        on_progress: called with the number of threads done and the number of all.
    """
    moved = outdated(mirror.store, await thread_heads(mirror.app.graph.checkpointer))
    for done, thread in enumerate(moved):
        on_progress(done, len(moved))
        await mirror.sync(thread)


async def stale(app: App, thread: str, newest: str) -> StaleWriter:
    """Return the error for a thread that somebody else has continued; the newest checkpoint names them."""
    snapshot = await app.snapshot(config_of(thread, newest))
    return StaleWriter(
        f"another program ran thread {thread!r}: it is at checkpoint {newest} now{_who(snapshot.metadata)}",
        "look at what changed, then continue",
    )


async def run_of(app: App, thread: str, checkpoint: str) -> str:
    """Return the id of the server's run that saved a checkpoint, "" if unknown."""
    snapshot = await app.snapshot(config_of(thread, checkpoint))
    return str((snapshot.metadata or {}).get("run_id", ""))


def _who(metadata: Mapping[str, Any] | None) -> str:
    """Describe who made a checkpoint, by its metadata."""
    facts = dict(metadata or {})
    source, step = facts.pop("source", ""), facts.pop("step", "")
    rest = [f"{name}={value}" for name, value in facts.items() if name not in _NOT_WHO]
    words = ", ".join(filter(None, (f"step {step} by {source}" if source else "", *rest)))
    return f" ({words[:_LONGEST]})" if words else ""
