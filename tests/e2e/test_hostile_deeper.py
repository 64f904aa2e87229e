"""Hostile text in questions of every shape, in what runs inside, and on every screen over the run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hostile import NAME, unexpected
from tests.support.places import ROOT
from tests.support.program import APP
from tests.support.terminal import Terminal
from tests.support.watched import Watched

THREAD = "t\u202e\u200b[red][/$(rm)漢"
GRAPH = f"deep {NAME}.py"
REVIEWER = "ann [red][/] $(rm) 漢"


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    (tmp_path / GRAPH).write_text("from tests.support.hostile_deep import build\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    argv = [*APP, "run", GRAPH, "--thread", THREAD, "--reviewer", REVIEWER]
    with Terminal(argv, cwd=tmp_path, size=(100, 30)) as terminal:
        yield Watched(terminal)


FORM = "must be given"
"""What a card with a form shows; its fields have the focus."""


def decide(watched: Watched, key: str, shows: str = "Your answer") -> None:
    """Answer what waits: open the card, look at it, send."""
    terminal = watched.terminal
    terminal.wait_for("WAITING")
    watched.press("d", shows=shows)
    if shows == FORM:
        terminal.wait_gone("keys work in half")
        watched.press("escape")
    terminal.press_until(key, "send it now")
    watched.check("the answer")
    # Right after the first key another one does not send.
    terminal.wait_gone("in 4…")
    watched.press("enter", shows="PAUSED")


def over(watched: Watched, key: str, shows: str, *more: str) -> None:
    """Open a screen over the run, press what it knows, and close it."""
    watched.press(key, shows=shows)
    for one in more:
        watched.press(one)
    leave(watched, shows)


def leave(watched: Watched, shown: str) -> None:
    """Press escape, in a field of a screen once more, until the run alone is there."""
    terminal = watched.terminal
    for _ in range(4):
        watched.press("escape")
        with contextlib.suppress(AssertionError):
            terminal.wait_until(
                lambda: shown not in terminal.text() and "Timeline" in terminal.text(), "the run", 2
            )
            return
    raise AssertionError(f"{shown!r} is never left; the screen:\n{terminal.text()}")


def test_hostile_texts_in_dialogs_subgraphs_and_other_screens(watched: Watched) -> None:
    terminal = watched.terminal
    terminal.wait_for("ask ␛[31m")
    over(watched, "B", "place [hit N]", "space", "enter", "evil [red] $(", "escape")

    watched.press("s")
    decide(watched, "enter", FORM)
    watched.press("s", shows="step 1")
    watched.press("s")
    decide(watched, "a", "of the payload")
    watched.press("s", shows="step 2")
    watched.press("s", shows="step 3")
    over(watched, "I", "may read", "f", "down")
    watched.press("s", shows="WAITING")
    watched.press("I", shows="inside desk")
    watched.press("backspace")
    terminal.wait_gone("inside desk")
    decide(watched, "a")
    watched.press("s", shows="step 4")
    watched.press("s", shows="step 5")
    watched.press("s")
    decide(watched, "a")
    watched.press("s")
    decide(watched, "a", "post")
    watched.press("s", shows="DONE")

    over(watched, "$", "By agent")
    over(watched, "M", "Untrusted data at step")
    over(watched, "i", "What nodes may do")
    over(watched, "A", "in total", "v", "pagedown", "x", "escape")
    over(watched, "T", "Try other settings", "tab", "enter")
    over(watched, "V", "What it means", "2", "3", "down")
    over(watched, "=", "compare  ", "down", "[", "tab", "[", "x", "/", "escape")
    over(watched, "/", "type what to look for", "evil", "down", "down")
    over(watched, "t", "search: ", "space", "down", "/", "[red]", "escape")
    over(watched, "U", "these run in this order")
    watched.press("U", shows="these run in this order")
    watched.press("r", shows="could not be undone")
    watched.press("escape")
    over(watched, "x", "All steps are kept")
    watched.press("f", shows="name of the new thread")
    watched.press("enter")
    watched.press("enter", gone="name of the new thread")
    terminal.wait_for("-b")
    watched.press("q")
    terminal.wait_exit()
    assert not unexpected(bytes(terminal.raw))
