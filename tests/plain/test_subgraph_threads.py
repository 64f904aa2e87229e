"""Branches and subgraph threads are listed, opened and left in plain text mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plain.talker import Talker
from tests.support.places import SAMPLES
from tests.support.spec import spec

pytestmark = spec("7")

MAPPED = """
from hitl_tui import END, START, Channel, MemoryCheckpointer, StateGraph, quorum

def look(state, config):
    if config.item == "bees":
        raise ValueError("they sting")
    return {"found": config.item}

items = Channel(["ants", "bees", "crabs"], reducer="overwrite")
graph = StateGraph({"items": items, "found": Channel([], reducer="append")}, name="mapped")
graph = graph.add_map("scan", over="items", node=look, join=quorum(2), max_concurrent=1)
graph = graph.add_node("after", lambda state: {}).add_edge(START, "scan").add_edge("scan", "after")
graph = graph.add_edge("after", END).compile(checkpointer=MemoryCheckpointer())
"""


def test_a_subgraph_thread_is_opened_decided_and_left(talk: Talker) -> None:
    typed = "s\ni\ni 1\nd\nprint\n\nc\ni back\nc\nq\n"
    done = talk(typed, "run", str(SAMPLES / "desk.py"), "--thread", "d", "--plain")
    assert "Inside editor, step 1:\n1. the thread d/editor#1\ni 1 opens it.\n" in done.out
    assert "Thread d/editor#1, graph editor." in done.out
    assert "It runs inside d: i back goes there." in done.out
    assert done.out.count("Thread d, graph desk.") == 2
    assert "ALL ABOUT CLOSURES." in done.out
    assert done.code == 0


def test_branches_are_listed_and_shown_in_full(talk: Talker, tmp_path: Path) -> None:
    (tmp_path / "mapped.py").write_text(MAPPED)
    done = talk("c\ni\ni 2\ni 3\nq\n", "run", str(tmp_path / "mapped.py"), "--plain")
    assert "Inside scan, step 1:\n1. scan[0]: done" in done.out
    assert "2. scan[1]: failed" in done.out
    assert "on “bees”; " in done.out
    assert "they sting" in done.out
    assert "2. scan[1]:\n  | " in done.out
    assert "  | item  crabs\n" in done.out
    assert "i and a number shows one." in done.out


def test_an_older_step_is_looked_into_by_its_number(talk: Talker) -> None:
    typed = "s\nd\nprint\n\nc\ni step 1\ni 1\nq\n"
    done = talk(typed, "run", str(SAMPLES / "desk.py"), "--thread", "d", "--plain")
    assert "Inside editor, step 1:" in done.out
    assert "Thread d/editor#1, graph editor." in done.out


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("i", "no step here has branches or a subgraph thread"),
        ("i back", "this is not a subgraph thread"),
        ("i step 0", "step 0 has no branches and no subgraph thread"),
        ("i step x", "x is not a number"),
    ],
)
def test_a_missing_branch_or_thread_is_reported(talk: Talker, typed: str, message: str) -> None:
    done = talk(f"{typed}\nq\n", "run", str(SAMPLES / "desk.py"), "--plain")
    assert f"  | {message}\n" in done.out


def test_a_number_that_is_too_high_is_reported(talk: Talker, tmp_path: Path) -> None:
    (tmp_path / "mapped.py").write_text(MAPPED)
    done = talk("c\ni 4\nq\n", "run", str(tmp_path / "mapped.py"), "--plain")
    assert "there is no branch 4 inside, there are 3" in done.out
