"""Where the graph has changed since, `verify --strict` says so before it lists what differs."""

from __future__ import annotations

from pathlib import Path

from tests.support.commands import App

GRAPH = """
from hitl_tui import END, START, Channel, StateGraph

graph = StateGraph({"n": Channel(0)}).add_node("count", lambda state: {"n": state["n"] + 1})
graph.add_edge(START, "count").add_edge("count", END)
"""
CHANGED = "the graph has changed since, which may be why: channel 'n' starts from another default"


def test_findings_under_another_default_name_it(app: App, tmp_path: Path) -> None:
    file = tmp_path / "counting.py"
    file.write_text(GRAPH)
    app.expect(0, "run", str(file), "--headless", "--thread", "t")
    assert "changed" not in app.expect(0, "verify", "t", "--strict").out
    changed = tmp_path / "changed.py"
    changed.write_text(GRAPH.replace("Channel(0)", "Channel(5)"))
    strict = ("verify", "t", "--strict", "--graph", str(changed))
    found = app.expect(1, *strict)
    assert found.out.splitlines()[0] == CHANGED
    assert CHANGED in app.expect(1, *strict, "--json").document["notes"]
