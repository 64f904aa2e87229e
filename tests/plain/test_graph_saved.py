"""The file of a graph is saved while its thread is open in lines: told, and loaded again with R."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.loading.code import forget_code
from hitl_tui.loading.sources import open_graph, reopen_graph
from hitl_tui.plain.console import Left
from hitl_tui.plain.loop import run_plain

GRAPH = """
from hitl_tui import END, START, Channel, StateGraph
graph = StateGraph({"text": Channel("")}, name="small").add_node("a", lambda state: {"text": "WORD"})
graph.add_node("b", lambda state: {}).add_edge(START, "a").add_edge("a", "b").add_edge("b", END)
"""
TOLD = "The graph's file was saved; R runs it again."
Line = str | Callable[[], object]


class Person:
    """Types lines one after the other; "…WORDS" types empty ones until these words were said."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = list(lines)
        self.said: list[str] = []

    def say(self, *lines: str) -> None:
        self.said += lines

    def ask(self, prompt: str) -> str:
        while self._lines and callable(act := self._lines[0]):
            act()
            del self._lines[0]
        if not self._lines:
            raise Left
        line = str(self._lines[0])
        if line.startswith("…") and not any(line[1:] in told for told in self.said):
            time.sleep(0.01)
            return ""
        del self._lines[0]
        return "" if line.startswith("…") else line


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
        return run_plain(opened, actor="ann", go_on=lambda thread: "", console=person), person.said
    finally:
        forget_code(file.parent)


def test_a_saved_graph_is_told_with_what_differs_and_loaded_again(file: Path) -> None:
    grown = GRAPH.replace('Channel("")}', 'Channel(""), "more": Channel(7)}')
    code, said = talk(file, "R", lambda: file.write_text(grown), f"…{TOLD}", "R", "no", "yes", "v more", "c")
    assert said.count("Refused: Wrong usage.") == 0
    assert [line for line in said if "more" in line][:2] == [
        "  | channel 'more' is new and starts at its default",
    ] * 2
    assert said[said.index("more:") + 1] == "  | 7"
    assert code == 0


def test_a_broken_graph_is_looked_at_mended_and_gone_on_with(file: Path) -> None:
    file.write_text(GRAPH + "1 / 0\n")
    code, said = talk(
        file, "s", "s", "e text", "d", "R", lambda: file.write_text(GRAPH), f"…{TOLD}", "R", "no", "yes", "c"
    )
    assert code == 0
    assert any("division by zero" in line for line in said)
    assert said.count("  | thread 't' can only be looked at") == 3, "s, e and R, and d has nothing to decide"
    assert not [line for line in said if "New value" in line], "refused before anything is typed"
    assert "The graph was loaded again." in said
