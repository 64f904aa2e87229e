"""The dialog of a rollback, on a real thread, and the screen that verifies one."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hitl_tui.stores import Checkpointer, SQLiteCheckpointer
from hitl_tui.verbs.actions import BY_ID
from tests.engine.run.booking import World, booked
from tests.engine.run.nested_trip import nested
from tests.support.spec import spec
from tests.ui.harness import Screen, live

pytestmark = [spec("12"), spec("13")]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def store(tmp_path: Path) -> Checkpointer:
    return SQLiteCheckpointer(tmp_path / "runs.db")


def opened(
    store: Checkpointer, make: Callable[..., Any], world: World
) -> AbstractAsyncContextManager[Screen]:
    return live(make(store, world), ready="flight")


@pytest.mark.slow
async def test_a_rollback_previews_its_handlers_in_order_and_shows_their_outcomes(
    store: Checkpointer, world: World
) -> None:
    world.broken = {"hotel"}
    async with opened(store, booked, world) as it:
        await it.pilot.press("U")
        await it.shows("1. car", 'cancel_car({"ref": "car-3"})', "2. hotel", "3. flight", "roll back")
        assert world.calls == []
        await it.pilot.press("r")
        await it.shows("Not complete: 2 undone, 1 failed.", "✔ car", "✗ hotel", "hotel is down", "✔ flight")
        await it.pilot.press("escape")
        await it.shows("FAILED", "undo flight", "roll back the rest")
        await it.pilot.press("s")
        await it.shows("it is being rolled back")
        world.broken.clear()
        await it.pilot.press("U")
        await it.shows("1. hotel of step 2", "failed,")
        await it.pilot.press("r")
        await it.shows("Rolled back: 3 undone.")


@pytest.mark.slow
async def test_what_a_subgraph_s_run_did_is_previewed_with_its_thread_and_undone_in_its_place(
    store: Checkpointer, world: World
) -> None:
    def made(store: Checkpointer, world: World) -> Any:
        runner = nested(store, world)
        runner.invoke({"note": "x"}, thread_id="t")
        return runner

    async with opened(store, made, world) as it:
        await it.pilot.press("U")
        await it.shows(
            "1. car of step 3", "2. taxi of step 3 in t/team#1", "3. spa of step 1 in t/team#1/desk#1"
        )
        await it.pilot.press("r")
        await it.shows("Rolled back: 5 undone.", "✔ spa  step 1  in t/team#1/desk#1")
        assert [place for place, _ in world.calls] == ["car", "taxi", "spa", "hotel", "flight"]


@pytest.mark.slow
async def test_a_rollback_is_paused_in_its_dialog_or_left_running(store: Checkpointer, world: World) -> None:
    go = threading.Event()

    def held(store: Checkpointer, world: World) -> Any:
        undo = world.handler

        def handler(place: str) -> Any:
            def waits(state: Any, config: Any, args: Any) -> Any:
                go.wait(30)
                return undo(place)(state, config, args)

            return waits

        world.handler = handler  # type: ignore[method-assign]
        return booked(store, world)

    async with opened(store, held, world) as it:
        await it.pilot.press("U")
        await it.shows("1. car")
        await it.pilot.press("r")
        await it.shows("Rolling back", "runs now", "leave it running")
        await it.pilot.press("p")
        await it.until(lambda: it.run.situation.running, "it runs")
        await it.shows("PAUS")
        go.set()
        await it.shows("Paused: 1 undone, 2 to undo.")
        await it.pilot.press("escape")
        go.clear()
        await it.pilot.press("U")
        await it.shows("1. hotel")
        await it.pilot.press("r")
        await it.shows("Rolling back", "runs now")
        await it.pilot.press("escape")
        await it.until(lambda: not it.app.query("#progress-words"), "the dialog is closed")
        go.set()
        await it.shows("CANCELLED")
        assert len(world.calls) == 3


@pytest.mark.slow
async def test_enter_alone_runs_nothing(store: Checkpointer, world: World) -> None:
    async with opened(store, booked, world) as it:
        await it.pilot.press("U")
        await it.shows("1. car")
        await it.pilot.press("enter")
        await it.shows("Timeline")
        assert world.calls == []


async def test_a_thread_that_runs_is_not_rolled_back(store: Checkpointer, world: World) -> None:
    async with opened(store, booked, world) as it:
        now = it.run.situation
        assert BY_ID["change.rollback"].disabled_reason(now) == ""
        assert "it runs" in BY_ID["change.rollback"].disabled_reason(
            msgspec.structs.replace(now, running=True)
        )


def change_behind_its_back(folder: Path, statement: str) -> None:
    """Change the store file as no writer of ours would."""
    with closing(sqlite3.connect(folder / "runs.db")) as db:
        db.execute(statement)
        db.commit()


@pytest.mark.slow
async def test_verify_lists_what_is_wrong_says_what_it_means_and_goes_to_its_step(
    store: Checkpointer, world: World, tmp_path: Path
) -> None:
    def damaged(store: Checkpointer, world: World) -> Any:
        runner = booked(store, world)
        change_behind_its_back(
            tmp_path, "UPDATE record SET note = 'forged' WHERE step = 2 AND channel = 'log'"
        )
        return runner

    async with opened(store, damaged, world) as it:
        await it.pilot.press("V")
        await it.shows(
            "Findings · 1", "record_hash", "step 2, seq", "channel log", "changed after it was written"
        )
        await it.pilot.press("enter")
        await it.shows("Channels at step 2")


def booked_inside(store: Checkpointer, world: World) -> Any:
    runner = nested(store, world)
    runner.invoke({"note": "x"}, thread_id="t")
    return runner


@pytest.mark.slow
async def test_a_finding_in_a_thread_inside_opens_that_thread_at_the_step(
    store: Checkpointer, world: World, tmp_path: Path
) -> None:
    def damaged(store: Checkpointer, world: World) -> Any:
        runner = booked_inside(store, world)
        change_behind_its_back(
            tmp_path, "UPDATE record SET note = 'forged' WHERE node = 'hotel' AND channel = 'log'"
        )
        return runner

    async with opened(store, damaged, world) as it:
        await it.pilot.press("V")
        await it.shows("Findings · 1", "t/team#1, step 1, seq", "enter goes to step 1 of t/team#1")
        await it.pilot.press("enter")
        await it.shows("t/team#1", "Channels at step 1", "hotel")
        await it.pilot.press("escape")
        await it.pilot.press("escape")
        await it.shows("flight", "Timeline")
        assert it.session.thread_id == "t"


@pytest.mark.slow
async def test_a_thread_inside_that_is_missing_leads_to_the_step_it_made(
    store: Checkpointer, world: World, tmp_path: Path
) -> None:
    booked_inside(store, world)
    store.close()
    change_behind_its_back(tmp_path, "UPDATE thread SET id = 'gone' WHERE id = 't/team#1'")
    async with opened(SQLiteCheckpointer(tmp_path / "runs.db"), nested, world) as it:
        await it.pilot.press("V")
        await it.shows("the thread of a subgraph's run is missing", "t/team#1", "enter goes to step 2")
        await it.pilot.press("enter")
        await it.shows("Channels at step 2")


@pytest.mark.slow
async def test_verify_reduces_again_and_replays(store: Checkpointer, world: World) -> None:
    async with opened(store, booked, world) as it:
        await it.pilot.press("V")
        await it.shows("nothing is wrong: 4 steps, 6 records")
        await it.pilot.press("2")
        await it.shows("nothing is wrong: 4 steps, 6 records")
        await it.pilot.press("3")
        await it.shows("the results of 3 nodes served")
        await it.pilot.press("V")
        await it.shows("Timeline")
