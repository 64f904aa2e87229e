"""The page of decisions: found by words, time, thread and person; opened at their step, forked there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.loading.sources import reopen_graph
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.screens.decisions import DecisionsScreen
from hitl_tui.ui.theme import Look
from tests.support import rich_queue
from tests.support.rich_queue import Asking
from tests.ui.harness import Screen, booted

ASKING = (
    Asking("blog-joins", "advisor", 60 * 24 * 8),
    Asking("blog-windows", "advisor", 2),
    Asking("recall-k2", "recall", 41, due=240),
)  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> SQLiteCheckpointer:
    """Two drafts that tester sent back, one of them last week, and a vote of ben's."""
    store = SQLiteCheckpointer(tmp_path / "runs.db")
    rich_queue.fill(store, ASKING)
    return store


@asynccontextmanager
async def opened(
    store: SQLiteCheckpointer, size: tuple[int, int] = (120, 40), theme: str = ""
) -> AsyncIterator[Screen]:
    """The app on `recall-k2`."""
    hub = LocalHub(store, lambda info: reopen_graph(info.thread_id, info.source, store))

    async def open_driver() -> Any:
        return hub, await hub.open("recall-k2")

    app = HitlApp(AppStart(open_driver, "ben"), Look(theme=theme))
    try:
        async with booted(app, size=size) as pilot:
            it = Screen(app, pilot)
            await it.until(
                lambda: app.run_screen is not None and app.screen is app.run_screen, "the run screen"
            )
            yield it
    finally:
        await hub.close()


def shown(it: Screen) -> list[str]:
    """The threads of the rows, in order."""
    return [row.thread for row in it.app.screen.query_one("#decisions").rows]  # type: ignore[attr-defined]


async def test_last_weeks_decision_is_found_by_a_word_of_its_text_in_four_keys(
    store: SQLiteCheckpointer,
) -> None:
    async with opened(store) as it:
        await it.press("ctrl+d")
        await it.shows("result", "3 decisions")
        assert shown(it) == ["blog-windows", "recall-k2", "blog-joins"]
        await it.press("slash", *"phone")
        await it.shows("2 decisions", "payload", "phone")
        await it.press("enter", "down", "enter")
        run = it.app.run_screen
        assert run is not None
        await it.until(lambda: run.session.shown == ("blog-joins", 2), "the step of the decision")
        await it.shows("Step 2 of 5 — not the newest, written 20", "─ latest_draft ─")


async def test_a_row_says_when_who_what_why_and_what_came_of_it(store: SQLiteCheckpointer) -> None:
    async with opened(store) as it:
        await it.press("ctrl+d")
        await it.shows("3 decisions")
        row = next(line for line in it.text().splitlines() if "blog-joins" in line)
        assert "-" in row.split()[1], f"not the day: {row}"
        assert "tester" in row
        assert "sent back “Approve this draft?”" in row
        assert "asked “Approve this draft?”" in row


async def test_it_is_searched_by_person_thread_and_time(store: SQLiteCheckpointer) -> None:
    async with opened(store) as it:
        await it.press("ctrl+d", "slash")
        for typed, found in (
            ("by:ben", ["recall-k2"]),
            ("-by:ben since:7d", ["blog-windows"]),
            ("until:7d", ["blog-joins"]),
            ("thread:blog -thread:windows", ["blog-joins"]),
            ("sent nowhere", []),
        ):
            it.app.screen.query_one("#search").value = typed  # type: ignore[attr-defined]
            await it.until(lambda found=found: shown(it) == found, typed)
        await it.shows("no decision matches")


async def test_m_shows_only_my_own(store: SQLiteCheckpointer) -> None:
    async with opened(store) as it:
        await it.press("ctrl+d")
        await it.shows("3 decisions")
        await it.press("m")
        await it.until(lambda: shown(it) == ["recall-k2"], "only mine")
        await it.press("m")
        await it.until(lambda: len(shown(it)) == 3, "all")


async def test_f_forks_where_it_can_be_decided_again(store: SQLiteCheckpointer) -> None:
    async with opened(store) as it:
        await it.press("ctrl+d")
        await it.shows("3 decisions")
        await it.press("f")
        await it.shows("A new thread begins at step 2 of blog-windows")


async def test_an_unreadable_filter_is_said(store: SQLiteCheckpointer) -> None:
    async with opened(store) as it:
        await it.press("ctrl+d")
        await it.shows("3 decisions")
        await it.press("slash", *"since:soon")
        await it.shows("'soon' is no time: write 7d, today, yesterday or 2026-11-20")


@pytest.mark.parametrize("key", ["ctrl+d", "escape", "q"])
async def test_the_key_that_opened_it_closes_it(store: SQLiteCheckpointer, key: str) -> None:
    async with opened(store) as it:
        await it.press("ctrl+d")
        await it.shows("3 decisions")
        assert isinstance(it.app.screen, DecisionsScreen)
        await it.press(key)
        assert it.app.screen is it.app.run_screen


@pytest.mark.parametrize("key", ["Q", "t"])
async def test_it_opens_from_the_lists_and_closes_to_them(store: SQLiteCheckpointer, key: str) -> None:
    async with opened(store) as it:
        await it.press(key)
        await it.shows("blog-windows")
        await it.press("ctrl+d")
        await it.shows("3 decisions")
        await it.press("escape")
        await it.gone("3 decisions")
        await it.press("ctrl+d")
        await it.shows("3 decisions")
        await it.press("down", "down", "enter")
        run = it.app.run_screen
        assert run is not None
        await it.until(lambda: run.session.shown == ("blog-joins", 2), "the step of the decision")
        assert it.app.screen is run


@pytest.mark.slow
async def test_a_page_counts_what_reviews_measure(store: SQLiteCheckpointer) -> None:
    async with opened(store) as it:
        await it.press("ctrl+d")
        await it.shows("3 decisions")
        await it.press("s")
        await it.shows("What reviews measure", "3 decisions by 2 people.", "PERSON", "tester", "revise 2")
        await it.press("s")
        await it.gone("What reviews measure")
