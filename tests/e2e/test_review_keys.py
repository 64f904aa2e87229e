"""Reviewing 41 requests of all kinds in a real terminal: how many keys the common tasks take."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from tests.support import rich_queue
from tests.support.program import APP, call
from tests.support.rich_queue import TWELVE, Asking
from tests.support.terminal import Terminal

ALIKE = tuple(Asking(f"memo-{number}", "review", 1 + number / 10) for number in range(12))
OTHERS = tuple(Asking(f"plan-{number}", "planner", 200 + number) for number in range(18))


@pytest.fixture
def desk(isolated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store in which 41 threads wait, 12 of them alike."""
    path = tmp_path / "desk.db"
    store = SQLiteCheckpointer(path)
    rich_queue.fill(store, (*(one for one in TWELVE if one.graph != "review"), *ALIKE, *OTHERS))
    store.close()
    monkeypatch.setenv("HITL_TUI_STORE", str(path))
    return path


def statuses(path: Path) -> dict[str, str]:
    store = SQLiteCheckpointer(path)
    found = {row.info.thread_id: row.status for row in store.threads()}
    store.close()
    return found


class Keys:
    """Presses keys, and counts them; typed words count apart."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.count = 0

    def press(self, *keys: str) -> None:
        for key in keys:
            self.count += 1
            self.terminal.press(key)

    def press_until(self, key: str, wanted: str) -> None:
        """Press a key once the card, which has just appeared, takes it."""
        self.count += 1
        self.terminal.press_until(key, wanted)

    def type(self, words: str) -> None:
        self.terminal.press(*words)


def test_twelve_of_41_alike_are_approved_with_at_most_eight_keys(desk: Path) -> None:
    with Terminal([*APP]) as terminal:
        terminal.wait_for("41 threads")
        keys = Keys(terminal)
        keys.press("w")
        terminal.wait_for("41 WAIT FOR YOU")
        keys.press("end", "=")
        terminal.wait_for("12 marked")
        keys.press("a")
        terminal.wait_for("12 would be decided")
        keys.press("enter")
        terminal.wait_for("12 decided")
        assert keys.count <= 8
        alike = {one.thread for one in ALIKE}
        terminal.wait_until(
            lambda: all(status == "completed" for name, status in statuses(desk).items() if name in alike),
            "twelve threads to continue",
        )


def open_review(terminal: Terminal) -> Keys:
    """Wait for the card of the first request that the filter leaves."""
    terminal.wait_for_words("Is this draft good enough?", "undoes it")
    return Keys(terminal)


REVIEW = [*APP, "review", "--filter", "graph:review"]


def completed(desk: Path) -> set[str]:
    return {name for name, status in statuses(desk).items() if status == "completed"}


def test_one_is_approved_with_two_keys(desk: Path) -> None:
    with Terminal(REVIEW) as terminal:
        keys = open_review(terminal)
        keys.press_until("a", "sending “approve”")
        keys.press("n")
        assert keys.count <= 2
        terminal.wait_until(lambda: len(completed(desk)) == 1, "the approved thread to continue")


def test_one_is_sent_back_with_three_keys_and_the_words(desk: Path) -> None:
    with Terminal(REVIEW) as terminal:
        keys = open_review(terminal)
        keys.press("r")
        keys.type("Shorter.")
        terminal.wait_for("Shorter.")
        keys.press("enter", "enter")
        assert keys.count <= 3
        terminal.wait_until(
            lambda: '"Shorter."' in call("decisions", "--json").stdout, "the reason to be in the store"
        )


def test_one_is_edited_and_approved_with_four_keys_and_the_edit(desk: Path) -> None:
    with Terminal(REVIEW) as terminal:
        keys = open_review(terminal)
        keys.press("e")
        terminal.wait_for("Apply")
        keys.type("New: ")
        terminal.wait_for("New: ")
        keys.press("ctrl+s")
        terminal.wait_for_words("New: A memo", "undoes it")
        keys.press_until("a", "sending “approve”")
        keys.press("n")
        assert keys.count <= 4
        terminal.wait_until(lambda: len(completed(desk)) == 1, "the approved thread to continue")


def test_a_decision_is_found_by_a_word_of_its_text_with_six_keys_and_the_word(desk: Path) -> None:
    name = ALIKE[3].thread
    assert call("approve", name, "--note", "fine").returncode == 0
    with Terminal([*APP]) as terminal:
        terminal.wait_for("41 threads")
        keys = Keys(terminal)
        keys.press("ctrl+d", "/")
        keys.type("memos")
        terminal.wait_for("1 decision")
        keys.press("enter", "enter")
        assert keys.count <= 6
        terminal.wait_for_words(name, "A memo about memos.")
