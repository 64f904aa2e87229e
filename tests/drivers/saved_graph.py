"""The files of a graph, which are saved again while a thread of it is open."""

from __future__ import annotations

from pathlib import Path

from hitl_tui import SQLiteCheckpointer
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.commands import Start
from hitl_tui.loading.sources import open_graph, reopen_graph
from tests.support.watching import Watcher


def save(path: Path, text: str) -> None:
    """Save a file as editors do, and at once: a look between would tell of a half one."""
    if not path.exists() or path.read_text() != text:
        temporary = path.with_suffix(".new")
        temporary.write_text(text)
        temporary.replace(path)


class SavedGraph:
    """A graph in a file, another file that it imports, and a store.

    Args:
        file, helper: the texts of both, by their paths.
    """

    def __init__(self, file: tuple[Path, str], helper: tuple[Path, str]) -> None:
        (self.file, graph), (self.helper, text) = file, helper
        save(self.helper, text)
        save(self.file, graph)
        self.store = SQLiteCheckpointer(self.file.parent / "runs.db")
        self.hub = self.hub_again()

    def hub_again(self) -> LocalHub:
        """A hub as another process would have it."""
        return LocalHub(self.store, lambda info: reopen_graph(info.thread_id, info.source, self.store))

    async def started(self) -> Watcher:
        """A thread at its input."""
        runner = open_graph(str(self.file), self.store)
        watcher = await Watcher.open(await self.hub.new("t", runner, source=runner.source))
        await watcher.driver.execute(Start({}))
        return watcher
