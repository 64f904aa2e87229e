"""The files of an open thread's graph: when one was saved, which steps are still valid, and reloading."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from hitl_tui.engine.graph.compiled import CompiledGraph
from hitl_tui.engine.log.events import Event, GraphChanged
from hitl_tui.engine.log.repeats import Repeats
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.thread.recorded import RecordedGraph
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import GraphDiffers, HitlError

if TYPE_CHECKING:
    from hitl_tui.engine.runner import GraphRunner
    from hitl_tui.loading.compatibility import Difference

log = logging.getLogger(__name__)

Stamp = tuple[int, int, int]
BuildGraph: TypeAlias = "Callable[[ThreadInfo], GraphRunner]"

EVERY = 0.8
"""Seconds between checks of the file, a multiple of those between checks of the store."""


def until_next(every: float) -> float:
    """Return the seconds to the next multiple of `every` on the loop's clock, so that checks coincide."""
    return every - asyncio.get_running_loop().time() % every


class GraphFileWatch:
    """Follows the files from which the graph of an open thread is built: its own, and those it loads.

    If a graph can't be loaded, all files beside it are watched: any of them may be the cause.

    Attributes:
        changed: the differences since the file was saved, as text; None if it is as it was loaded.
        graph: the saved graph, None if it can't be built or nothing was saved.
        repeats: which steps of the thread are valid under it, and what would run again.
    """

    def __init__(
        self, session: Session, path: Path, build: BuildGraph, *, emit: Callable[[Event], None]
    ) -> None:
        self.changed: tuple[str, ...] | None = None
        self.graph: CompiledGraph | None = None
        self.repeats: Repeats | None = None
        self._judged_at = -1
        """The version of the thread that `changed` and `repeats` are about."""
        self._session = session
        self._path = path
        self._build = build
        self._emit = emit
        self._broken = isinstance(session.graph, RecordedGraph)
        self._one_looks = asyncio.Lock()
        self._seen: dict[Path, Stamp] = {}
        self._seen = self._stamps()

    async def follow(self) -> None:
        """Check again and again, until cancelled."""
        while True:
            await asyncio.sleep(until_next(EVERY))
            try:
                await self.look()
            except Exception:  # from the store or the user's code; the next check may succeed
                log.exception("thread %s: can't check the files of its graph", self._session.thread_id)

    async def look(self) -> None:
        """Emit an event if the file was saved, with the differences; once per difference."""
        async with self._one_looks:
            await self._look()

    async def _look(self) -> None:
        stamps = self._stamps()
        # Files that a working graph has loaded since are no news; those that a broken one lacked are.
        known = self._seen if self._broken else {**stamps, **self._seen}
        saved = any(known.get(path) != stamp for path, stamp in stamps.items())
        # Editors replace files: a briefly missing file is no news.
        seen = {**self._seen, **stamps}
        if not saved:
            self._seen = seen
            await self._judge_again()
            return
        graph, repeats, broken = None, None, isinstance(self._session.graph, RecordedGraph)
        try:
            graph = await self._load()
            changed = tuple(difference.words for difference in self._fits(graph))
        except HitlError as error:
            graph, broken, changed = None, True, (f"it can't be loaded: {error.message}",)
        else:
            repeats = await repeats_under(self._session, graph)
        # Only now: a failed check leaves everything to the next one.
        is_news = (changed, repeats) != (self.changed, self.repeats)
        self.changed, self.graph, self.repeats, self._broken = changed, graph, repeats, broken
        self._judged_at = self._session.cursor.version
        self._seen = {**self._stamps(), **seen} if broken else seen
        # One save may look like several: of several files, or of one in several writes.
        if is_news:
            self._emit(GraphChanged(changed, repeats))

    async def _judge_again(self) -> None:
        """Emit what is still valid under the saved graph after the thread has moved on."""
        graph, version = self.graph, self._session.cursor.version
        if graph is None or version == self._judged_at:
            return
        changed = tuple(difference.words for difference in self._fits(graph))
        repeats = await repeats_under(self._session, graph)
        is_news = (changed, repeats) != (self.changed, self.repeats)
        self.changed, self.repeats, self._judged_at = changed, repeats, version
        if is_news:
            self._emit(GraphChanged(changed, repeats))

    async def reload(self, actor: str | None) -> tuple[str, ...]:
        """Continue with the graph as it is in the file now; returns the differences as text.

        Raises:
            GraphInvalid: it can't be built, or the thread can't continue with it in its present state.
        """
        async with self._one_looks:
            return await self._reload(actor)

    async def _reload(self, actor: str | None) -> tuple[str, ...]:
        stamps = self._stamps()
        graph = await self._load()
        differences = self._fits(graph)
        if blocking := [difference.words for difference in differences if difference.blocks]:
            raise GraphDiffers(
                f"the thread can't continue with the saved graph: {'; '.join(blocking)}",
                "fix the file, edit the state, or fork from an earlier step",
            )
        from hitl_tui.engine.thread.graph_change import change_graph

        with self._session.writing():
            change_graph(self._session, graph, actor=actor)
        self._seen = {**self._seen, **stamps}
        self.changed, self.graph, self.repeats, self._broken = None, None, None, False
        return tuple(difference.words for difference in differences)

    async def _load(self) -> CompiledGraph:
        """Load the graph of the file, in a separate thread, since it runs the user's code."""

        from hitl_tui.loading.code import forget_code
        from hitl_tui.loading.modules import one_loads

        def load() -> CompiledGraph:
            with one_loads:
                forget_code(self._path.parent)
                return self._build(self._session.info).graph

        return await asyncio.to_thread(load)

    def _stamps(self) -> dict[Path, Stamp]:
        """Return all files from which the graph is built, each with a stamp that changes when it is saved."""
        from hitl_tui.loading.sources import source_files

        files = source_files(self._path) | self._seen.keys()
        if self._broken:
            files |= _beside(self._path)
        return {path: stamp for path in files if (stamp := _stamp(path)) is not None}

    def _fits(self, graph: CompiledGraph) -> list[Difference]:
        return _differences(self._session, self._session.graph, graph)


