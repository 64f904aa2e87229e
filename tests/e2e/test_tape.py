"""`--record` and `--cassette` on screen and in lines, in demo, run, resume and step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import APP, call
from tests.support.terminal import Terminal

GRAPH = """
from hitl_tui import Agent, END, START, Channel, ScriptedModel, StateGraph

def work(state, config):
    return {{"out": config.agents["writer"].fresh().chat(state["task"])}}

graph = (
    StateGraph({{"task": Channel(""), "out": Channel("")}}, name="tiny")
    .add_node("one", work).add_node("two", work)
    .add_edge(START, "one").add_edge("one", "two").add_edge("two", END)
    .compile(agents={{"writer": Agent("writer", ScriptedModel({script}, pace=0))}})
)
"""
LINES = ("--plain",)


class Desk:
    """A folder with a graph, a store and a cassette."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tape = folder / "tape.jsonl"
        self.store = ("--store", str(folder / "runs.db"))
        self.say('"a sentence", "another one"')

    def say(self, *script: str) -> None:
        (self.folder / "tiny.py").write_text(GRAPH.format(script=f"[{', '.join(script)}]"))

    def open(self, *words: str) -> Terminal:
        return Terminal([*APP, *words, *self.store], cwd=self.folder)

    def record(self) -> None:
        """A whole run whose task is "go"."""
        words = ("run", "tiny.py", "--headless", "--input", "task=go", "--record", "tape.jsonl")
        call(*words, *self.store, cwd=self.folder)

    @property
    def calls(self) -> int:
        return len(self.tape.read_text("utf-8").splitlines()) - 1


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def step(terminal: Terminal, way: tuple[str, ...], next_node: str) -> None:
    """Make one step and leave."""
    terminal.wait_for("one is next")
    terminal.press("s", *(["enter"] if way else []))
    terminal.wait_for(f"{next_node} is next")
    terminal.press("q", *(["enter"] if way else []))
    terminal.wait_exit()


@pytest.mark.parametrize("way", [(), LINES], ids=["on screen", "in lines"])
def test_a_recorded_run_is_repeated_without_the_model(desk: Desk, way: tuple[str, ...]) -> None:
    new = ("run", "tiny.py", "--input", "task=go", *way)
    with desk.open(*new, "--thread", "a", "--record", "tape.jsonl") as terminal:
        step(terminal, way, "two")
    assert desk.calls == 1
    desk.say()
    with desk.open(*new, "--thread", "b", "--cassette", "tape.jsonl") as terminal:
        step(terminal, way, "two")
    shown = call("show", "b", *desk.store, cwd=desk.folder).stdout
    assert "a sentence" in shown


def test_a_request_missing_from_the_cassette_fails_on_screen_with_a_hint(desk: Desk) -> None:
    desk.record()
    with desk.open("run", "tiny.py", "--input", "task=stay", "--cassette", "tape.jsonl") as terminal:
        terminal.wait_for("one is next")
        terminal.press("s")
        terminal.wait_for("one failed")
        for words in ("this request is not in", "the cassette tape.jsonl", "was 'go' and is 'stay'"):
            terminal.wait_for(words)
        terminal.wait_for("record it again, or run without it")
        terminal.wait_for("s try again")
        terminal.press("q")
        terminal.wait_exit()


def test_a_request_missing_from_the_cassette_fails_in_plain_text_mode(desk: Desk) -> None:
    desk.record()
    words = ("run", "tiny.py", "--plain", "--input", "task=stay", "--cassette", "tape.jsonl")
    with desk.open(*words) as terminal:
        terminal.wait_for("one is next")
        terminal.press("s", "enter")
        terminal.wait_for("record it again, or run without it")
        terminal.press("q", "enter")
        assert terminal.wait_exit() == 1


def test_resume_and_step_record_and_are_served(desk: Desk) -> None:
    with desk.open(
        "run", "tiny.py", "--input", "task=go", "--thread", "a", "--record", "tape.jsonl"
    ) as terminal:
        step(terminal, (), "two")
    with desk.open("resume", "a", "--record", "tape.jsonl") as terminal:
        terminal.wait_for("two is next")
        terminal.press("s")
        terminal.wait_for("reached the end")
        terminal.press("q")
        terminal.wait_exit()
    assert desk.calls == 2
    desk.say()
    for thread in ("b", "c"):
        call("fork", "a@0", thread, *desk.store, cwd=desk.folder)
    assert call("step", "b", "--cassette", "tape.jsonl", *desk.store, cwd=desk.folder).returncode in (0, 3)
    with desk.open("resume", "c", "--cassette", "tape.jsonl") as terminal:
        terminal.wait_for("one is next")
        terminal.press("c")
        terminal.wait_for("reached the end")
        terminal.press("q")
        terminal.wait_exit()


def test_the_demo_is_recorded_and_served(desk: Desk) -> None:
    for option, thread in (("--record", "a"), ("--cassette", "b")):
        words = ("demo", "--pace", "0", "--thread", thread, "--plain", option, "tape.jsonl")
        with desk.open(*words) as terminal:
            terminal.wait_for("worker is next")
            terminal.press("s", "enter")
            terminal.wait_for("advisor is next")
            terminal.press("q", "enter")
            terminal.wait_exit()
    assert desk.calls == 1
    assert call("diff", "a", "b", *desk.store, cwd=desk.folder).returncode == 0


@pytest.mark.parametrize("moved", [False, True], ids=["its store", "another store and a graph that moved"])
def test_a_file_is_played_and_left_into_a_live_fork(desk: Desk, moved: bool) -> None:
    call("run", "tiny.py", "--headless", "--input", "task=go", "--thread", "a", *desk.store, cwd=desk.folder)
    call("export", "a", "-o", "a.jsonl", *desk.store, cwd=desk.folder)
    desk.say('"said live"')
    words: tuple[str, ...] = ()
    if moved:
        (desk.folder / "tiny.py").rename(desk.folder / "big.py")
        desk.store = ("--store", str(desk.folder / "other.db"))
        words = ("--graph", "big.py")
    with desk.open("play", "a.jsonl", *words) as terminal:
        terminal.wait_for("step 1")
        terminal.press("[")
        terminal.wait_for("not the newest")
        terminal.press("f")
        terminal.wait_for("A new thread begins at step")
        terminal.press("enter", "enter")
        terminal.wait_for("is next")
        terminal.press("s")
        terminal.wait_for("said live")
        terminal.press("q")
        terminal.wait_exit()
    assert "said live" in call("show", "a-tape-b", *desk.store, cwd=desk.folder).stdout
