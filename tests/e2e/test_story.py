"""The whole story in a real terminal: step, overrule, edit, quit, resume elsewhere, fork, approve, finish."""

from __future__ import annotations

from pathlib import Path

from hitl_tui import SQLiteCheckpointer
from hitl_tui.engine.thread.rebuild import state_at
from tests.support.program import APP
from tests.support.spec import spec
from tests.support.terminal import Terminal

pytestmark = spec("11")

WORDS = "Use a garden instead."
BY_HAND = "Set by hand. "


def first_session() -> str:
    """Step, overrule to revise, edit the draft, quit; returns the thread's name."""
    with Terminal([*APP, "demo", "--pace", "0"]) as terminal:
        terminal.wait_for("worker is next")
        terminal.press("s")
        terminal.wait_for("advisor is next")
        terminal.press("s")
        terminal.wait_for("WAITING")

        terminal.press("d")
        terminal.wait_for("Your answer")
        terminal.press_until("r", "say what to change")
        terminal.press(WORDS, "enter")
        terminal.press_until("enter", "send it now")
        terminal.press("enter")
        terminal.wait_for("revise by tester")
        terminal.wait_for("worker is next")
        terminal.press("s")
        terminal.wait_for("advisor is next")

        terminal.press("e")
        terminal.wait_for("Saved as step 5")
        terminal.press(BY_HAND, "ctrl+s")
        terminal.wait_for("Channels at step 5")
        terminal.wait_for("advisor is next")
        terminal.press("q")
        assert terminal.wait_exit() == 3
        left = terminal.text()
    assert "continue with: hitl-tui resume demo-" in left
    return left.partition("hitl-tui resume ")[2].split()[0]


def second_session(thread: str) -> None:
    """Resume, fork the step before the edit, approve in the fork, go back and finish the parent."""
    with Terminal([*APP, "resume"]) as terminal:
        terminal.wait_for_words(thread, "step 5", BY_HAND.strip())
        terminal.press("[", "[", "[")
        terminal.wait_for("Step 2 of 5")
        terminal.press("f")
        terminal.wait_for(f"{thread}-b")
        terminal.press("enter", "enter")
        terminal.wait_gone("name of the new thread")
        terminal.wait_for("WAITING")

        terminal.press("d")
        terminal.wait_for("Your answer")
        terminal.press_until("a", "send it now")
        terminal.press("enter")
        terminal.wait_for("approve by tester")
        terminal.wait_for("DONE")
        terminal.press("t")
        terminal.wait_for("search")
        terminal.press("q")
        terminal.press("q")
        assert terminal.wait_exit() == 0


def third_session(thread: str) -> None:
    """Resume the parent in yet another process, and agree with the advisor on the edited draft."""
    with Terminal([*APP, "resume", thread]) as terminal:
        terminal.wait_for("advisor is next")
        terminal.press("c")
        terminal.wait_for("WAITING")
        terminal.press("d")
        terminal.wait_for("Your answer")
        terminal.press_until("enter", "send it now")
        terminal.press("enter")
        terminal.wait_for("DONE")
        terminal.press("q")
        assert terminal.wait_exit() == 0


def test_the_whole_story(isolated: Path) -> None:
    thread = first_session()
    second_session(thread)
    third_session(thread)

    store = SQLiteCheckpointer(isolated / "data" / "hitl-tui" / "threads.db")
    parent, fork = store.info(thread), store.info(f"{thread}-b")
    assert parent is not None
    assert fork is not None
    assert (fork.parent, fork.fork_step) == (thread, 2)
    assert parent.source["graph"] == "hitl_tui.workflows.demo:build"

    points = {point.step: point for point in store.checkpoints(thread, None, 50)}
    assert [points[step].source for step in range(6)] == ["input", "node", "node", "human", "node", "human"]
    assert (points[3].actor, points[5].actor) == ("tester", "tester")
    assert state_at(store, thread, 3)["advisor_feedback"] == WORDS
    assert state_at(store, thread, 5)["latest_draft"].startswith(BY_HAND)
    for name in (thread, fork.thread_id):
        cursor = store.cursor(name)
        assert cursor is not None
        assert cursor.status == "completed"
    assert {entry.actor for entry in store.ledger(fork.thread_id) if entry.kind == "answer"} == {"tester"}
    store.close()
