"""Leaving the screen has the exit code for where the thread then stands, as leaving the lines has."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.terminal import Terminal

APP = str(Path(sys.executable).with_name("hitl-tui"))
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
def test_on_screen_and_in_lines_alike(tmp_path: Path, graph: str, keys: str, shown: str, code: int) -> None:
    (tmp_path / "own.py").write_text(GRAPH)
    run = [APP, "run", f"own.py:{graph}"]
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
