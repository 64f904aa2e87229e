"""What waits is told by the terminal of an open screen, and by `watch` as a service."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hitl_tui.config import config_path
from tests.support.program import APP, call
from tests.support.terminal import Terminal

GRAPH = """
from hitl_tui import END, START, Channel, Gate, GateChoice, StateGraph

ASK = Gate("ask", title="Publish\\x1b]0;owned\\x07 it?", choices=[GateChoice("approve", "send it")])

def press() -> "StateGraph":
    graph = StateGraph({"n": Channel(0, reducer="sum")}, name="press")
    graph.add_node("write", lambda state: {"n": 1}).add_node("ask", lambda state: {})
    graph.add_edge(START, "write").add_edge("write", "ask").add_edge("ask", END)
    return graph
"""

WAITING = """
import sys
sys.path.insert(0, ".")
from own import ASK, press
from hitl_tui import SQLiteCheckpointer
runner = press().compile(checkpointer=SQLiteCheckpointer(sys.argv[1]), interrupt_before=[ASK])
runner.invoke(thread_id=sys.argv[2])
if len(sys.argv) > 3:
    (request,) = runner.open(sys.argv[2]).cursor.pending
    runner.answer(sys.argv[2], request.id, "approve", step=request.step, actor=sys.argv[3])
    runner.invoke(thread_id=sys.argv[2])
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(GRAPH)
    return tmp_path


def ask(place: Path, *arguments: str) -> None:
    """Another process brings a thread to its question, or past it."""
    command = [sys.executable, "-c", WAITING, str(place / "runs.db"), *arguments]
    subprocess.run(command, cwd=place, check=True, timeout=120)


def configured(text: str) -> None:
    config_path().parent.mkdir(parents=True, exist_ok=True)
    config_path().write_text(text)


def test_a_screen_rings_and_counts_in_the_title_and_gives_it_back(place: Path) -> None:
    configured('[notify]\nterminal = ["bell", "osc9", "osc777", "osc99"]\n')
    ask(place, "old")
    store = str(place / "runs.db")
    with Terminal([*APP, "run", "counter", "--thread", "mine", "--store", store], cwd=place) as screen:
        screen.wait_until(lambda: b"\x1b]2;(1) hitl-tui\x1b\\" in screen.raw, "the title")
        assert b"\x1b[22;2t" in screen.raw
        assert b"\x1b]9;" not in screen.raw, "what waits when it opens is not rung"
        ask(place, "new")
        screen.wait_until(lambda: b"\x1b]9;" in screen.raw, "the notice")
        screen.wait_until(lambda: b"\x1b]2;(2) hitl-tui\x1b\\" in screen.raw, "the title")
        rung = bytes(screen.raw)
        assert "\a\x1b]9;hitl-tui: new waits: Publish␛]0,owned␇ it?\x1b\\".encode() in rung
        assert b"\x1b]777;notify;hitl-tui;new waits: " in rung
        assert b"\x1b]99;;hitl-tui: new waits: " in rung
        assert b"\x1b]0;owned" not in rung
        screen.press("q")
        screen.wait_exit()
        assert b"\x1b]2;\x1b\\\x1b[23;2t" in screen.raw


def test_what_is_open_here_and_looked_at_does_not_ring(place: Path) -> None:
    configured('[notify]\nterminal = ["osc9"]\n')
    store = str(place / "runs.db")
    with Terminal([*APP, "run", "review", "--input", "task=x", "--store", store], cwd=place) as screen:
        screen.wait_for("is next")
        screen.press("c")
        screen.wait_for("Your decision")
        screen.wait_until(lambda: b"\x1b]2;(1) hitl-tui\x1b\\" in screen.raw, "the title")
        assert b"\x1b]9;" not in screen.raw


def test_watch_is_a_service_that_a_signal_ends(place: Path) -> None:
    ask(place, "old")
    watch = [*APP, "watch", "--json", "--store", str(place / "runs.db"), "--as", "ann"]
    watching = subprocess.Popen(watch, stdout=subprocess.PIPE, text=True)
    assert watching.stdout is not None
    try:
        first = json.loads(watching.stdout.readline())
        assert (first["kind"], first["notice"], first["thread"]) == ("notice", "waits", "old")
        ask(place, "new", "ann")
        second = json.loads(watching.stdout.readline())
        assert (second["notice"], second["thread"], second["outcome"]) == ("ended", "new", "done, after ask")
    finally:
        watching.send_signal(signal.SIGTERM)
        assert watching.wait(60) == 0
    again = call("watch", "--once", "--json", "--store", str(place / "runs.db"), "--as", "ann")
    assert (again.returncode, again.stdout) == (3, "")


def test_once_tells_what_was_not_told_in_lines(place: Path) -> None:
    ask(place, "t")
    store = str(place / "runs.db")
    told = call("watch", "--once", "--store", store)
    assert told.returncode == 3
    assert told.stdout.endswith("t waits: Publish␛]0;owned␇ it?\n")
    assert call("watch", "--once", "--store", store).stdout == ""


def test_secrets_of_urls_are_nowhere(place: Path) -> None:
    configured('[notify]\nurls = ["json://user:s3cret@127.0.0.1:1"]\n')
    ask(place, "t")
    told = call("watch", "--once", "--store", str(place / "runs.db"))
    assert told.returncode == 3
    assert "did not take the notice" in told.stderr
    shown = call("config").stdout + call("config", "--json").stdout + call("doctor").stdout
    assert "s3cret" not in told.stdout + told.stderr + shown
    assert b"s3cret" not in (place / "runs.db").read_bytes()
