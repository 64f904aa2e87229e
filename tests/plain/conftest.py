from __future__ import annotations

from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from tests.plain.talker import Talker
from tests.support import rich_queue
from tests.support.commands import App


@pytest.fixture
def talk(app: App, monkeypatch: pytest.MonkeyPatch) -> Talker:
    return Talker(app, monkeypatch)


@pytest.fixture
def twelve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store in which twelve threads wait, as the setting names it."""
    path = tmp_path / "twelve.db"
    store = SQLiteCheckpointer(path)
    rich_queue.fill(store)
    store.close()
    monkeypatch.setenv("HITL_TUI_STORE", str(path))
    return path