def follow_file(
    session: Session, build: BuildGraph | None, emit: Callable[[Event], None]
) -> GraphFileWatch | None:
    """Return a watch on the file of a session's graph; None if it has none of the user's own."""
    if build is None:
        return None
    from hitl_tui.loading.sources import source_file

    path = source_file(session.info.source)
    return GraphFileWatch(session, path, build, emit=emit) if path else None


async def repeats_under(session: Session, graph: CompiledGraph) -> Repeats | None:
    """Return which steps of a thread are valid under a graph; None if none of the thread is kept."""
    from hitl_tui.engine.audit.rerun import rerun_plan

    if session.store is None or session.cursor.head < 0:
        return None
    return await asyncio.to_thread(rerun_plan, session.store, session.cursor, graph)


def graph_notice(session: Session, old: CompiledGraph) -> str:
    """Return a notice about an unfinished thread that continues with another graph than it ran on.

    `old` is the graph in the log.
    """
    done = session.cursor.status in ("completed", "cancelled")
    if session.store is None or session.cursor.head < 0 or done or old.digest in ("", session.graph.digest):
        return ""
    from hitl_tui.loading.compatibility import OTHER_CODE, OTHER_GRAPH

    words = "; ".join(difference.words for difference in _differences(session, old, session.graph))
    if words:
        return f"{OTHER_GRAPH}: {words}"
    # Digests of code can't be compared across versions of Python.
    return OTHER_CODE if old.info.python == session.graph.info.python else ""


def _differences(session: Session, old: CompiledGraph, new: CompiledGraph) -> list[Difference]:
    """Return the differences between a graph and the one on which the thread ran, as far as the log knows."""
    from hitl_tui.loading.compatibility import differences

    known = old.info if old.digest else session.info
    return differences(known, new.info, session.cursor, session.state.values)


def _beside(path: Path) -> set[Path]:
    """Return the files in a graph's directory of which it may consist."""
    try:
        return {neighbour for neighbour in path.parent.iterdir() if neighbour.suffix in (".py", ".toml")}
    except OSError:
        return set()


def _stamp(path: Path) -> Stamp | None:
    """Return a value that changes when a file is saved."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
