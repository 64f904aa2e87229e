"""Opens a store by what a user writes: `memory:`, `sqlite:///runs.db`, `postgresql://...` or just a path."""

from __future__ import annotations

import os
import re

from hitl_tui.engine.log.store import Durability
from hitl_tui.errors import UsageError
from hitl_tui.given_files import expanded
from hitl_tui.stores.base import Checkpointer, check_durability

_FORMS = (
    "write memory:, files:DIRECTORY, sqlite:///runs.db (sqlite:////var/runs.db for an absolute path) "
    "a plain path, or postgresql://user@host/database"
)
# At least two letters, so that the drive of C:\runs.db is not a scheme.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def open_store(url: str, durability: Durability = "decisions", *, create: bool = True) -> Checkpointer:
    """Open the store that a URL or a path names.

    A path that is a directory, or ends in a slash, is a files store; any other is a SQLite file, which is
    created if necessary.

    Args:
        durability: which commits survive a power cut.
        create: make the tables on a database server that has none yet.

    Raises:
        UsageError: the URL names no store, or there is no such durability.
        NoSuchStore: the database server has no tables.
        StoreUnusable: the store can't be opened.
        LogCorrupt: the store is damaged.
    """
    check_durability(durability)
    if url == "memory:":
        from hitl_tui.stores.memory import MemoryCheckpointer

        return MemoryCheckpointer()
    if is_server(url):
        try:
            from hitl_tui.stores.postgres.store import PostgresCheckpointer
        except ImportError as error:
            raise UsageError(
                "a store in PostgreSQL takes psycopg", "install hitl-tui[postgres], or name a file"
            ) from error
        return PostgresCheckpointer(url, durability, create=create)
    path = store_place(url)
    if url.startswith("files:") or (path == url and _is_directory(path)):
        from hitl_tui.stores.files.store import FileCheckpointer

        return FileCheckpointer(path, durability)
    from hitl_tui.stores.sqlite.store import SQLiteCheckpointer

    return SQLiteCheckpointer(path, durability)


def is_server(url: str) -> bool:
    """Whether a URL names a store on a database server."""
    return url.startswith(("postgresql://", "postgres://"))


def without_password(url: str) -> str:
    """Return the URL of a store without its password."""
    return re.sub(r"^(postgres(?:ql)?://[^:/@]*):.*@|([?&]password=)[^&]*", _kept, url)


def _kept(secret: re.Match[str]) -> str:
    return f"{secret[1]}@" if secret[1] else secret[2]


def store_place(url: str) -> str:
    """Return the path in the URL of a store that is kept in files, as written.

    Raises:
        UsageError: the URL names no store.
    """
    files, path = url.removeprefix("files:"), url.removeprefix("sqlite:///")
    if files == path:
        _refuse_other_urls(url)
    if not files or not path:
        raise UsageError(f"{url!r} names no file", _FORMS)
    return files if files != url else path


def _is_directory(path: str) -> bool:
    return path.endswith(("/", os.sep)) or expanded(path).is_dir()


def _refuse_other_urls(url: str) -> None:
    if url in (":memory:", "memory"):
        raise UsageError(f"{url!r} is not a store", "write memory: for a store that ends with the process")
    if url.startswith("sqlite:"):
        raise UsageError(f"{url!r} is not a SQLite URL", _FORMS)
    if scheme := _SCHEME.match(url):
        hint = f"{_FORMS}; for a file of that name write ./{url}"
        raise UsageError(f"there is no store of the kind {scheme[0]!r} (in {url!r})", hint)
