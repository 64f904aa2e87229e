"""A store of each kind, and one writer on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hitl_tui.stores import Checkpointer, SQLiteCheckpointer, open_store
from tests.stores.log_writer import Writer


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checkpointer]:
    opened = open_store("memory:" if request.param == "memory" else str(tmp_path / "runs.db"))
    yield opened
    opened.close()


@pytest.fixture
def writer(store: Checkpointer) -> Writer:
    return Writer(store)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def sqlite(path: Path) -> Iterator[SQLiteCheckpointer]:
    opened = SQLiteCheckpointer(path)
    yield opened
    opened.close()
