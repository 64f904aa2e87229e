"""Deadlines that pass while no process has the thread open."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.engine.commands import Start
from hitl_tui.loading.sources import open_graph
from hitl_tui.stores import open_store
from tests.support.commands import App
from tests.support.flows import Desk
from tests.support.spec import spec

pytestmark = spec("11")

LATE = """
from hitl_tui import END, START, Channel, Gate, GateChoice, MemoryCheckpointer, StateGraph
ship = Gate("check", title="Ship it?", deadline=60, on_timeout=%s, choices=[
    GateChoice("approve", "ship", values={"verdict": "approved"}), GateChoice("stop", "stop")])
graph = (
    StateGraph({"n": Channel(0), "verdict": Channel("")}, name="late")
    .add_node("check", lambda state: {"n": 1}).add_edge(START, "check").add_edge("check", END)
    .compile(checkpointer=MemoryCheckpointer(), interrupt_after=[ship])
)
"""


def left_waiting(directory: Path, on_timeout: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread `t` that asked long ago, under a clock of its own, and was closed."""
    path, file = directory / "late.py", str(directory / "late.db")
    path.write_text(LATE % repr(on_timeout))
    monkeypatch.setenv("HITL_TUI_STORE", file)
    with closing(open_store(file)) as store:
        desk = Desk(open_graph(str(path), store), "t")
        desk.do(Start({}))
        desk.run()
        assert desk.session.cursor.status == "waiting"


def test_the_queue_says_when_each_request_expires(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_waiting(tmp_path, None, monkeypatch)
    (row,) = app.expect(0, "threads", "--waiting").out.splitlines()[1:]
    assert row.startswith("Ship it?  t ")
    assert "  expired  " in row
    document = app.expect(0, "threads", "--waiting", "--json").document
    assert document["threads"][0]["waiting_for"] == "Ship it?"
    assert document["requests"][0]["expired"] is True
    assert "  expired" in app.expect(0, "show", "t").out


def test_expiry_is_computed_with_the_clock_of_the_store(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_waiting(tmp_path, None, monkeypatch)
    with closing(open_store(str(tmp_path / "late.db"))) as store:
        cursor = store.cursor("t")
    assert cursor is not None
    due = cursor.pending[0].deadline
    assert due is not None
    # The server of a database may have another time than this machine.
    monkeypatch.setattr(SQLiteCheckpointer, "now", lambda self: due - 7_000_000)
    assert "expires in 7.0 s" in app.expect(0, "show", "t").out


def test_the_next_process_applies_the_deadline_answer_and_attributes_it_to_the_deadline(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_waiting(tmp_path, "approve", monkeypatch)
    assert (
        app.expect(0, "run", str(tmp_path / "late.py"), "--thread", "t", "--headless")
        .out.rstrip()
        .endswith("t: Done at step 2.")
    )
    shown = app.expect(0, "show", "t@2").out
    assert "Step 2 by the deadline, decision approve." in shown
    assert "verdict  set by the deadline" in shown
    assert "by you" not in shown


@pytest.mark.slow
def test_a_resumed_run_continues_after_the_deadline_and_every_command_attributes_the_answer_to_it(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_waiting(tmp_path, "approve", monkeypatch)
    assert "t: Done at step 2." in app.expect(0, "resume", "t", "--headless", "--trust", "--as", "ann").out
    log = app.expect(0, "log", "t").out
    assert "Step 2 by the deadline, decision approve." in log
    assert "verdict  set by the deadline" in log
    assert "timeout at step 1 by the deadline" in log
    assert " the deadline  " in app.expect(0, "threads").out.splitlines()[1]
    assert "the deadline" in app.expect(0, "blame", "t", "verdict").out
    document = app.expect(0, "show", "t@2", "--json").document
    assert (document["checkpoint"]["made_by"], document["checkpoint"]["actor"]) == ("deadline", None)


def test_a_deadline_without_an_answer_is_recorded_and_resuming_asks_again(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_waiting(tmp_path, None, monkeypatch)
    asked = app.expect(3, "run", str(tmp_path / "late.py"), "--thread", "t", "--headless").out
    assert "Waiting at step 1 for a human: Ship it?" in asked
    log = app.expect(0, "log", "t").out
    assert [word for line in log.splitlines() for word in line.split() if word in ("request", "timeout")][
        -3:
    ] == ["request", "timeout", "request"]
