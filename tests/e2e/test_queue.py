"""Twelve threads that wait, each in another way, from the shell: how few keys find and decide them.

`-s` shows the figures; what a wrong key costs is in `tests/ui/test_wrong_keys.py`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.stores import open_store
from tests.support import reviewed_flow, rich_queue
from tests.support.places import ROOT
from tests.support.program import APP, call
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


class Fingers:
    """Presses keys, and counts them."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.pressed: list[str] = []

    def press(self, key: str, until: str) -> None:
        """Press a key, and wait for what it leads to."""
        self.pressed.append(key)
        self.terminal.press(key)
        self.terminal.wait_for(until)

    def took_at_most(self, wanted: int, what: str) -> None:
        """Say how many keys something took; fails where that is more than is wanted."""
        print(f"{what}: {len(self.pressed)} keys ({' '.join(self.pressed)}), at most {wanted} wanted")
        assert len(self.pressed) <= wanted


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (200, 60)], ids=["120x40", "80x24", "200x60"])
def test_the_most_urgent_of_twelve_is_found_and_open_with_its_card_within_three_keys(
    twelve: Path, size: tuple[int, int]
) -> None:
    with Terminal([*APP], size=size) as terminal:
        terminal.wait_for("12 threads")
        fingers = Fingers(terminal)
        fingers.press("w", "12 WAIT FOR YOU")
        terminal.wait_for(rich_queue.MOST_URGENT)
        fingers.press("enter", "publish them")
        terminal.wait_for("1 of 12")
        fingers.took_at_most(3, "the most urgent of twelve, open with its card")


def test_review_opens_the_most_urgent_with_its_card(twelve: Path) -> None:
    with Terminal([*APP, "review"]) as terminal:
        terminal.wait_for_words("Publish the quarterly numbers?", "publish them", "press the key twice")
        terminal.press("q")


def test_nine_of_twelve_are_decided_within_ten_keys_and_continue(twelve: Path) -> None:
    with Terminal([*APP]) as terminal:
        terminal.wait_for("12 threads")
        fingers = Fingers(terminal)
        fingers.press("w", "12 WAIT FOR YOU")
        terminal.wait_for("blog-windows")
        fingers.press("*", "12 marked")
        fingers.press("a", "9 would be decided, 3 not")
        assert statuses(twelve) == dict.fromkeys(statuses(twelve), "waiting")
        fingers.press("enter", "9 decided")
        fingers.took_at_most(10, "nine of twelve decided")
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


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
@pytest.mark.parametrize("colours", [{}, {"NO_COLOR": "1"}], ids=["colours", "none"])
def test_two_words_changed_in_a_paragraph_of_two_hundred_are_on_the_card_without_scrolling(
    twelve: Path, size: tuple[int, int], colours: dict[str, str]
) -> None:
    call("run", str(reviewed_flow.__file__), "--headless", "--thread", "closure")
    assert len(reviewed_flow.NEW.split()) == 201
    with Terminal([*APP, "resume", "closure"], size=size, env=colours) as terminal:
        terminal.wait_for("WAITING")
        fingers = Fingers(terminal)
        fingers.press("d", "Is it good?")
        terminal.wait_for("2 words changed since step 1")
        changed = "[-word120-] {+packed lunch+}" if colours else "word120 packed lunch"
        terminal.wait_for(changed)
        fingers.took_at_most(1, f"two words of two hundred on screen at {size[0]}x{size[1]}")


ASKS = """
import sys, time
from hitl_tui.stores import open_store
from tests.support import rich_queue
store = open_store(sys.argv[1])
for line in sys.stdin:
    rich_queue.fill(store, (rich_queue.Asking(line.strip(), "review", 1),))
    print(time.time(), flush=True)
"""


@pytest.mark.parametrize("kind", ["sqlite", "files", "postgres"])
def test_a_request_from_another_process_is_on_screen_within_two_seconds(
    kind: str, isolated: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    own = f"{kind}:///{tmp_path / 'store'}"
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else own
    store = open_store(url)
    rich_queue.fill(store)
    store.close()
    command = [sys.executable, "-c", ASKS, url]
    took: list[float] = []
    other = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        with Terminal([*APP, "--store", url], size=(120, 60)) as terminal:
            terminal.wait_for("12 threads")
            terminal.press("w")
            terminal.wait_for("12 WAIT FOR YOU")
            assert other.stdin is not None
            assert other.stdout is not None
            for name in ("new-one", "new-two", "new-three"):
                other.stdin.write(f"{name}\n")
                other.stdin.flush()
                committed = float(other.stdout.readline())
                terminal.wait_for(name)
                took.append(time.time() - committed)
    finally:
        other.kill()
        other.communicate()
    print(f"{kind}: on screen {', '.join(f'{seconds:.2f}' for seconds in took)} s after the commit")
    assert min(took) < 2  # a machine that is busy with others may be late with one of them


def test_the_store_may_be_named_without_a_command(twelve: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HITL_TUI_STORE")
    with Terminal([*APP, "--store", str(twelve)]) as terminal:
        terminal.wait_for("12 threads")
