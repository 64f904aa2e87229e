"""A graph file is saved while its thread is open in plain text mode: reported, and reloaded with R."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.drivers import graph_file
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.protocol import Snapshot
from hitl_tui.engine.log.events import GraphChanged
from hitl_tui.errors import StoreUnusable
from hitl_tui.loading.code import forget_code
from hitl_tui.loading.sources import open_graph, reopen_graph
from hitl_tui.plain.context import Context
from hitl_tui.plain.loop import run_plain
from tests.plain.person import Line, Person

GRAPH = """
from hitl_tui import END, START, Channel, StateGraph
graph = StateGraph({"text": Channel("")}, name="small").add_node("a", lambda state: {"text": "WORD"})
graph.add_node("b", lambda state: {}).add_edge(START, "a").add_edge("a", "b").add_edge("b", END)
"""
SAVED = "The graph's file was saved; R runs it again."


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("hitl_tui.drivers.graph_file.EVERY", 0.02)
    path = tmp_path / "small.py"
    path.write_text(GRAPH)
    store = SQLiteCheckpointer(tmp_path / "runs.db")
    runner = open_graph(str(path), store)
    runner.step({}, thread_id="t")
    store.close()
    forget_code(tmp_path)
    return path


def talk(file: Path, *lines: Line) -> tuple[int, list[str]]:
    """A session on thread `t`; its exit code and what was said."""
    store = SQLiteCheckpointer(file.parent / "runs.db")

    async def opened():
        hub = LocalHub(
            store,
            lambda info: reopen_graph(info.thread_id, info.source, store),
            lambda thread, error: f"its graph can't be built: {error.message}",
        )
        return hub, await hub.open("t")

    person = Person(lines)
    try:
        return run_plain(opened, actor="ann", go_on=lambda source, thread: "", console=person), person.said
    finally:
        forget_code(file.parent)


@pytest.mark.slow
def test_a_saved_graph_is_reported_with_its_differences_and_reloaded(file: Path) -> None:
    grown = GRAPH.replace('Channel("")}', 'Channel(""), "more": Channel(7)}')
    code, said = talk(file, "R", lambda: file.write_text(grown), f"…{SAVED}", "R", "l", "v more", "c")
    assert said.count("Refused: Wrong usage.") == 0
    assert [line for line in said if "more" in line][:2] == [
        "  | channel 'more' is new and starts at its default",
    ] * 2
    assert said[said.index("more:") + 1] == "  | 7"
    assert code == 0


@pytest.mark.slow
def test_a_thread_of_a_broken_graph_is_viewed_fixed_and_continued(file: Path) -> None:
    file.write_text(GRAPH + "1 / 0\n")
    code, said = talk(
        file, "s", "s", "e text", "d", "R", lambda: file.write_text(GRAPH), f"…{SAVED}", "R", "l", "c"
    )
    assert code == 0
    assert any("division by zero" in line for line in said)
    assert said.count("  | thread 't' is read-only") == 3, "s, e and R, and d has nothing to decide"
    assert not [line for line in said if "New value" in line], "refused before anything is typed"
    assert "The graph was reloaded." in said


def test_a_change_is_reported_after_a_failed_check(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    async def fails_once(*_: object) -> None:
        looks.append(1)
        if len(looks) == 1:
            raise StoreUnusable("the store is locked")

    monkeypatch.setattr(graph_file, "repeats_under", fails_once)
    other = GRAPH.replace("WORD", "OTHER")
    code, _ = talk(file, "R", lambda: file.write_text(other), "…The graph's file was saved")
    assert code == 3, "it waits"
    assert len(looks) > 1


def test_a_change_is_reported_whenever_it_arrives(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each prompt the thread is read; a change that comes between two reads is not lost."""
    read, changes = Context.snapshot, [GraphChanged((), None)]

    def changed_before(context: Context) -> Snapshot:
        if changes and context.seen:
            context.driver._emit(changes.pop())  # type: ignore[attr-defined]
        return read(context)

    monkeypatch.setattr(Context, "snapshot", changed_before)
    _, said = talk(file, "s", f"…{SAVED}")
    assert said.count(SAVED) == 1
