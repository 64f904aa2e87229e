"""A thread with a damaged log, as far as it can be read, for a page that reports the damage."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from hitl_tui.drivers.reading import PAGE, LoggedView, updates
from hitl_tui.engine.graph.description import GraphInfo
from hitl_tui.engine.log.events import PRIVATE, AppliedUpdate
from hitl_tui.engine.log.records import Checkpoint, Cursor, LedgerEntry
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.nodes.children import readable_checkpoints
from hitl_tui.engine.thread.logged import LoggedThread, defaults_of, logged_graph
from hitl_tui.engine.thread.rebuild import Decoded, state_at
from hitl_tui.engine.thread.run_inputs import shown_ledger
from hitl_tui.errors import LogCorrupt, UnknownThread

_Read = TypeVar("_Read")


class DamagedThread(LoggedView):
    """A thread that is read without checks; nothing is written, built or run.

    Parts that can't be read are left out and named in `unreadable`. Whether a value is private may have
    been changed too, so only values of channels that its graph declares public are returned.

    Args:
        store: its store; it stays open.
    """

    def __init__(self, store: Store, thread_id: str) -> None:
        self._store = store
        self._decoded = Decoded()
        self.unreadable: dict[str, str] = {}
        read_cursor = self._read("position", lambda: store.cursor(thread_id, unchecked=True))
        cursor = read_cursor or Cursor(thread_id)
        unknown = ThreadInfo(thread_id, "", "", {}, None, -1, 0, cursor.created_at)
        info = self._read("fixed facts", lambda: store.info(thread_id)) or unknown
        graph = self._read("graph", lambda: logged_graph(store, info, cursor))
        # Without its graph nobody knows which channels are private.
        self._has_graph = graph is not None and cursor.version > 0
        declared = graph if graph and self._has_graph else GraphInfo(info.graph_name, (), (), (), ())
        values = defaults_of(declared)
        if cursor.head >= 0:
            read = self._read("state", lambda: state_at(store, thread_id, cursor.head, values))
            values = read or {}
        self.logged = LoggedThread(info, cursor, declared, values)

    @property
    def hides_values(self) -> bool:
        """Whether some of its channels may be private."""
        return not self._has_graph or super().hides_values

    def ledger(self) -> tuple[LedgerEntry, ...]:
        """Return its decisions, oldest first, from the first one after the last unreadable one."""
        unreadable, readable = -1, self.logged.cursor.ledger_n
        while readable - unreadable > 1:
            after = (readable + unreadable) // 2
            if self._ledger(after) is None:
                unreadable = after
            else:
                readable = after
        if readable:
            what = "decision 1" if readable == 1 else f"decisions 1 to {readable}"
            self._read(what, lambda: self._store.ledger(self.thread_id, readable - 1))
        return tuple(shown_ledger(self._ledger(readable) or ()))

    def _ledger(self, after: int) -> list[LedgerEntry] | None:
        try:
            return self._store.ledger(self.thread_id, after)
        except LogCorrupt:
            return None

    def history(self, before: int | None = None, limit: int = PAGE) -> tuple[Checkpoint, ...]:
        """Return readable checkpoints before a step (None: from the head), newest first."""
        points: list[Checkpoint] = []
        until = self.logged.cursor.head + 1 if before is None else before
        while until > 0 and len(points) < limit:
            page, until = readable_checkpoints(self._store, self.thread_id, until)
            points += page
        return tuple(points[:limit])

    def updates(self, first: int, last: int) -> dict[int, tuple[AppliedUpdate, ...]]:
        """Return the updates of each of the steps `first` to `last`; none for steps that can't be read."""

        def read() -> dict[int, tuple[AppliedUpdate, ...]]:
            return updates(self.logged, self._store, first, last, decoded=self._decoded)

        if first == last:
            applied = self._read(f"changes of step {first}", read) or {first: ()}
        else:
            try:
                applied = read()
            except (LogCorrupt, UnknownThread):
                middle = (first + last) // 2
                return self.updates(first, middle) | self.updates(middle + 1, last)
        public = {channel.name for channel in self.graph.channels if channel.visibility == "public"}
        return {
            step: tuple([update if update.channel in public else _masked(update) for update in some])
            for step, some in applied.items()
        }

    def _read(self, what: str, read: Callable[[], _Read]) -> _Read | None:
        """Return the result of a read; None if it fails, with the reason in `unreadable`."""
        try:
            return read()
        except (LogCorrupt, UnknownThread) as error:
            self.unreadable[what] = error.message
            return None


def _masked(update: AppliedUpdate) -> AppliedUpdate:
    return replace(update, visibility="private", before=PRIVATE, update=PRIVATE, after=PRIVATE)
