"""The kinds of stores for tests of what runs on a store.

The engine does the same on every store: tests/stores checks that all of them keep one contract.  So its tests
run once, on SQLite, where values are written and read back.  `pytest -m slow` repeats tests of decisions and
agents on files; many other tests use the memory store.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hitl_tui.stores import Checkpointer, open_store

KINDS = [
    "sqlite",
    pytest.param("files", marks=pytest.mark.slow),
]


def new_store(kind: str, directory: Path) -> Checkpointer:
    """Open a new store of this kind in a directory; its commits do not wait for the disk."""
    urls = {"memory": "memory:", "sqlite": str(directory / "runs.db"), "files": f"files:{directory / 'runs'}"}
    return open_store(urls[kind], "none")
