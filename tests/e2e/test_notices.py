"""The terminal of an open screen rings for requests, and `watch` notifies as a service."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.config import config_path
from tests.support import rich_queue
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


def test_a_screen_rings_counts_in_the_title_and_restores_it(place: Path) -> None:
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


def test_plain_text_mode_rings_and_prints_notices_before_the_next_command(place: Path) -> None:
    configured('[notify]\nterminal = ["bell", "osc777"]\n')
    ask(place, "old")
    store = str(place / "runs.db")
    command = [*APP, "run", "counter", "--thread", "mine", "--store", store, "--plain"]
    with Terminal(command, cwd=place) as lines:
        lines.wait_until(lambda: b"\x1b]2;(1) hitl-tui\x1b\\" in lines.raw, "the title")
        lines.wait_for("Command:")
        ask(place, "new")
        lines.wait_until(lambda: b"\a\x1b]777;notify;hitl-tui;new waits: " in lines.raw, "the notice")
        assert "Elsewhere:" not in lines.text()
        lines.press("enter")
        lines.wait_for("new waits: Publish")
        assert lines.text().count("Elsewhere:") == 1
        lines.press("q", "enter")
        lines.wait_exit()
        assert b"\x1b]2;\x1b\\\x1b[23;2t" in lines.raw
        assert b"\x1b]0;owned" not in lines.raw


def test_a_thread_that_is_open_and_visible_does_not_ring(place: Path) -> None:
    configured('[notify]\nterminal = ["osc9"]\n')
    store = str(place / "runs.db")
    with Terminal([*APP, "run", "review", "--input", "task=x", "--store", store], cwd=place) as screen:
        screen.wait_for("is next")
        screen.press("c")
        screen.wait_for("Your answer")
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
        watching.communicate(timeout=60)
        assert watching.returncode == 0
    again = call("watch", "--once", "--json", "--store", str(place / "runs.db"), "--as", "ann")
    assert (again.returncode, again.stdout) == (3, "")


def test_in_a_terminal_watch_rings_for_what_waits_nears_its_deadline_and_has_ended(place: Path) -> None:
    configured('[notify]\nterminal = ["bell", "osc9"]\nbefore = "2h"\n')
    store = str(place / "runs.db")
    rich_queue.fill(SQLiteCheckpointer(store), (rich_queue.Asking("press-q3", "release", 1, due=30),))
    with Terminal([*APP, "watch", "--store", store, "--as", "ann"], cwd=place) as watch:
        watch.wait_for("press-q3 waits: high risk, Publish the quarterly numbers?")
        watch.wait_for("(expires in 2")
        call("approve", "press-q3", "--yes", "--run", "--as", "ann", "--store", store)
        watch.wait_for("press-q3: done, after send ")
        raw = bytes(watch.raw)
        assert b"\a\x1b]9;" in raw
        notices = re.findall(rb"\x1b\]9;hitl-tui: ([^\x1b]*)\x1b\\", raw)
        near, ended = (text.decode() for text in notices)  # what waits and nears its deadline is one
        assert near.startswith("press-q3: high risk, Publish the quarterly numbers? (expires in 2")
        assert re.fullmatch(r"press-q3: done, after send \d\d:\d\d", ended)


def test_a_hand_over_rings_in_the_session_and_an_own_batch_does_not(place: Path) -> None:
    store = str(place / "runs.db")
    rich_queue.fill(SQLiteCheckpointer(store))
    with Terminal(
        [*APP, "--store", store], cwd=place, size=(120, 60), env={"HITL_TUI_REVIEWER": "bob"}
    ) as desk:
        desk.wait_for("12 threads")
        desk.press("Q")
        desk.wait_for("12, live")

        def bells() -> int:
            return bytes(desk.raw).replace(b"]22;default\a", b"").count(b"\a")

        def handed(thread: str, rung: int) -> None:
            call("hand-over", thread, "bob", "--as", "ann", "--store", store)
            desk.wait_until(lambda: bells() >= rung, f"bell {rung}, for {thread}")

        handed("press-q3", 1)
        desk.press("*")
        desk.wait_for("12 marked")
        desk.press("a")
        desk.wait_for("9 would be decided")
        desk.press_until("\r", "9 decided")
        desk.press("\r")
        desk.wait_for("3 marked")
        handed("order-7", 2)
        assert bells() == 2


def test_watch_once_prints_only_new_notices(place: Path) -> None:
    ask(place, "t")
    store = str(place / "runs.db")
    output = call("watch", "--once", "--store", store)
    assert output.returncode == 3
    assert output.stdout.endswith("t waits: Publish␛]0;owned␇ it?\n")
    assert call("watch", "--once", "--store", store).stdout == ""


def test_secrets_in_urls_are_in_no_output(place: Path) -> None:
    configured('[notify]\nurls = ["json://user:s3cret@127.0.0.1:1"]\n')
    ask(place, "t")
    output = call("watch", "--once", "--store", str(place / "runs.db"))
    assert output.returncode == 3
    assert "did not accept the notice" in output.stderr
    shown = call("config").stdout + call("config", "--json").stdout + call("doctor").stdout
    assert "s3cret" not in output.stdout + output.stderr + shown
    assert b"s3cret" not in (place / "runs.db").read_bytes()
