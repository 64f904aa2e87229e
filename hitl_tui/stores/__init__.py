"""Stores of threads: in memory, in one SQLite file or in a directory of JSON files.

The stores are loaded on first use, so that importing the package loads no database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hitl_tui.stores.base import Checkpointer
    from hitl_tui.stores.files.store import FileCheckpointer
    from hitl_tui.stores.memory import MemoryCheckpointer
    from hitl_tui.stores.opening import open_store
    from hitl_tui.stores.sqlite.store import SQLiteCheckpointer

__all__ = ["Checkpointer", "FileCheckpointer", "MemoryCheckpointer", "SQLiteCheckpointer", "open_store"]

_HOMES = {
    "Checkpointer": "hitl_tui.stores.base",
    "FileCheckpointer": "hitl_tui.stores.files.store",
    "MemoryCheckpointer": "hitl_tui.stores.memory",
    "SQLiteCheckpointer": "hitl_tui.stores.sqlite.store",
    "open_store": "hitl_tui.stores.opening",
}


if not TYPE_CHECKING:  # otherwise a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
