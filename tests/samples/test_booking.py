"""The sample of a rollback, as its docstring tells it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui import AnswerRefused, GraphRunner, MemoryCheckpointer, SQLiteCheckpointer
from hitl_tui.loading.sources import open_graph
from tests.support.commands import App
from tests.support.places import SAMPLES
from tests.support.spec import spec

pytestmark = spec("13")

SAMPLE = str(SAMPLES / "booking.py")


def opened() -> GraphRunner:
    return open_graph(SAMPLE, MemoryCheckpointer())


def test_an_unpaid_trip_is_rolled_back() -> None:
    runner = opened()
    waiting = runner.invoke({"city": "Porto"}, thread_id="trip")
    assert (waiting.status, waiting["price"]) == ("waiting", 850)
    report = runner.rollback("trip", actor="ann", note="too dear")
    state = runner.get_state("trip")
    assert (report.status, report.reason) == ("cancelled", "rolled_back")
    assert (state["price"], state["bookings"]) == (0, {"flight": None, "hotel": None, "car": None})
    assert [line.partition("-")[0] for line in state["log"][3:]] == [
        "cancelled CAR", "cancelled HOTEL", "cancelled FLIGHT",
    ]  # fmt: skip


def test_a_closed_desk_leaves_the_hotel_for_the_next_rollback() -> None:
    runner = opened()
    runner.invoke({"hotel_desk": "closed"}, thread_id="trip")
    report = runner.rollback("trip")
    assert (report.status, [one.node for one in report.entries if one.remains]) == ("failed", ["hotel"])
    assert "desk is closed" in report.entries[1].error
    runner.update_state("trip", {"hotel_desk": "open"}, actor="ann")
    assert runner.rollback("trip").ok
    assert runner.get_state("trip")["price"] == 0


def test_a_paid_trip_is_done() -> None:
    runner = opened()
    (request,) = runner.invoke({}, thread_id="trip").pending
    runner.answer("trip", request.id, {"choice": "pay", "text": ""}, step=request.step, actor="ann")
    assert runner.invoke(thread_id="trip").status == "completed"


def test_after_an_edit_of_the_amount_the_card_shows_the_new_one(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HITL_TUI_STORE", str(tmp_path / "trips.db"))
    with closing(SQLiteCheckpointer(tmp_path / "trips.db")) as store:
        runner = open_graph(SAMPLE, store)
        (asked,) = runner.invoke({}, thread_id="trip").pending
        assert asked.payload == {"price": 850}
        runner.update_state("trip", {"price": 9999}, actor="eve")
        (again,) = runner.open("trip").cursor.pending
        assert (again.payload, again.notes) == (
            {"price": 9999},
            ("It asked about price 850; now it asks about price 9999.",),
        )
        with pytest.raises(AnswerRefused):
            runner.answer("trip", asked.id, {"choice": "pay", "text": ""}, step=asked.step, actor="ann")
    shown = app.expect(0, "show", "trip").out
    assert again.notes[0] in shown
    assert '"price": 9999' in shown
    assert '"price": 850' not in shown


@pytest.mark.slow
def test_from_the_command_line(app: App) -> None:
    closed = ("--input", "city=Lisbon", "--input", "hotel_desk=closed")
    app.expect(3, "run", SAMPLE, "--headless", "--thread", "trip", *closed)
    shown = app.expect(0, "rollback", "trip", "--dry-run")
    assert [line[:15] for line in shown.out.splitlines()] == [
        "1. car of step ", "2. hotel of ste", "3. flight of st",
    ]  # fmt: skip
    assert "--yes" in app.expect(2, "rollback", "trip").err
    failed = app.expect(1, "rollback", "trip", "--yes", "--json").document
    assert [(one["node"], one["state"]) for one in failed["entries"]] == [
        ("car", "done"), ("hotel", "failed"), ("flight", "done"),
    ]  # fmt: skip
    app.expect(0, "update-state", "trip", "hotel_desk=open")
    done = app.expect(0, "rollback", "trip", "--yes")
    assert "trip: Cancelled at step 7" in done.out
    assert "3 undone" in done.out
    assert app.expect(0, "verify", "trip", "--strict", "--json").document["ok"] is True
    assert app.expect(0, "replay", "trip", "--json").document["nodes"] == 3
    assert app.expect(0, "rollback", "trip", "--dry-run", "--json").document["dry_run"] is True
