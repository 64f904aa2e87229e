"""A graph inside a graph in a real terminal: the inner one asks, and is answered from the outer one."""

from __future__ import annotations

from pathlib import Path

from hitl_tui import SQLiteCheckpointer
from tests.support.places import SAMPLES
from tests.support.program import APP
from tests.support.spec import spec
from tests.support.terminal import Terminal

pytestmark = spec("7")

DESK = str(SAMPLES / "desk.py")


def test_a_subgraph_thread_is_viewed_and_answered_from_its_parent(isolated: Path) -> None:
    with Terminal([*APP, "run", DESK, "--thread", "d"]) as terminal:
        terminal.wait_for("READY")
        terminal.press("s")
        terminal.wait_for("Print this?")
        terminal.press("I")
        terminal.wait_for("d › editor#1")
        terminal.wait_for("inside editor of d")
        terminal.press("escape")
        terminal.wait_gone("inside editor of d")
        terminal.press("d")
        terminal.wait_for("node draft of thread d/editor#1")
        terminal.press_until("a", "send it now")
        terminal.press("enter")
        terminal.wait_for("PAUSED")
        terminal.press("c")
        terminal.wait_for("DONE")
        terminal.press("q")
        assert terminal.wait_exit() == 0
    store = SQLiteCheckpointer(isolated / "data" / "hitl-tui" / "threads.db")
    cursors = [store.cursor(name) for name in ("d", "d/editor#1")]
    assert [cursor.status for cursor in cursors if cursor] == ["completed", "completed"]
    store.close()
