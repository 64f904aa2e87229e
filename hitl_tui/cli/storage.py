"""Opening the store a command works on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hitl_tui.config import Settings
from hitl_tui.errors import StoreUnusable, UsageError

if TYPE_CHECKING:
    from hitl_tui.stores import Checkpointer


def open_for_writing(settings: Settings) -> Checkpointer:
    """The store of the settings; made, with the directory of the default one, where there is none.

    Raises:
        UsageError: the URL names no store.
        StoreUnusable: it can't be opened.
    """
    from hitl_tui.stores import open_store

    if settings.origins["store"] == "default":
        folder = Path(settings.store.removeprefix("sqlite:///")).parent
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnusable(
                f"{folder} can't be made: {error.strerror}", "name another store with --store"
            ) from None
    return open_store(settings.store)


def open_existing(settings: Settings) -> Checkpointer:
    """The store of the settings, which must be there: looking at a store never makes one.

    Raises:
        UsageError: there is no such file, or the URL names no store.
        StoreUnusable: it can't be opened.
    """
    from hitl_tui.stores import open_store

    path = store_path(settings)
    if path is not None and not path.exists():
        hint = "`hitl-tui demo` makes it" if settings.origins["store"] == "default" else "check --store"
        raise UsageError(f"there is no store {path}", hint)
    return open_store(settings.store)


def store_path(settings: Settings) -> Path | None:
    """The file or directory of the store, None for one in memory."""
    url = settings.store
    if url == "memory:":
        return None
    return Path(url.removeprefix("sqlite:///").removeprefix("files:")).expanduser()
