"""Two terminals on one thread: one runs it, the other watches, and takes it over when the first one dies."""

from __future__ import annotations

import re
import socket
from pathlib import Path

from tests.support.program import APP
from tests.support.spec import spec
from tests.support.terminal import Terminal

pytestmark = spec("10")

SLOW = """
import time
from hitl_tui import END, START, Channel, StateGraph
from hitl_tui import Limits

def count(state):
    time.sleep(0.5)
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


def step_after(terminal: Terminal, step: int) -> int:
    """Wait until a screen shows a later step than that; it may pass by many while nobody looks."""
    found: list[int] = []

    def moved() -> bool:
        found[:] = [int(number) for number in re.findall(r"Channels at step (\d+)", terminal.text())]
        return bool(found) and found[0] > step

    terminal.wait_until(moved, f"a step after {step}")
    return found[0]


def test_one_process_runs_a_thread_and_another_one_watches_it(isolated: Path, tmp_path: Path) -> None:
    graph = tmp_path / "slow.py"
    graph.write_text(SLOW)
    with Terminal([*APP, "run", str(graph), "--thread", "shared"]) as runs:
        runs.wait_for("READY")
        runs.press("c")
        first = step_after(runs, 0)
        with Terminal([*APP, "resume", "shared"]) as watches:
            watches.wait_for("shared")
            watches.wait_for(f"tester on host {socket.gethostname()}, process {runs.pid} runs this thread")
            step_after(watches, first)
            watches.wait_for("count")
            watches.press("s")
            watches.wait_for("or fork it")
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
            assert watches.wait_exit() == 3
