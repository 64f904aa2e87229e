"""The queue over several stores: rows name their source, `n` goes across, a store that is down is shown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hitl_tui.drivers import inbox as module
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.inbox import SeveralSources, Source
from hitl_tui.drivers.protocol import Hub
from hitl_tui.errors import NoSuchStore
from hitl_tui.loading.sources import reopen_graph
from hitl_tui.stores import open_store
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.theme import Look
from hitl_tui.view.review import UNDO
from tests.support.two_stores import asking, newest_decision
from tests.ui.harness import Clock, Screen, booted


def hub_over(file: Path) -> LocalHub:
    if not file.exists():
        raise NoSuchStore(f"there is no store {file.name}")
    store = open_store(str(file), create=False)
    return LocalHub(store, lambda info: reopen_graph(info.thread_id, info.source, store))


@asynccontextmanager
async def inbox(
    folder: Path, names: tuple[str, ...], size: tuple[int, int] = (120, 40)
) -> AsyncIterator[Screen]:
    """The app with the queue of several stores open, over thread `t` of the first one."""

    def source(name: str) -> Source:
        async def connect() -> Hub:
            return hub_over(folder / f"{name}.db")

        return Source(name, f"{name}.db", connect, folder / f"{name}.db")

    home = hub_over(folder / f"{names[0]}.db")
    several = SeveralSources([source(name) for name in names], names[0], home)

    async def open_driver() -> Any:
        return home, await home.open("t")

    app = HitlApp(AppStart(open_driver, "tester"), Look())
    try:
        async with booted(app, size=size) as pilot:
            it = Screen(app, pilot)
            await it.until(
                lambda: app.run_screen is not None and app.screen is app.run_screen, "the run screen"
            )
            it.run.clock = Clock()
            await it.press("Q")
            await it.shows("FOR YOU", "live")
            yield it
    finally:
        await several.close()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that failed is tried again at once."""
    monkeypatch.setattr(module, "_FIRST_DELAY", 0.01)
    monkeypatch.setattr(module, "_LONGEST_DELAY", 0.01)


def rows(it: Screen) -> list[tuple[str, str]]:
    return [(row.source, row.name) for row in it.app.screen.query_one("#queue").rows]  # type: ignore[attr-defined]


async def card_of(it: Screen, source: str, thread: str) -> None:
    await it.until(lambda: it.session.thread_key == (source, thread), f"{thread} of {source}")
    await it.card_listens("Your answer")


@pytest.mark.slow
async def test_a_decision_from_the_queue_is_made_in_the_thread_of_its_source(tmp_path: Path) -> None:
    for name in ("support", "finance"):
        asking(tmp_path / f"{name}.db", "t")
    async with inbox(tmp_path, ("support", "finance")) as it:
        await it.until(lambda: rows(it) == [("support", "t"), ("finance", "t")])
        await it.shows("2 WAIT FOR YOU", " support ", " finance ")
        await it.press("down", "enter")
        await card_of(it, "finance", "t")
        await it.shows("finance · reviewed · thread t")
        await it.press("a")
        await it.shows("send it now")
        clock = it.run.clock
        assert isinstance(clock, Clock)
        clock.advance(UNDO + 0.01)
        await it.gone("send it now")
    assert newest_decision(tmp_path / "finance.db", "t") == ("tester", "approve")
    assert newest_decision(tmp_path / "support.db", "t") is None


@pytest.mark.slow
async def test_next_opens_the_requests_of_all_sources(
    tmp_path: Path,
) -> None:
    for name in ("support", "finance"):
        asking(tmp_path / f"{name}.db", "t")
    async with inbox(tmp_path, ("support", "finance")) as it:
        await it.until(lambda: len(rows(it)) == 2)
        await it.press("enter")
        await card_of(it, "support", "t")
        await it.shows("1 of 2")
        await it.press("n")
        await card_of(it, "finance", "t")
        await it.shows("2 of 2")
        await it.press("Q")
        await it.until(lambda: it.app.screen.query_one("#queue").cursor_row == 1)  # type: ignore[attr-defined]
        await it.press("escape", "N")
        await card_of(it, "support", "t")


@pytest.mark.slow
async def test_several_of_two_sources_are_decided_at_once(tmp_path: Path) -> None:
    for name in ("support", "finance"):
        asking(tmp_path / f"{name}.db", "t")
    async with inbox(tmp_path, ("support", "finance")) as it:
        await it.until(lambda: len(rows(it)) == 2)
        await it.press("asterisk", "a")
        await it.shows("support · t", "finance · t", "Decide these 2")
        await it.press("enter")
        await it.shows("2 decided")
    for name in ("support", "finance"):
        assert newest_decision(tmp_path / f"{name}.db", "t") == ("tester", "approve")


@pytest.mark.slow
@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=str)
async def test_a_source_that_is_down_is_shown_and_reconnects_by_itself(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    asking(tmp_path / "support.db", "t")
    async with inbox(tmp_path, ("support", "finance"), size) as it:
        await it.shows(
            "finance is unavailable (trying again): there is no store finance.db", "1 WAITS FOR YOU"
        )
        asking(tmp_path / "finance.db", "u")
        await it.shows("2 WAIT FOR YOU")
        await it.gone("is unavailable")
        (tmp_path / "finance.db").rename(tmp_path / "away.db")
        await it.shows("finance is unavailable (trying again)", "1 WAITS FOR YOU")
        (tmp_path / "away.db").rename(tmp_path / "finance.db")
        await it.shows("2 WAIT FOR YOU")


@pytest.mark.slow
async def test_words_and_source_narrow_the_queue_to_a_source(tmp_path: Path) -> None:
    for name in ("support", "finance"):
        asking(tmp_path / f"{name}.db", "t")
    async with inbox(tmp_path, ("support", "finance")) as it:
        await it.until(lambda: len(rows(it)) == 2)
        await it.press("slash")
        await it.write("source:fin")
        await it.until(lambda: rows(it) == [("finance", "t")])
