"""Last week's decision is found by a word in its text, in a real terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from tests.support import rich_queue
from tests.support.program import APP
from tests.support.rich_queue import Asking
from tests.support.terminal import Terminal

WEEK = 60 * 24 * 8
WANTED = 6
"""Most keys besides the word."""


@pytest.fixture
def week(isolated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store in which drafts were sent back a week ago and since; only one of them is about a phone book."""
    path = tmp_path / "week.db"
    store = SQLiteCheckpointer(path)
    rich_queue.fill(
        store, (Asking("blog-joins", "advisor", WEEK), Asking("recall-k2", "recall", 41, due=240))
    )
    store.close()
    monkeypatch.setenv("HITL_TUI_STORE", str(path))
    return path


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (200, 60)], ids=["120x40", "80x24", "200x60"])
def test_last_weeks_decision_is_found_by_a_word_of_its_text(week: Path, size: tuple[int, int]) -> None:
    keys = 0
    with Terminal([*APP], size=size) as terminal:
        terminal.wait_for("recall-k2")
        for key, until in (
            ("ctrl+d", "2 decisions"), ("/", "To the list"), ("phone", "1 decision "),
            ("enter", "enter Open"), ("enter", "Step 2 of 5"),
        ):  # fmt: skip
            terminal.press(key)
            keys += key != "phone"
            terminal.wait_for(until)
        terminal.wait_for("blog-joins")
    assert keys <= WANTED
