"""A decision about a thread that is the workers' only queues it, wherever it is made; others go on there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui.loading.sources import open_graph
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from hitl_tui.view.review import UNDO
from tests.plain.conftest import talk
from tests.plain.talker import Talker
from tests.support.workers import write_flow
from tests.ui.harness import Clock, live

__all__ = ["talk"]
pytestmark = pytest.mark.parametrize("handed", [True, False], ids=["workers", "nobodys"])


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresCheckpointer]:
    with closing(PostgresCheckpointer(postgres_url)) as opened:
        opened.jobs().make()
        yield opened


def hand(store: PostgresCheckpointer) -> None:
    """The thread that waits for a decision is the workers'; nothing is queued."""
    store.jobs().hand("t")
    store._server.rows("DELETE FROM procrastinate_jobs")


def stands(store: PostgresCheckpointer) -> tuple[str, int, list[str]]:
    """How the thread stands at which step, and what is queued."""
    cursor = store.cursor("t")
    assert cursor is not None
    return cursor.status, cursor.head, [job.thread for job in store.jobs().listed(9)]


RUN: tuple[str, int, list[str]] = ("completed", 4, [])
QUEUED = ("waiting", 3, ["t"])


@pytest.mark.parametrize("place", ["card", "queue"])
async def test_on_screen(store: PostgresCheckpointer, tmp_path: Path, place: str, handed: bool) -> None:
    runner = open_graph(write_flow(tmp_path, "flow"), PostgresCheckpointer(store._url))
    runner.invoke({}, thread_id="t")
    if handed:
        hand(store)
    async with live(runner, ready="WAITING") as it:
        it.run.clock = clock = Clock()
        if place == "card":
            await it.press("d")
            await it.card_listens("Your answer")
            await it.press("a")
            await it.shows("sending")
            clock.advance(UNDO + 0.01)
        else:
            await it.press("Q")
            await it.shows("1 WAITS FOR YOU", "Go on?")
            await it.press("a")
            await it.shows("1 would be decided")
            await it.press("enter")
            await it.shows("1 decided")
        await it.until(lambda: stands(store) == (QUEUED if handed else RUN), "what becomes of it")
    assert stands(store) == (QUEUED if handed else RUN)


@pytest.mark.parametrize("place", ["lines", "command"])
def test_without_a_screen(
    store: PostgresCheckpointer, tmp_path: Path, talk: Talker, place: str, handed: bool
) -> None:
    where = ("--store", store._url)
    talk("", "run", write_flow(tmp_path, "flow"), "--headless", "--thread", "t", *where)
    if handed:
        hand(store)
    if place == "lines":
        talk("d\napprove\nfine\nq\n", "resume", "t", "--plain", *where)
    else:
        talk("", "approve", "t", "--run", *where)
    assert stands(store) == (QUEUED if handed else RUN)
