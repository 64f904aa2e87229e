"""Leaving the screen has the exit code for where the thread then stands, as leaving the lines has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.test_pause import running
from tests.support.program import APP, call
from tests.support.terminal import Terminal

GRAPH = """
from hitl_tui import END, START, Channel, StateGraph

def no(state):
    raise ValueError("this node fails")

def line(node):
    graph = StateGraph({"n": Channel(0, reducer="sum")}).add_node("first", node)
    return graph.add_edge(START, "first").add_edge("first", END)

good, bad = line(lambda state: {"n": 1}), line(no)
"""


@pytest.mark.parametrize(
    ("graph", "keys", "shown", "code"),
    [("good", "c", "DONE", 0), ("bad", "c", "this node fails", 1), ("good", "", "first is next", 3)],
    ids=["done", "failed", "waiting"],
)
def test_the_exit_code_is_the_same_on_screen_and_in_plain_text_mode(
    tmp_path: Path, graph: str, keys: str, shown: str, code: int
) -> None:
    (tmp_path / "own.py").write_text(GRAPH)
    run = [*APP, "run", f"own.py:{graph}"]
    with Terminal(run, cwd=tmp_path) as screen:
        screen.wait_for("first is next")
        screen.press(keys)
        screen.wait_for(shown)
        screen.press("q")
        assert screen.wait_exit() == code
    with Terminal([*run, "--plain"], cwd=tmp_path) as lines:
        lines.wait_for("Command:")
        if keys:
            lines.press(keys, "enter")
            lines.wait_for("Done at step" if code == 0 else shown)
        lines.press("q", "enter")
        assert lines.wait_exit() == code


def test_a_thread_that_another_process_runs_exits_with_the_code_of_a_conflict(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    with running(tmp_path, url) as holder:
        with Terminal([*APP, "resume", "t", "--store", url], cwd=tmp_path) as screen:
            screen.wait_for(f"process {holder.pid}")
            screen.press("s")
            screen.wait_for("or fork it")
            screen.press("q")
            assert screen.wait_exit() == 4
        with Terminal([*APP, "resume", "t", "--store", url, "--plain"], cwd=tmp_path) as lines:
            lines.wait_for("Command:")
            lines.press("e n", "enter")
            lines.wait_for("Refused: The thread is busy.")
            lines.press("q", "enter")
            assert lines.wait_exit() == 4
        assert holder.poll() is None
        holder.kill()
        holder.wait()
        assert call("resume", "t", "--store", url, "--plain").returncode == 3
