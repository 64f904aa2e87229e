"""Opens the store that a command works on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hitl_tui.cli.langgraph import names_langgraph, open_langgraph_store
from hitl_tui.errors import NoSuchStore, StoreUnusable, UsageError
from hitl_tui.given_files import expanded

if TYPE_CHECKING:
    from hitl_tui.cli.langgraph import Part
    from hitl_tui.config import Settings
    from hitl_tui.stores import Checkpointer


def open_for_writing(settings: Settings) -> Checkpointer:
    """Open the store of the settings; create it if necessary, with the directory of the default one.

    Raises:
        UsageError: the URL names no store.
        StoreUnusable: it can't be opened.
    """
    from hitl_tui.stores import open_store
    from hitl_tui.stores.files.directory import make_directories

    if names_langgraph(settings.store):
        raise UsageError(
            f"{settings.store} keeps threads of LangGraph alone", "name another store with --store"
        )
    if settings.origins["store"] == "default":
        folder = Path(settings.store.removeprefix("sqlite:///")).parent
        try:
            make_directories(folder)
        except OSError as error:
            raise StoreUnusable(
                f"{folder} can't be made: {error.strerror}", "name another store with --store"
            ) from None
    return open_store(settings.store, settings.durability)


def open_existing(settings: Settings, *, part: Part = "all", thread: str | None = None) -> Checkpointer:
    """Open the store of the settings, which must exist: reading a store never creates one.

    Args:
        part, thread: as for `open_langgraph_store`.

    Raises:
        NoSuchStore: there is no such file, or no table.
        UsageError: the URL names no store.
        StoreUnusable: it can't be opened.
    """
    from hitl_tui.stores import open_store

    if names_langgraph(settings.store):
        return open_langgraph_store(settings, part, thread)
    path = store_path(settings)
    if path is not None and not _is_there(path):
        if path.is_symlink():
            raise NoSuchStore(
                f"the store {path} is a link to {path.readlink()}, which does not exist", "repair the link"
            )
        raise NoSuchStore(f"there is no store {path}", _missing_hint(settings))
    return open_store(settings.store, settings.durability, create=False)


def open_if_made(settings: Settings, *, part: Part = "all") -> Checkpointer | None:
    """Open the store of the settings; return None if it does not exist yet, unless it was named.

    Raises: as `open_existing`.
    """
    try:
        return open_existing(settings, part=part)
    except NoSuchStore:
        if settings.origins["store"] == "flag":
            raise
        return None


def open_or_empty(settings: Settings) -> Checkpointer:
    """Open as `open_if_made`; return an empty store in memory if none exists yet."""
    from hitl_tui.stores import MemoryCheckpointer

    return open_if_made(settings) or MemoryCheckpointer()


def _is_there(path: Path) -> bool:
    """Whether the path exists; if that can't be checked, opening it reports why."""
    try:
        return os.path.exists(path)
    except OSError:
        return True


def _missing_hint(settings: Settings) -> str:
    origin = settings.origins["store"]
    if origin == "default":
        return "`hitl-tui demo` makes it"
    return "check --store" if origin == "flag" else f"{origin} names it; `hitl-tui demo` makes it"


def store_path(settings: Settings) -> Path | None:
    """Return the file or directory of the store, None for one in memory or on a server.

    Raises:
        UsageError: the URL names no store.
    """
    from hitl_tui.stores.opening import is_server, store_place

    if settings.store == "memory:" or is_server(settings.store):
        return None
    return expanded(store_place(settings.store))
