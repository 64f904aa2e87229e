"""What a person has typed and not sent outlives the process, however that ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hitl_tui.config import unsent_folder, user_folder
from tests.support.program import APP, call
from tests.support.terminal import Terminal

GRAPH = """
from hitl_tui import END, START, Channel, StateGraph

FIELDS = {"type": "object", "required": ["name"],
    "properties": {"name": {"type": "string"}, "city": {"type": "string"}}}
CALLS = {
    "action_requests": [{"name": "send", "args": {"to": "ann"}}, {"name": "delete", "args": {"path": "x"}}],
    "review_configs": [{"action_name": name, "allowed_decisions": ["approve", "reject"]}
        for name in ("send", "delete")]}

def line(question):
    def ask(state, config):
        return {"said": str(config.interrupt(question))}
    graph = StateGraph({"said": Channel("")}).add_node("ask", ask)
    return graph.add_edge(START, "ask").add_edge("ask", END)

gate = line({"kind": "approve", "title": "Pay 990 euros?"})
form = line({"kind": "ask", "title": "Who gets it?", "schema": FIELDS})
calls = line(CALLS)
"""


def waiting(folder: Path, graph: str) -> list[str]:
    """Run a graph until it waits; returns the command that opens its thread."""
    (folder / "own.py").write_text(GRAPH)
    store = ["--store", f"sqlite:///{folder / 'runs.db'}"]
    assert call("run", f"own.py:{graph}", "--headless", "--thread", "t", *store, cwd=folder).returncode == 3
    return [*APP, "resume", "t", *store]


def kept() -> str:
    """What is in the files of unsent answers."""
    return "".join(file.read_text() for file in sorted(unsent_folder().glob("*.json")))


def opened(terminal: Terminal) -> None:
    """Wait for the card, and until its keys work."""
    terminal.wait_for("WAITING")
    if "Your answer" not in terminal.text():
        terminal.press("d")
    terminal.wait_for("Your answer")
    terminal.wait_for("you are tester")


@pytest.mark.parametrize(
    ("graph", "keys", "typed", "shown"),
    [
        ("gate", ["tab", "the invoice is missing"], "the invoice is missing", "the invoice is missing"),
        ("form", ["Ann Smith", "tab", "Bremen"], "Bremen", "Ann Smith"),
        ("calls", ["r", "wrong person", "enter", "enter"], "wrong person", "reject: “wrong person”"),
    ],
    ids=["reason", "form", "calls"],
)
def test_what_was_typed_is_there_again_after_sigkill(
    tmp_path: Path, graph: str, keys: list[str], typed: str, shown: str
) -> None:
    command = waiting(tmp_path, graph)
    with Terminal(command, cwd=tmp_path) as terminal:
        opened(terminal)
        terminal.press(*keys)
        terminal.wait_until(lambda: typed in kept(), f"{typed!r} in a file")
        os.kill(terminal.pid, signal.SIGKILL)
        terminal.wait_exit()
    with Terminal(command, cwd=tmp_path) as again:
        opened(again)
        again.wait_for(shown)
        again.press("escape")


def test_a_sent_answer_leaves_no_file(tmp_path: Path) -> None:
    with Terminal(waiting(tmp_path, "gate"), cwd=tmp_path) as terminal:
        opened(terminal)
        terminal.press("tab", "checked")
        terminal.wait_until(lambda: "checked" in kept(), "the reason in a file")
        terminal.press("escape")
        terminal.press_until("a", "send it now")
        terminal.press_until("enter", "DONE")
        terminal.wait_until(lambda: not kept(), "no file")


def test_a_closed_terminal_loses_nothing(tmp_path: Path) -> None:
    command = waiting(tmp_path, "gate")
    with Terminal(command, cwd=tmp_path) as terminal:
        opened(terminal)
        terminal.press("tab", "not before Monday")
        terminal.wait_for("not before Monday")
        terminal.hang_up()
        terminal.wait_exit()
    assert "not before Monday" in kept()
    with Terminal(command, cwd=tmp_path) as again:
        opened(again)
        again.wait_for("not before Monday")


def test_leaving_says_that_it_is_kept_and_asks_nothing(tmp_path: Path) -> None:
    with Terminal(waiting(tmp_path, "gate"), cwd=tmp_path) as terminal:
        opened(terminal)
        terminal.press("tab", "too expensive", "enter")
        terminal.wait_for("you are tester")
        terminal.press("q")
        assert terminal.wait_exit() == 3
        assert "what you wrote about 'Pay 990 euros?' is kept until you send it" in terminal.words()


def test_what_was_written_for_a_request_that_somebody_else_answered_becomes_a_file(tmp_path: Path) -> None:
    command = waiting(tmp_path, "gate")
    with Terminal(command, cwd=tmp_path) as terminal:
        opened(terminal)
        terminal.press("tab", "not this one")
        terminal.wait_until(lambda: "not this one" in kept(), "the reason in a file")
        os.kill(terminal.pid, signal.SIGKILL)
        terminal.wait_exit()
    store = command[-1]
    assert call("approve", "t", "--store", store, cwd=tmp_path).returncode == 0
    with Terminal(command, cwd=tmp_path) as again:
        again.wait_for("No longer asked")
    assert not kept()
    assert "not this one" in next(user_folder("state").glob("unapplied-*.txt")).read_text()
