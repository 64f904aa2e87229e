"""A store of each kind: what a map or a subgraph leaves behind is the same in all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hitl_tui import FileCheckpointer, MemoryCheckpointer, SQLiteCheckpointer
from hitl_tui.stores import Checkpointer

KINDS: dict[str, Callable[[Path], Checkpointer]] = {
    "memory": lambda _: MemoryCheckpointer(),
    "files": lambda place: FileCheckpointer(place / "runs"),
    "sqlite": lambda place: SQLiteCheckpointer(place / "runs.db"),
}


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checkpointer]:
    opened = KINDS[request.param](tmp_path)
    yield opened
    opened.close()
