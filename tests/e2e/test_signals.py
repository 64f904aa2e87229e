"""A signal at any moment: the terminal as it was, committed steps and typed words kept, resumable."""

from __future__ import annotations

import os
import re
import signal
import termios
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.ui.gate import READ_SECONDS
from tests.support.emulator import LEAVE_ALTERNATE
from tests.support.program import APP
from tests.support.spec import spec
from tests.support.terminal import Terminal

pytestmark = spec("11")

GRAPH = """
import os, pathlib, time
from hitl_tui import END, START, Channel, Gate, GateChoice, MemoryCheckpointer, StateGraph, append

def write(state):
    return {"draft": "first words", "log": "write"}

def wait(state):
    while not pathlib.Path("go").exists():
        time.sleep(0.02)
    return {"log": "wait"}

graph = (
    StateGraph({"draft": Channel(""), "log": Channel([], reducer=append())}, name="waiting")
    .add_node("write", write).add_node("wait", wait)
    .add_edge(START, "write").add_edge("write", "wait").add_edge("wait", END)
    .compile(checkpointer=MemoryCheckpointer(), interrupt_after=[
        Gate("write", "Good enough?", subject="draft", choices=[
            GateChoice("approve", "Approve", "a"), GateChoice("revise", "Revise", "r", text="required")])])
)
"""
HELD_WRITE = """
import signal
from textual.drivers._writer_thread import WriterThread

put = WriterThread.write

def write_held(self, text):
    if pathlib.Path("hold").exists():
        pathlib.Path("hold").unlink()
        with self._queue.mutex:
            os.kill(os.getpid(), signal.SIGCONT)
    put(self, text)

WriterThread.write = write_held
"""
"""Once, the signal comes while the queue of what is to be written is locked."""
MODES = ((b"?1049h", b"?1049l"), (b"?25l", b"?25h"), (b"?1000h", b"?1000l"), (b"?2004h", b"?2004l"))
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Restored:
    """Whether a terminal is as it was before a program ran on it."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._before = self._modes()

    def check(self) -> None:
        raw = bytes(self._terminal.raw)
        assert self._modes() == self._before
        for on, off in MODES:
            assert raw.rfind(off) > raw.rfind(on), f"{on!r} is left behind"

    def _modes(self) -> list[int]:
        modes = termios.tcgetattr(self._terminal._master)
        assert isinstance(modes[3], int)
        return [number for number in modes[:4] if isinstance(number, int)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "waiting.py").write_text(GRAPH)
    return tmp_path


def start(place: Path, thread: str) -> Terminal:
    return Terminal([*APP, "run", "waiting.py", "--thread", thread, "--input", "draft="], cwd=place)


def to_the_card(terminal: Terminal) -> None:
    terminal.wait_for("write is next")
    terminal.press("s")
    terminal.wait_for("WAITING")
    terminal.press("d")
    terminal.wait_for("Your answer")


def to_the_node(terminal: Terminal) -> None:
    to_the_card(terminal)
    terminal.press_until("a", "send it now")
    terminal.press("enter")
    terminal.wait_for("wait is next")
    terminal.press("c")
    terminal.wait_for("wait · ")


def to_words_on_the_card(terminal: Terminal) -> None:
    to_the_card(terminal)
    terminal.press_until("r", "say what to change")
    terminal.press("shorter please")
    terminal.wait_for("shorter please")


def to_the_editor(terminal: Terminal) -> None:
    terminal.wait_for("write is next")
    terminal.press("s")
    terminal.wait_for("WAITING")
    terminal.press("e")
    terminal.wait_for("Saved as step 2")
    terminal.press("MINE ")
    terminal.wait_for("MINE first words")


MOMENTS = {
    "node": (to_the_node, "node 'wait' was running, nothing of it was saved", 2),
    "card": (to_words_on_the_card, "what you wrote about 'Good enough?' is kept until you send it", 1),
    "editor": (to_the_editor, "what you wrote in channel 'draft' of 't' was not applied; it is kept in", 1),
}
WORDS = {"card": "shorter please", "editor": "MINE first words"}
CORE = {(number, "node") for number in ENDING} | {(signal.SIGTERM, "card"), (signal.SIGHUP, "editor")}
"""The others are in the exhaustive run."""


def steps_of(home: Path, thread: str) -> tuple[int, str]:
    store = SQLiteCheckpointer(home / "data" / "hitl-tui" / "threads.db")
    cursor = store.cursor(thread)
    store.close()
    assert cursor is not None
    return cursor.head, cursor.status


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        pytest.param(
            number,
            moment,
            id=f"{number.name}-{moment}",
            marks=() if (number, moment) in CORE else pytest.mark.slow,
        )
        for number in ENDING
        for moment in MOMENTS
    ],
)
def test_a_stop_signal_ends_it(moment: str, number: signal.Signals, place: Path, isolated: Path) -> None:
    go_to, sentence, head = MOMENTS[moment]
    with start(place, "t") as terminal:
        restored = Restored(terminal)
        go_to(terminal)
        os.kill(terminal.pid, number)
        assert terminal.wait_exit() == 128 + number
        restored.check()
        said = terminal.text().replace("\n", "")
    assert sentence.replace(" ", "") in said.replace(" ", "")
    assert "continue with: hitl-tui resume t" in said
    assert "Traceback" not in said
    assert steps_of(isolated, "t")[0] == head
    places = [(isolated / "state" / "hitl-tui").glob("unapplied-*"), (isolated / "data").rglob("unsent/*")]
    kept = [path.read_text() for found in places for path in found]
    assert len(kept) == (moment in WORDS)
    assert all(WORDS[moment] in text for text in kept)


def test_a_run_that_a_signal_ended_can_continue(place: Path, isolated: Path) -> None:
    with start(place, "t") as terminal:
        to_the_node(terminal)
        os.kill(terminal.pid, signal.SIGTERM)
        terminal.wait_exit()
    (place / "go").touch()
    with Terminal([*APP, "resume", "t"], cwd=place) as terminal:
        terminal.wait_for("wait is next")
        terminal.press("c")
        terminal.wait_for("DONE")
        terminal.press("q")
        assert terminal.wait_exit() == 0
    assert steps_of(isolated, "t") == (3, "completed")


@pytest.mark.parametrize(
    ("slow", "seen"),
    [(False, b"?1049h"), (False, b"Channels"), (True, b"opening")],
    ids=["the screen", "the first frame", "the empty frames"],
)
@pytest.mark.parametrize("number", ENDING, ids=lambda number: number.name)
def test_a_signal_while_the_app_is_opening_restores_the_terminal(
    slow: bool, seen: bytes, number: signal.Signals, place: Path
) -> None:
    if slow:
        (place / "waiting.py").write_text(f"import time\ntime.sleep(4)\n{GRAPH}")
    with start(place, "t") as terminal:
        restored = Restored(terminal)
        while seen not in terminal.raw and terminal._program.poll() is None:
            terminal._pump(0.001)
        assert seen in terminal.raw
        os.kill(terminal.pid, number)
        assert terminal.wait_exit() == 128 + number
        restored.check()
        assert "Traceback" not in terminal.text()


def test_a_terminal_that_goes_away_ends_the_program(place: Path, isolated: Path) -> None:
    with start(place, "t") as terminal:
        to_the_editor(terminal)
        terminal.hang_up()
        assert terminal.wait_exit() in (128 + signal.SIGHUP, 1)
    assert steps_of(isolated, "t")[0] == 1
    kept = [path.read_text() for path in (isolated / "state" / "hitl-tui").glob("unapplied-*")]
    assert kept == ["MINE first words"]


def test_stopped_and_continued_the_screen_comes_back(place: Path) -> None:
    with start(place, "t") as terminal:
        restored = Restored(terminal)
        to_the_editor(terminal)
        before = terminal.settle()
        os.kill(terminal.pid, signal.SIGTSTP)
        terminal._wait(lambda: stopped(terminal.pid), "the program to stop", 20)
        restored.check()
        assert not terminal.text().strip()
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.wait_until(lambda: terminal.text() == before, "the whole screen to come back")
        terminal.press("again ")
        terminal.wait_for("MINE again first words")
        terminal.settle(READ_SECONDS)  # until then nothing is applied
        terminal.press("ctrl+s")
        terminal.wait_for("Channels at step 2")
        before = terminal.settle()
        terminal.press("ctrl+z")
        terminal._wait(lambda: stopped(terminal.pid), "ctrl+z to stop the program", 20)
        restored.check()
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.wait_until(lambda: terminal.text() == before, "the whole screen to come back")
        terminal.press("q")
        assert terminal.wait_exit() == 3
        restored.check()


def test_stopped_from_outside_the_terminal_is_still_restored_at_the_end(place: Path) -> None:
    with start(place, "t") as terminal:
        restored = Restored(terminal)
        terminal.wait_for("write is next")
        before = terminal.settle()
        os.kill(terminal.pid, signal.SIGSTOP)
        terminal._wait(lambda: stopped(terminal.pid), "the program to stop", 20)
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.wait_until(lambda: LEAVE_ALTERNATE in terminal.raw, "the program to take its screen again")
        terminal.wait_until(lambda: terminal.text() == before, "the whole screen to come back")
        terminal.press("s")
        terminal.wait_for("WAITING")
        terminal.press("q")
        assert terminal.wait_exit() == 3
        restored.check()


def test_no_key_is_lost_after_a_stop_from_outside(place: Path) -> None:
    with start(place, "t") as terminal:
        to_the_editor(terminal)
        os.kill(terminal.pid, signal.SIGSTOP)
        terminal._wait(lambda: stopped(terminal.pid), "the program to stop", 20)
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.press(*"abcdefghijklmnopqrst", "backspace", "backspace")
        terminal.wait_for("MINE abcdefghijklmnopqrfirst words")


def test_it_continues_after_a_stop_during_a_write_to_the_terminal(place: Path) -> None:
    (place / "waiting.py").write_text(GRAPH + HELD_WRITE)
    with start(place, "t") as terminal:
        terminal.wait_for("write is next")
        (place / "hold").touch()
        terminal.press("s")
        terminal.wait_for("WAITING")
        assert not (place / "hold").exists()
        terminal.press("q")
        assert terminal.wait_exit() == 3


def stopped(pid: int) -> bool:
    state = re.search(r"^State:\s+(\w)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return state is not None and state[1] == "T"


def test_ctrl_c_in_the_users_editor_reaches_only_the_editor(place: Path) -> None:
    script = place / "editor.sh"
    script.write_text(
        "trap 'echo interrupted >> \"$1\"; exit 0' INT\necho EDITOR UP\nwhile :; do sleep 0.05; done\n"
    )
    with Terminal(
        [*APP, "run", "waiting.py", "--thread", "t", "--input", "draft="],
        cwd=place,
        env={"EDITOR": f"sh {script}"},
    ) as terminal:
        to_the_editor(terminal)
        terminal.press("ctrl+e")
        terminal.wait_for("EDITOR UP")
        terminal.signal(signal.SIGINT)
        terminal.wait_for("interrupted")
        terminal.wait_for("Saved as step 2")
        terminal.press("ctrl+s")
        terminal.wait_for("Channels at step 2")
        terminal.press("q")
        assert terminal.wait_exit() == 3


def test_an_invalid_editor_command_is_an_error(place: Path) -> None:
    with Terminal(
        [*APP, "run", "waiting.py", "--thread", "t", "--input", "draft="], cwd=place, env={"EDITOR": "vi 'x"}
    ) as terminal:
        to_the_editor(terminal)
        terminal.press("ctrl+e")
        terminal.wait_for_words("No closing", "MINE first words")
