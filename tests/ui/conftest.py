"""What tests of screens need: the snapshot plug-in's directory, and stores that are closed behind them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from hitl_tui import SQLiteCheckpointer


@pytest.fixture(autouse=True)
def stores_closed(isolated: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close each store that a test has opened, after its app has ended."""
    opened: list[SQLiteCheckpointer] = []
    begin = SQLiteCheckpointer.__init__

    def noted(store: SQLiteCheckpointer, *arguments: Any, **options: Any) -> None:
        begin(store, *arguments, **options)
        opened.append(store)

    monkeypatch.setattr(SQLiteCheckpointer, "__init__", noted)
    yield
    for store in opened:
        store.close()


@pytest.fixture(autouse=True)
def snapshot_directory(
    isolated: object, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The plug-in finds its directory through the environment, which isolation has cleared."""
    directory = getattr(request.config, "_hitl_snapshot_directory", "")
    if directory:
        monkeypatch.setenv("TEXTUAL_SNAPSHOT_TEMPDIR", directory)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Remember the directory before the first test clears the environment."""
    session.config._hitl_snapshot_directory = os.environ.get("TEXTUAL_SNAPSHOT_TEMPDIR", "")  # type: ignore[attr-defined]
