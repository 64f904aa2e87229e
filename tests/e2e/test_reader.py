"""A text of 5,900 words in a real terminal: read, commented on in its middle, answered from the reader."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.engine.thread.comments import comments_of
from tests.support.newsroom import LONG
from tests.support.places import ROOT
from tests.support.program import APP
from tests.support.terminal import Terminal

FLOW = """
from tests.support.newsroom import LONG, newsroom

def build(checkpointer):
    return newsroom(LONG, store=checkpointer)
"""
TO_THE_MIDDLE = ("O", "g", "1", "2", "enter", "down", "c")


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (200, 60)], ids=["120x40", "80x24", "200x60"])
def test_a_comment_in_the_middle_takes_eight_keys_and_goes_with_the_answer(
    isolated: Path, tmp_path: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    flow, store = tmp_path / "flow.py", tmp_path / "runs.db"
    flow.write_text(FLOW)
    command = [*APP, "run", f"{flow}:build", "--store", str(store), "--thread", "t"]
    with Terminal(command, size=size) as terminal:
        terminal.wait_for("READY")
        terminal.press("c")
        terminal.wait_for("Publish this article?")
        terminal.wait_for("you are tester")
        assert len((*TO_THE_MIDDLE, "enter")) <= 8
        waits = ("page 1 of", "Headings", "1", "12", "page 12 of", "page 12 of", "Your comment")
        for key, until in zip(TO_THE_MIDDLE, waits, strict=True):
            terminal.press(key)
            terminal.wait_for(until)
        terminal.press("why so?", "enter")
        terminal.wait_for("not sent yet")
        terminal.press("a")
        terminal.wait_for("sending")
        terminal.press_until("enter", "about step 5")
    with closing(SQLiteCheckpointer(store)) as opened:
        entry = next(entry for entry in opened.ledger("t") if entry.kind == "answer")
    (comment,) = comments_of(entry.data)
    assert comment.text == "why so?"
    assert LONG[comment.offset :].startswith(comment.quote)
    assert len(comment.quote) > 20
