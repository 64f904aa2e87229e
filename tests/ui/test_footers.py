"""The keys in the last row can be read at 80x24: whole labels, and those that a screen is for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.verbs.actions import ALL_ACTIONS
from hitl_tui.view.cells import cells
from tests.support import rich_queue
from tests.ui.harness import Clock, Screen
from tests.ui.test_queue import queue

_ELSEWHERE = frozenset(
    {"All threads", "Policy", "Steps", "palette", "Decide the 1 marked", "Select"}
    | {"By channel", "Scroll", "Page"}
)
"""What bars call an action, or two, where it isn't the action's own label."""


@pytest.fixture
def twelve(tmp_path: Path) -> SQLiteCheckpointer:
    store = SQLiteCheckpointer(tmp_path / "runs.db")
    rich_queue.fill(store)
    return store


def read(it: Screen) -> dict[str, str]:
    """What the last row says: a label for each key, none of them cut."""
    row = it.text().splitlines()[-1]
    assert cells(row) <= 80
    entries = [entry.strip(" │") for entry in re.split(r" {2,}|│", row) if entry.strip(" │")]
    label_by_key = dict[str, str]()
    labels = {action.label for action in ALL_ACTIONS} | _ELSEWHERE
    for entry in entries:
        label = next((label for label in labels if entry.endswith(f" {label}")), "")
        assert label, f"{entry!r} is no key with a whole label: {row}"
        label_by_key[label] = entry.removesuffix(label).strip()
    return label_by_key


@pytest.mark.slow
async def test_each_key_of_each_screen_can_be_read_at_80x24(twelve: SQLiteCheckpointer) -> None:
    async with queue(twelve, size=(80, 24)) as it:
        label_by_key = read(it)
        assert {"Open", "Mark", "Filter", "Policy", "Sort", "Claim", "Back"} <= set(label_by_key)
        assert label_by_key["Policy"] == "p"
        await it.press("space")
        await it.shows("a Decide the 1 marked")
        assert {"Open", "Mark", "Decide the 1 marked", "Back"} <= set(read(it))
        await it.press("w")
        await it.shows("Threads", "12 threads")
        assert {"Open", "Waiting", "Search", "New", "Mark", "Delete", "Back"} <= set(read(it))
        await it.press("f12")
        await it.shows("LARGEST PART")
        assert {"By channel", "Prune", "Vacuum", "Back"} <= set(read(it))
        await it.press("escape", "escape")
        await it.shows("palette")
        assert {"Decide", "Edit", "Break", "Help", "Quit", "palette"} <= set(read(it))


@pytest.mark.slow
async def test_each_key_of_the_card_can_be_read_at_80x24(twelve: SQLiteCheckpointer) -> None:
    async with queue(twelve, size=(80, 24), first="press-q3") as it:
        it.run.clock = Clock()
        await it.press("escape")
        await it.shows("palette")
        await it.press("d")
        await it.card_listens()
        assert {"Reason", "Comment", "Read", "Claim", "palette"} <= set(read(it))
