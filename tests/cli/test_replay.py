"""`replay` and `rollback`: words, documents, exit codes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.commands import App
from tests.support.spec import spec

pytestmark = [spec("12"), spec("13")]

TURNS = """
from hitl_tui import END, START, Channel, StateGraph
graph = StateGraph({{"n": Channel(0, reducer="sum")}}, name="turns")
graph.add_node("{name}", lambda state: {{"n": 1}}).add_edge(START, "{name}")
graph.add_conditional_edge("{name}", lambda s: s["n"] < 3, {{"true": "{name}", "false": END}})
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "turns.py"
    path.write_text(TURNS.format(name="turn"))
    return path


def test_replay_serves_what_was_recorded(app: App, file: Path) -> None:
    app.expect(0, "run", str(file), "--headless", "--thread", "t")
    assert app.expect(0, "replay", "t").out == "ok: 4 steps replayed, the results of 3 nodes served\n"
    document = app.expect(0, "replay", "t", "--json").document
    assert (document["kind"], document["ok"], document["mismatches"]) == ("replay", True, [])


def test_replay_exits_with_1_if_the_graph_takes_another_route(app: App, file: Path) -> None:
    app.expect(0, "run", str(file), "--headless", "--thread", "t")
    file.write_text(TURNS.format(name="other"))
    ours = [name for name, module in sys.modules.items() if getattr(module, "__file__", None) == str(file)]
    for module in ours:
        del sys.modules[module]
    said = app.expect(1, "replay", "t").out
    assert said.startswith("node: step 1: node: expected 'turn', found 'other'\n1 finding: ")
    found = app.expect(1, "replay", "t", "--json").document["mismatches"]
    assert [(one["kind"], one["expected"], one["actual"]) for one in found] == [("node", "'turn'", "'other'")]


def test_an_unknown_thread_is_wrong_usage(app: App, file: Path) -> None:
    app.expect(0, "run", str(file), "--headless", "--thread", "t")
    for command in ("replay", "rollback"):
        assert "there is no thread 'x'" in app.expect(2, command, "x").err


@pytest.mark.slow
def test_a_thread_with_nothing_to_undo_is_left_as_it_is(app: App, file: Path) -> None:
    app.expect(0, "run", str(file), "--headless", "--thread", "t")
    assert app.expect(0, "rollback", "t", "--dry-run").out == "Nothing is left to undo.\n"
    assert app.expect(0, "rollback", "t").out == "Nothing is left to undo.\n"
    assert app.expect(0, "rollback", "t", "--yes").out == "Nothing is left to undo.\n"
    assert "Done at step 3" in app.expect(0, "show", "t").out


TRIP = """
from hitl_tui import END, START, Channel, NodeResult, StateGraph
def part(name, place, inner=None):
    made = StateGraph({"n": Channel(0)}, name=name)
    made.add_node(place, lambda state: NodeResult(compensation=("cancel", place)))
    made.add_compensation("cancel", lambda state, config, args: {"n": 1})
    made.add_edge(START, place)
    if inner is None:
        return made.add_edge(place, END)
    made.add_subgraph("team", inner, inputs={"n": "n"}, outputs={"n": "n"})
    return made.add_edge(place, "team").add_edge("team", END)
graph = part("trip", "flight", part("team", "hotel"))
"""


@pytest.mark.slow
def test_what_a_subgraph_s_run_did_is_listed_with_its_thread(app: App, tmp_path: Path) -> None:
    file = tmp_path / "trip.py"
    file.write_text(TRIP)
    app.expect(0, "run", str(file), "--headless", "--thread", "t")
    assert app.expect(0, "rollback", "t", "--dry-run").out == (
        '1. hotel of step 1 in t/team#1: cancel("hotel")\n2. flight of step 1: cancel("flight")\n'
    )
    document = app.expect(0, "rollback", "t", "--yes", "--json").documents[-1]
    assert [(one["thread"], one["node"], one["state"]) for one in document["entries"]] == [
        ("t/team#1", "hotel", "done"),
        (None, "flight", "done"),
    ]
    for thread in ("t", "t/team#1"):
        assert "Cancelled" in app.expect(0, "show", thread).out
        app.expect(0, "verify", thread, "--strict")
        app.expect(0, "replay", thread)


@pytest.mark.slow
def test_an_imported_thread_is_undone_and_replayed_with_the_threads_inside_it(
    app: App, tmp_path: Path
) -> None:
    file = tmp_path / "trip.py"
    file.write_text(TRIP)
    app.expect(0, "run", str(file), "--headless", "--thread", "t")
    app.expect(0, "export", "t", str(tmp_path / "t.jsonl"))
    other = ["--store", str(tmp_path / "other.db")]
    app.expect(0, "import", str(tmp_path / "t.jsonl"), "--thread", "new", *other)
    named = ["--graph", str(file), *other]
    app.expect(0, "rollback", "new", "--yes", *named)
    for thread in ("new", "new/team#1"):
        assert "Cancelled" in app.expect(0, "show", thread, *other).out
        app.expect(0, "verify", thread, "--strict", *named)
        app.expect(0, "replay", thread, *named)
    assert "t: Done at step 2" in app.expect(0, "show", "t").out
