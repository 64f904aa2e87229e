"""The list of threads on screen: what ran inside a thread is counted, and shown below it when asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.engine.log.records import Commit, Cursor
from hitl_tui.engine.log.threads import Owner, ThreadInfo
from hitl_tui.stores import Checkpointer
from hitl_tui.stores.lineage import ImportedThread
from tests.engine.run.booking import World
from tests.engine.run.nested_trip import nested
from tests.ui.test_undo import Screen, opened


def booked(store: Checkpointer, world: World) -> Any:
    runner = nested(store, world)
    runner.invoke({"note": "x"}, thread_id="t")
    return runner


def crowded(store: Checkpointer, world: World) -> Any:
    def many() -> Any:
        for n in range(250):
            info = ThreadInfo(f"t/big#{n:03}", "g", "", {}, None, -1, 0, n, None, Owner("t", "big"))
            yield ImportedThread(info, (), [Commit(Cursor(info.thread_id, updated_at=n), 0, "")])

    store.write_threads(many())
    return booked(store, world)


def names(screen: Screen) -> list[str]:
    return [row.name for row in screen.app.screen.query_one("#threads").found.rows]  # type: ignore[attr-defined]


@pytest.mark.slow
async def test_they_are_counted_and_opened_level_by_level(tmp_path: Path) -> None:
    async with opened(SQLiteCheckpointer(tmp_path / "runs.db"), booked, World()) as it:
        await it.pilot.press("t")
        await it.shows("+ t · 1 inside", "Inside")
        assert names(it) == ["t"]
        await it.pilot.press("space")
        await it.shows("- t · 1 inside", "  + t/team#1 · 1 inside")
        await it.pilot.press("down", "space")
        await it.shows("- t/team#1 · 1 inside", "t/team#1/desk#1")
        assert names(it) == ["t", "t/team#1", "t/team#1/desk#1"]
        await it.pilot.press("down", "space")
        await it.shows("+ t/team#1 · 1 inside")
        await it.pilot.press("space", "down", "enter")
        await it.shows("Timeline", "spa")
        assert it.session.thread_id == "t/team#1/desk#1"


@pytest.mark.slow
async def test_a_search_finds_them_wherever_they_ran(tmp_path: Path) -> None:
    async with opened(SQLiteCheckpointer(tmp_path / "runs.db"), booked, World()) as it:
        await it.pilot.press("t")
        await it.shows("+ t · 1 inside")
        await it.pilot.press("slash", *"desk")
        await it.shows("t/team#1/desk#1", "inside t/team#1")


@pytest.mark.slow
async def test_many_of_them_come_in_pages(tmp_path: Path) -> None:
    async with opened(SQLiteCheckpointer(tmp_path / "runs.db"), crowded, World()) as it:
        await it.pilot.press("t")
        await it.shows("+ t · 251 inside")
        await it.pilot.press("space")
        await it.shows("t/big#000")
        rows = it.app.screen.query_one("#threads").found.rows  # type: ignore[attr-defined]
        assert (len(rows), rows[-1].left) == (102, 151)
        await it.pilot.press(*["pagedown"] * 11)
        await it.shows("t/big#100")
        assert len(names(it)) == 202
