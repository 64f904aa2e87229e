"""Writing a test of a step."""

from __future__ import annotations

import runpy
from pathlib import Path

from hitl_tui import SQLiteCheckpointer
from hitl_tui.engine.commands import WriteTest
from tests.plain.talker import Talker
from tests.support.commands import App
from tests.verbs.flows import COUNTING, stopped
from tests.verbs.hosts import Case, Hosts, each_host

SECRET = """
from hitl_tui import END, START, Channel, StateGraph
graph = StateGraph({"key": Channel("hushed", visibility="private"), "n": Channel(0)}, name="secret")
graph = graph.add_node("a", lambda state: {"n": len(state["key"])}).add_edge(START, "a").add_edge("a", END)
"""


def made_by_a_program(app: App) -> None:
    """Run the thread `r` from Python, so that its record does not say where its graph is."""
    store = SQLiteCheckpointer("prepared.db")
    runpy.run_path("flow.py")["graph"].with_store(store).step(thread_id="r")
    store.close()


test_each_host = each_host(
    Case("of the newest step", "test", COUNTING, stopped, (WriteTest(actor="ann"),)),
    Case("of another one", "test", COUNTING, stopped, (WriteTest(1, actor="ann"),), step=1),
    Case(
        "with private values",
        "test",
        SECRET,
        stopped,
        (WriteTest(private=True, actor="ann"),),
        choice="private",
    ),
    Case(
        "of a graph that its record does not name",
        "test",
        COUNTING,
        made_by_a_program,
        (WriteTest(graph="flow.py:graph", actor="ann"),),
        {"graph": "flow.py:graph"},
    ),
)


def test_plain_text_mode_writes_a_new_file(talk: Talker, app: App, hosts: Hosts, tmp_path: Path) -> None:
    hosts.prepared(Case("", "test", COUNTING, stopped, ()))
    output = talk("test @1\ntest @1\ntest @9\nq\n", "resume", "r", "--plain").out
    assert "Saved as test_r_1.py in " in output
    assert "Saved as test_r_1-2.py in " in output
    assert "there is no step 9" in output
    assert (tmp_path / "test_r_1.py").read_text() == app.expect(0, "test", "r@1").out


def test_without_a_flag_private_values_are_refused(app: App, hosts: Hosts) -> None:
    hosts.prepared(Case("", "test", SECRET, stopped, ()))
    assert "may use what is private: key" in app.expect(2, "test", "r").err
    assert "export" not in app.expect(0, "log", "r").out
