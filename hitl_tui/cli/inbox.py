"""Which stores the inbox has, and their waiting requests."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from hitl_tui.cli.invocation import given_stores
from hitl_tui.cli.langgraph import (
    CHECKPOINTS_SCHEME,
    GRAPH_SCHEME,
    SERVER_SCHEMES,
    names_langgraph,
    opened_graph,
    server_store,
    still_waiting,
)
from hitl_tui.cli.storage import open_existing, open_if_made, store_path
from hitl_tui.errors import HitlError, UsageError

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

    from hitl_tui.config import Settings
    from hitl_tui.drivers.hub import LocalHub
    from hitl_tui.drivers.protocol import Hub, SourceState
    from hitl_tui.engine.log.threads import Waiting
    from hitl_tui.stores import Checkpointer
    from hitl_tui.view.queue import QueueRow

_PATIENCE: Final = 5.0
"""Seconds to wait for slow sources where what is shown does not change by itself."""
_LOCAL: Final = "local"
"""Name of the default store, if nobody has named it."""


class InboxStore(msgspec.Struct, frozen=True):
    """One of the stores whose requests the queue shows.

    Args:
        settings: those of the session, with this store.
    """

    name: str
    settings: Settings

    @property
    def url(self) -> str:
        """The store, with a password if it has one."""
        return self.settings.store

    @property
    def shown_url(self) -> str:
        """The store without a password."""
        from hitl_tui.stores.opening import without_password

        return without_password(self.url)

    @property
    def option(self) -> str:
        """The option by which a suggested command finds the store."""
        return f" --store {shlex.quote(self.shown_url)}"

    @property
    def file(self) -> Path | None:
        """The file or directory of the store; None if it has none."""
        if self.url.startswith(CHECKPOINTS_SCHEME):
            return Path(self.url.removeprefix(CHECKPOINTS_SCHEME).partition("#")[0])
        return None if names_langgraph(self.url) else store_path(self.settings)


def inbox_stores(settings: Settings) -> tuple[InboxStore, ...]:
    """Return the stores of the inbox, () if the store of the settings is the only one.

    They are those of several --store; without --store those of [[inbox]] and the store of the settings.
    """
    given = given_stores()
    if len(given) > 1:
        return _named([("", _with(settings, url, "flag")) for url in given])
    if not settings.inbox or settings.origins["store"] == "flag":
        return ()
    found = []
    for each in settings.inbox:
        url = each.store or server_store(each.server, each.assistant or None)
        found.append((each.name, _with(settings, url, each.place)))
    if all(_place(store) != _place(settings) for _, store in found) and _is_used(settings):
        found.insert(0, (_LOCAL if settings.origins["store"] == "default" else "", settings))
    return _named(found)


def _with(settings: Settings, url: str, origin: str) -> Settings:
    return msgspec.structs.replace(settings, store=url, origins={**settings.origins, "store": origin})


def _is_used(settings: Settings) -> bool:
    """Whether somebody named the store, or the default one exists."""
    path = store_path(settings) if settings.origins["store"] == "default" else None
    return path is None or path.exists()


def _place(settings: Settings) -> str:
    """Return what tells a store from others, however its URL is written."""
    path = None if names_langgraph(settings.store) else store_path(settings)
    return settings.store if path is None else str(path.absolute())


def _named(stores: Sequence[tuple[str, Settings]]) -> tuple[InboxStore, ...]:
    """Return the stores, those without a name with one of their own."""
    taken = {name for name, _ in stores if name}
    named = []
    for given, settings in stores:
        first = given or name_of(settings.store)
        names = (first, *(f"{first} {number}" for number in range(2, len(stores) + 1)))
        name = given or next(free for free in names if free not in taken)
        taken.add(name)
        named.append(InboxStore(name, settings))
    return tuple(named)


def name_of(url: str) -> str:
    """Return a short name for a store: its file, its database, its graph, or the host of its server."""
    if url.startswith(SERVER_SCHEMES):
        server, _, assistant = url.partition("://")[2].partition("#")
        return f"{server.rpartition('@')[2].strip('/')} {assistant}".strip()
    whole = url.removeprefix(CHECKPOINTS_SCHEME).removeprefix(GRAPH_SCHEME).partition("?")[0]
    last = whole.rstrip("/").rpartition("/")[2] or whole
    return last if url.startswith(GRAPH_SCHEME) else last.removesuffix(".db").removesuffix(".sqlite") or url


def join_inbox(
    stores: Sequence[InboxStore],
    hub: LocalHub,
    opened: Checkpointer,
    settings: Settings,
    *,
    make_hub: Callable[[Checkpointer, InboxStore], LocalHub],
    connected: Callable[[str], object],
    is_live: bool,
) -> None:
    """Make the hub of an open store the home of an inbox of several stores; nothing for a single one.

    Args:
        settings: those with which the store was opened.
        make_hub: returns the hub over another open store.
        connected: called with the name of a source once the hub of `make_hub` is used.
        is_live: what is shown changes by itself, so nobody needs to wait for a slow source.
    """
    if not stores:
        return
    from hitl_tui.drivers.inbox import PATIENCE, SeveralSources, Source

    theirs = opened_graph(opened)
    own = settings if theirs is None else _with(settings, theirs.url, "flag")
    home = next((store for store in stores if _place(store.settings) == _place(own)), None)
    if home is None:
        others = [(store.name, store.settings) for store in stores]
        home, *stores = _named([("", own), *others])

    def source_of(store: InboxStore) -> Source:
        connect = partial(_connect, store, make_hub)
        return Source(store.name, store.shown_url, connect, store.file, partial(connected, store.name))

    sources = [source_of(store) for store in stores]
    if all(source.name != home.name for source in sources):
        sources.insert(0, source_of(home))
    SeveralSources(sources, home.name, hub, patience=PATIENCE if is_live else _PATIENCE)


async def _connect(store: InboxStore, make_hub: Callable[[Checkpointer, InboxStore], LocalHub]) -> Hub:
    """Open a store of the inbox; one that is open too late, because the session has ended, is closed."""
    import asyncio

    opening = asyncio.create_task(asyncio.to_thread(open_existing, store.settings, part="waiting"))
    try:
        opened = await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close_late)
        raise
    return make_hub(opened, store)


def _close_late(opening: asyncio.Task[Checkpointer]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def read_inbox(
    stores: Sequence[InboxStore], patience: float | None = None
) -> tuple[Sequence[QueueRow], tuple[SourceState, ...], int]:
    """Return the waiting requests of several stores, the state of each store, and the time.

    Args:
        patience: seconds to wait for all of them; then for the first one in which something waits. None
            waits for all of them as long as it takes.
    """
    from concurrent.futures import FIRST_COMPLETED, Future, wait

    from hitl_tui.drivers.protocol import SourceState
    from hitl_tui.engine.thread.session import now_us
    from hitl_tui.view.queue import rows_of

    readings: list[Future[Sequence[Waiting]]] = [Future() for _ in stores]
    for reading, store in zip(readings, stores, strict=True):
        # A server that does not answer must not keep the process alive.
        threading.Thread(target=_read, args=(store, reading), name=f"read {store.name}", daemon=True).start()
    late = wait(readings, patience).not_done
    while late and not any(map(_asks, readings)):
        late = wait(late, return_when=FIRST_COMPLETED).not_done
    rows: list[QueueRow] = []
    states = []
    for reading, store in zip(readings, stores, strict=True):
        state = SourceState(store.name, store.shown_url, "ready")
        if not reading.done():
            state = msgspec.structs.replace(state, status="connecting")
        elif isinstance(error := reading.exception(), HitlError):
            state = msgspec.structs.replace(state, status="unavailable", problem=error.message)
        else:
            named = (msgspec.structs.replace(each, source=store.name) for each in reading.result())
            rows += rows_of(named)
        states.append(state)
    return rows, tuple(states), now_us()


def _asks(reading: Future[Sequence[Waiting]]) -> bool:
    """Whether something waits in a store that was read."""
    return reading.done() and reading.exception() is None and bool(reading.result())


def _read(store: InboxStore, reading: Future[Sequence[Waiting]]) -> None:
    from hitl_tui.view.queue import MOST

    try:
        with closing(open_existing(store.settings, part="waiting")) as opened:
            reading.set_result(still_waiting(opened, opened.waiting(MOST)))
    except BaseException as error:
        reading.set_exception(error)


def first_with_threads(stores: Sequence[InboxStore]) -> InboxStore | None:
    """Return the first store of an inbox that can be read and has a thread; None if none has."""
    from hitl_tui.cli.langgraph import listed

    for store in stores:
        try:
            opened = open_if_made(store.settings, part="none")
        except UsageError:
            raise
        except HitlError:
            continue
        if opened is None:
            continue
        with closing(opened):
            if listed(opened, "", 1, None) or opened.threads(limit=1):
                return store
    return None
