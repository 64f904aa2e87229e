"""A store of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hitl_tui.stores import Checkpointer, open_store


@pytest.fixture(params=["memory", "sqlite", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checkpointer]:
    urls = {
        "memory": "memory:",
        "sqlite": str(tmp_path / "runs.db"),
        "files": f"files:{tmp_path / 'runs'}",
    }
    opened = open_store(urls[request.param])
    yield opened
    opened.close()
