"""A store of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hitl_tui.stores import Checkpointer, open_store


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checkpointer]:
    opened = open_store("memory:" if request.param == "memory" else str(tmp_path / "runs.db"))
    yield opened
    opened.close()
