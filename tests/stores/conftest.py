"""A store of each kind, and one writer on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hitl_tui.stores import (
    Checkpointer,
    FileCheckpointer,
    MemoryCheckpointer,
    SQLiteCheckpointer,
    open_store,
)
from tests.stores.log_writer import Writer


@pytest.fixture(params=["memory", "sqlite", "files", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checkpointer]:
    urls = {"memory": "memory:", "sqlite": str(tmp_path / "runs.db"), "files": f"files:{tmp_path / 'runs'}"}
    # Whether commits wait for the disk is tested in test_power_cut.py; here they don't.
    opened = open_store(urls.get(request.param) or request.getfixturevalue("postgres_url"), "none")
    yield opened
    opened.close()


@pytest.fixture
def other(store: Checkpointer, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checkpointer]:
    """Where threads of `store` are carried to; each kind of store is the source once and the target once."""
    match store:
        case MemoryCheckpointer():
            url = str(tmp_path / "other.db")
        case SQLiteCheckpointer():
            url = f"files:{tmp_path / 'other'}"
        case FileCheckpointer():
            url = "memory:"
        case _:
            url = f"{request.getfixturevalue('postgres_url')}o"
    opened = open_store(url, "none")
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


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def files(root: Path) -> FileCheckpointer:
    return FileCheckpointer(root)
