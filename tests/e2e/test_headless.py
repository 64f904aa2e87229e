"""Two processes on one thread: one wins, the other is told, with exit code 4; signals put a run down."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.program import APP, call
from tests.support.spec import spec
from tests.support.terminal import Terminal

pytestmark = spec("11")

SLOW = """
import pathlib, time
from hitl_tui import END, START, Channel, StateGraph
def slow(state):
    pathlib.Path(__file__).with_name("started").touch()
    for _ in range(600):
        if pathlib.Path(__file__).with_name("go").exists():
            break
        time.sleep(0.05)
    return {"n": 1}
graph = StateGraph({"n": Channel(0)}, name="slow").add_node("slow", slow)
graph.add_edge(START, "slow").add_edge("slow", END)
"""


@contextmanager
def slow_run(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process in the middle of the one node of thread `t`."""
    (folder / "slow.py").write_text(SLOW)
    run = subprocess.Popen(
        [*APP, "run", str(folder / "slow.py"), "--json", "--thread", "t"], stdout=subprocess.PIPE, text=True
    )
    try:
        until = time.monotonic() + 60
        while not (folder / "started").exists():
            assert run.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        yield run
    finally:
        (folder / "go").touch()
        run.kill()
        run.communicate()


def test_a_thread_that_another_process_runs_can_only_be_viewed(tmp_path: Path) -> None:
    with slow_run(tmp_path) as run:
        for arguments in (
            ["resume", "t", "--headless"],
            ["step", "t"],
            ["pause", "t", "--wait", "0"],
            ["update-state", "t", "n=2"],
            ["cancel", "t"],
        ):
            done = call(*arguments, "--json")
            assert done.returncode == 4, (arguments, done)
            assert f"process {run.pid}" in json.loads(done.stdout)["message"]
        shown = call("show", "t", "--json")
        assert shown.returncode == 0
        assert str(run.pid) in json.loads(shown.stdout)["held_by"]
        (tmp_path / "go").touch()
        out, _ = run.communicate(timeout=150)
        assert run.returncode == 0
        assert json.loads(out.splitlines()[-1])["state"] == {"n": 1}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_run_and_the_thread_can_continue_later(
    tmp_path: Path, number: signal.Signals
) -> None:
    with slow_run(tmp_path) as run:
        run.send_signal(number)
        (tmp_path / "go").touch()
        out, _ = run.communicate(timeout=150)
        assert run.returncode == 128 + number
        assert json.loads(out.splitlines()[-1])["event"] == "run_ended"
    done = call("resume", "t", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout.splitlines()[-1])["step"] == 1


def test_a_closed_pipe_is_no_crash(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    words = [*APP, "run", "counter", "--json", "--input", "limit=500"]
    run = subprocess.Popen(words, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    os.close(reading)  # before its first word: what goes into the pipe's room would be no failure
    _, said = run.communicate(timeout=150)
    assert run.returncode == 3, said  # as with a reader: a limit stops it
    assert not said


def test_a_dumb_terminal_gets_plain_text_mode() -> None:
    with Terminal([*APP, "demo", "--pace", "0"], env={"TERM": "dumb"}) as terminal:
        terminal.wait_for_words("worker is next", "Command:")
        terminal.press("q", "enter")
        assert terminal.wait_exit() == 3


def test_ctrl_c_pauses_a_plain_run_and_a_second_one_stops_the_node() -> None:
    with Terminal([*APP, "demo", "--plain", "--pace", "20", "--thread", "p"]) as terminal:
        terminal.wait_for("Command:")
        terminal.press("c", "enter")
        terminal.wait_for("Step 1: worker runs.")
        terminal.press("ctrl+c")
        terminal.wait_for("Pausing after this node")
        terminal.press("ctrl+c")
        terminal.wait_for("worker was stopped")
        terminal.wait_for("Paused at step 0: worker is next.")
        terminal.press("q", "enter")
        assert terminal.wait_exit() == 3
        assert "Left. Continue with: hitl-tui resume p" in terminal.text()


def test_content_is_wrapped_before_the_edge_of_the_terminal() -> None:
    call("run", "review", "--json", "--thread", "r", "--input", "task=x")
    fake = "".join("y" * before + "Question: APPROVED. " for before in range(60, 80))
    assert call("update-state", "r", f"draft={fake}").returncode == 0
    for arguments in (("diff", "r@0", "r"), ("blame", "r", "draft"), ("log", "r"), ("show", "r")):
        with Terminal([*APP, *arguments]) as terminal:
            assert terminal.wait_exit() in (0, 3)
            rows = terminal.text().splitlines()
        assert any("APPROVED" in row for row in rows)
        assert not [row for row in rows if row.startswith(("Question", "yy", "APP"))]
