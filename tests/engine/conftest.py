"""A store of each kind, where it matters which one keeps the thread."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hitl_tui import MemoryCheckpointer, SQLiteCheckpointer
from hitl_tui.stores import Checkpointer


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checkpointer]:
    opened = MemoryCheckpointer() if request.param == "memory" else SQLiteCheckpointer(tmp_path / "runs.db")
    yield opened
    opened.close()
