"""The files of an open thread's graph: when one was saved, what of the thread still fits, and a reload."""

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
"""Seconds between looks at the file: at every second or fourth of those at the store."""


def until_next(every: float) -> float:
    """Seconds to the next multiple of `every` on the loop's clock: what looks now and then looks together."""
    return every - asyncio.get_running_loop().time() % every


class GraphFileWatch:
    """Follows the files that the graph of an open thread is built from: its own, and those it loads.

    A graph that can't be loaded is looked for in all files beside it: any of them may be what was wrong.

    Attributes:
        changed: what is different since the file was saved, in words; None while it is as it was loaded.
        graph: the graph as it was saved, None where that can't be built, or nothing was saved.
        repeats: which steps of the thread stand under it, and what would run again.
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
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(until_next(EVERY))
            try:
                await self.look()
            except Exception:  # from the store or the user's code; the next look may succeed
                log.exception("thread %s: can't check the files of its graph", self._session.thread_id)

    async def look(self) -> None:
        """Tell when the file was saved and what then differs, once as long as that stays the same."""
        async with self._one_looks:
            await self._look()

    async def _look(self) -> None:
        stamps = self._stamps()
        # What a graph that works has loaded since is no news; what a broken one lacked is.
        known = self._seen if self._broken else {**stamps, **self._seen}
        saved = any(known.get(path) != stamp for path, stamp in stamps.items())
        # Editors replace files: for a moment there is none, which is no news of it.
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
        # Only now: a look that fails leaves everything to the next one.
        is_news = (changed, repeats) != (self.changed, self.repeats)
        self.changed, self.graph, self.repeats, self._broken = changed, graph, repeats, broken
        self._judged_at = self._session.cursor.version
        self._seen = {**self._stamps(), **seen} if broken else seen
        # One save may be seen as several: of several files, or of one in several writes.
        if is_news:
            self._emit(GraphChanged(changed, repeats))

    async def _judge_again(self) -> None:
        """Tell what is kept under the saved graph now that the thread has moved on."""
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
        """Go on with the graph as it is in the file now; returns what is different, in words.

        Raises:
            GraphInvalid: it can't be built, or the thread can't go on with it as it stands.
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
        """The graph of the file; built in a thread of its own, since it runs the user's code."""

        from hitl_tui.loading.code import forget_code
        from hitl_tui.loading.modules import one_loads

        def load() -> CompiledGraph:
            with one_loads:
                forget_code(self._path.parent)
                return self._build(self._session.info).graph

        return await asyncio.to_thread(load)

    def _stamps(self) -> dict[Path, Stamp]:
        """All files that the graph is built from, each with what changes when it is saved."""
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
    """The file of a session's graph, None where it has none of the user's own."""
    if build is None:
        return None
    from hitl_tui.loading.sources import source_file

    path = source_file(session.info.source)
    return GraphFileWatch(session, path, build, emit=emit) if path else None


async def repeats_under(session: Session, graph: CompiledGraph) -> Repeats | None:
    """Which steps of a thread stand under a graph; None where it has none that is kept."""
    from hitl_tui.engine.audit.rerun import rerun_plan

    if session.store is None or session.cursor.head < 0:
        return None
    return await asyncio.to_thread(rerun_plan, session.store, session.cursor, graph)


def graph_notice(session: Session, old: CompiledGraph) -> str:
    """What to know of an unfinished thread that goes on with another graph than it ran on, in words.

    Args:
        old: the graph as the log has it.
    """
    done = session.cursor.status in ("completed", "cancelled")
    if session.store is None or session.cursor.head < 0 or done or old.digest in ("", session.graph.digest):
        return ""
    from hitl_tui.loading.compatibility import OTHER_CODE, OTHER_GRAPH

    words = "; ".join(difference.words for difference in _differences(session, old, session.graph))
    if words:
        return f"{OTHER_GRAPH}: {words}"
    # Digests of code tell nothing from one version of Python to the next.
    return OTHER_CODE if old.info.python == session.graph.info.python else ""


def _differences(session: Session, old: CompiledGraph, new: CompiledGraph) -> list[Difference]:
    """What is different in a graph from the one that the thread has run on; as far as the log knows that."""
    from hitl_tui.loading.compatibility import differences

    known = old.info if old.digest else session.info
    return differences(known, new.info, session.cursor, session.state.values)


def _beside(path: Path) -> set[Path]:
    """The files in a graph's directory that it may be made of."""
    try:
        return {neighbour for neighbour in path.parent.iterdir() if neighbour.suffix in (".py", ".toml")}
    except OSError:
        return set()


def _stamp(path: Path) -> Stamp | None:
    """What changes when a file is saved."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
