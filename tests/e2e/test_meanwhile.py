"""What happens outside while a thread is on screen: its graph is saved, somebody else edits it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.program import APP, call
from tests.support.spec import spec
from tests.support.terminal import Terminal

pytestmark = spec("11")

GRAPH = """
from words import WORD
from hitl_tui import END, START, Channel, StateGraph
def write(state):
    return {"draft": state["draft"] + WORD}
graph = StateGraph({"draft": Channel("first words")}, name="small").add_node("write", write)
graph.add_edge(START, "write")
graph.add_conditional_edge("write", lambda s: len(s["draft"]) < 400, {"true": "write", "false": END})
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "words.py").write_text('WORD = " one"\n')
    (tmp_path / "small.py").write_text(GRAPH)
    return tmp_path


def opened(place: Path) -> Terminal:
    return Terminal([*APP, "run", "small.py", "--thread", "t"], cwd=place)


def test_a_saved_graph_offers_a_reload_that_runs_the_new_code(place: Path) -> None:
    with opened(place) as terminal:
        terminal.wait_for("write is next")
        terminal.press("R")
        terminal.wait_for("the graph's file is unchanged")
        (place / "small.py").write_text(GRAPH.replace('words")}', 'words"), "more": Channel(7)}'))
        terminal.wait_for("The graph's file was saved")
        terminal.wait_for("channel 'more' is new")
        terminal.press("R")
        terminal.wait_gone("The graph's file was saved")
        (place / "words.py").write_text('WORD = " and two"\n')
        terminal.wait_for("The graph's file was saved")
        terminal.press("R")
        terminal.wait_gone("The graph's file was saved")
        terminal.press("s")
        terminal.wait_for("first words and two")
        terminal.press("q")
        assert terminal.wait_exit() == 3
    kinds = [one["decision"] for one in json.loads(call("log", "t", "--json").stdout)["decisions"]]
    assert kinds == ["graph", "graph", "channels"]
    assert json.loads(call("verify", "t", "--strict", "--json").stdout)["ok"] is True


def test_a_saved_graph_that_does_not_fit_is_refused_and_the_old_one_stays(place: Path) -> None:
    with opened(place) as terminal:
        terminal.wait_for("write is next")
        (place / "small.py").write_text(GRAPH.replace('"write"', '"other"'))
        terminal.wait_for("The graph's file was saved")
        terminal.press("R")
        terminal.wait_for("can't continue with the saved graph")
        (place / "small.py").write_text("import nothing_of_the_kind\n")
        terminal.wait_for("nothing_of_the_kind")
        terminal.press("s")
        terminal.wait_for("first words one")
        terminal.press("q")
        assert terminal.wait_exit() == 3


def test_a_person_who_edits_too_late_sees_the_difference_and_keeps_the_text(place: Path) -> None:
    with opened(place) as terminal:
        terminal.wait_for("write is next")
        terminal.press("e")
        terminal.wait_for("Saved as step 1")
        terminal.press("MINE ")
        terminal.wait_for("MINE first words")
        assert call("update-state", "t", "draft=THEIRS").returncode == 0
        terminal.press("ctrl+s")
        terminal.wait_for("not applied")
        terminal.wait_for("- THEIRS")
        terminal.wait_for("+ MINE first words")
        assert json.loads(call("show", "t", "--json").stdout)["state"]["draft"] == "THEIRS"
        terminal.wait_for("Saved as step 2")
        terminal.press("ctrl+s")
        terminal.wait_for("Channels at step 2")
        terminal.press("q")
        assert terminal.wait_exit() == 3
    assert json.loads(call("show", "t", "--json").stdout)["state"]["draft"] == "MINE first words"
