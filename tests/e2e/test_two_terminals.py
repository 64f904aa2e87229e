"""Two terminals on one thread: one runs it, the other watches, and takes it over when the first one dies."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from tests.support.terminal import Terminal

APP = [str(Path(sys.executable).with_name("hitl-tui"))]
SLOW = """
import time
from hitl_tui import END, START, Channel, StateGraph
from hitl_tui.engine.records import Limits

def count(state):
    time.sleep(0.3)
    return {"n": state["n"] + 1}

def build(checkpointer):
    return (
        StateGraph({"n": Channel(0)}, name="slow")
        .add_node("count", count)
        .add_edge(START, "count")
        .add_conditional_edge("count", lambda state: state["n"] < 500, {"true": "count", "false": END})
        .compile(checkpointer=checkpointer, limits=Limits(max_iterations=None))
    )
"""


def test_one_runs_and_the_other_watches(isolated: Path, tmp_path: Path) -> None:
    graph = tmp_path / "slow.py"
    graph.write_text(SLOW)
    with Terminal([*APP, "run", str(graph), "--thread", "shared"]) as runs:
        runs.wait_for("READY")
        runs.press("c")
        runs.wait_for("step 2")
        with Terminal([*APP, "resume", "shared"]) as watches:
            watches.wait_for("shared")
            watches.wait_for(f"tester on host {socket.gethostname()}, process {runs.pid} runs this thread")
            first = watches.wait_for("step 4")
            assert "count" in first
            watches.press("s")
            watches.wait_for("you can look at it, or fork it")
            watches.press("[")
            watches.wait_for("not the newest")
            watches.press("g")
            watches.wait_gone("not the newest")

            runs.kill()
            watches.wait_for("taken over")
            watches.wait_gone("runs this thread")
            watches.press("s")
            watches.wait_gone("taken over")
            watches.wait_for("PAUSED")
            watches.press("q")
            assert watches.wait_exit() == 0
