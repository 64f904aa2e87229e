"""A thread whose graph can't be built: on screen it is shown from its log, with the way on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import APP, call
from tests.support.spec import spec
from tests.support.terminal import Terminal

pytestmark = spec("10")

GRAPH = """
from hitl_tui import END, START, Channel, StateGraph
def write(state):
    return {"n": state["n"] + 1, "draft": f"draft {state['n'] + 1}"}
graph = StateGraph({"n": Channel(0), "draft": Channel("")}, name="lost").add_node("write", write)
graph.add_edge(START, "write")
graph.add_conditional_edge("write", lambda s: s["n"] < 3, {"true": "write", "false": END})
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of a graph with the newest thread `t`, before its second node, and an older one `s`."""
    path = tmp_path / "lost.py"
    path.write_text(GRAPH)
    call("run", "review", "--headless", "--thread", "s", "--input", "task=Hills")
    call("run", str(path), "--headless", "--thread", "t", "--break", "write:n == 1")
    return path


def test_without_a_command_the_newest_thread_is_shown_from_its_log(file: Path) -> None:
    file.unlink()
    with Terminal(APP, size=(260, 40)) as terminal:  # the path of the file may be long
        terminal.wait_for("enter Open")
        terminal.press("escape")
        terminal.wait_for("draft 1")
        terminal.wait_for("routes true → write")
        terminal.press("s")
        terminal.wait_for("moved or deleted")
        terminal.wait_for("hitl-tui run GRAPH --thread t")
        terminal.press("t")
        terminal.wait_for("enter Open")
        terminal.press("down", "enter")
        terminal.wait_gone("can't be built")
        terminal.wait_for("thread s")
        terminal.press("q")
        assert terminal.wait_exit() == 0


def test_code_that_fails_now_is_reported_too(file: Path) -> None:
    file.write_text(GRAPH + "raise ValueError('half done')\n")
    with Terminal([*APP, "resume", "t"]) as terminal:
        terminal.wait_for("draft 1")
        terminal.press("s")
        terminal.wait_for("half done")
        terminal.press("q")
        assert terminal.wait_exit() == 3


def test_the_suggested_command_continues_the_thread(file: Path, tmp_path: Path) -> None:
    elsewhere = file.rename(tmp_path / "found.py")
    done = call("run", str(elsewhere), "--headless", "--thread", "t")
    assert "t: Done at step 3" in done.stdout
    assert call("resume", "t", "--headless").returncode == 2
