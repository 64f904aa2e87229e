"""Twelve threads that wait, each in another way, from the shell: how few keys find and decide them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from tests.support import rich_queue
from tests.support.program import APP
from tests.support.terminal import Terminal


@pytest.fixture
def twelve(isolated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store in which twelve threads wait."""
    path = tmp_path / "twelve.db"
    store = SQLiteCheckpointer(path)
    rich_queue.fill(store)
    store.close()
    monkeypatch.setenv("HITL_TUI_STORE", str(path))
    return path


def statuses(path: Path) -> dict[str, str]:
    store = SQLiteCheckpointer(path)
    found = {row.info.thread_id: row.status for row in store.threads()}
    store.close()
    return found


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
def test_the_most_urgent_of_twelve_is_open_with_its_card_after_two_keys(
    twelve: Path, size: tuple[int, int]
) -> None:
    with Terminal([*APP], size=size) as terminal:
        terminal.wait_for("12 threads")
        terminal.press("w")
        terminal.wait_for("12 WAIT FOR YOU")
        terminal.wait_for(rich_queue.MOST_URGENT)
        terminal.press("enter")
        terminal.wait_for("publish them")


def test_nine_of_twelve_are_decided_with_four_keys_and_go_on(twelve: Path) -> None:
    with Terminal([*APP]) as terminal:
        terminal.wait_for("12 threads")
        terminal.press("w")
        terminal.wait_for("12 WAIT FOR YOU")
        terminal.wait_for("blog-windows")
        terminal.press("*")
        terminal.wait_for("12 marked")
        terminal.press("a")
        terminal.wait_for("9 would be decided, 3 not")
        terminal.press("enter")
        terminal.wait_for("9 decided")
        terminal.wait_until(
            lambda: (
                {name for name, status in statuses(twelve).items() if status == "completed"}
                == rich_queue.APPROVABLE
            ),
            "nine threads to go on",
        )
        left = {name for name, status in statuses(twelve).items() if status == "waiting"}
        assert left == {"press-q3", "page-news", "order-7"}
        terminal.press("enter")
        terminal.wait_for("3 WAIT FOR YOU")
        terminal.press("escape", "q")


def test_the_store_may_be_named_without_a_command(twelve: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HITL_TUI_STORE")
    with Terminal([*APP, "--store", str(twelve)]) as terminal:
        terminal.wait_for("12 threads")
