"""The page of workers: who runs what, what is queued, what nobody can run; it is read again as they go on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from hitl_tui import MemoryCheckpointer
from hitl_tui.engine.log.jobs import AtWork, HandedGraph, OrphanGraph, WorkerInfo, WorkerJob
from hitl_tui.view.cells import cells
from hitl_tui.view.jobs import job_lines, summary_words, worker_lines
from hitl_tui.view.spans import plain_text
from tests.support.flows import line, say
from tests.ui.harness import Screen, live

NOW = 1_760_000_000_000_000
DIGEST = "0123456789abcdef"


def job(thread: str, state: str, **facts: Any) -> WorkerJob:
    return WorkerJob(thread, state, "flow", DIGEST, 0, NOW - 4_000_000, **facts)  # type: ignore[arg-type]


WORK = AtWork(
    workers=(WorkerInfo(3, "ann", "box", 4711, "walt", 4, (HandedGraph("flow", DIGEST),), NOW, NOW),),
    jobs=(job("u", "running", worker=3), job("t", "queued"), job("lost", "queued", orphan=True)),
    orphans=(OrphanGraph("old flow", "fedcba9876543210", 1),),
    running=1,
    queued=2,
    later=0,
    now=NOW,
)


class Jobs:
    """Jobs that a test says."""

    def __init__(self) -> None:
        self.now = WORK
        self.asked = 0

    def at_work(self, limit: int) -> AtWork:
        self.asked += 1
        return self.now

    def listed(self, limit: int, threads: Collection[str] | None = None) -> Sequence[WorkerJob]:
        return ()

    def is_handed(self, thread_id: str) -> bool:
        return False


class Store(MemoryCheckpointer):
    """A store in memory with workers."""

    def __init__(self, jobs: Jobs | None) -> None:
        super().__init__()
        self._jobs = jobs

    def jobs(self) -> Any:
        return self._jobs


@asynccontextmanager
async def team(jobs: Jobs | None, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Screen]:
    runner = line(Store(jobs), say("x"))
    for name in ("u", "t"):
        runner.invoke({}, thread_id=name)
    async with live(runner, size=size) as it:
        yield it


@pytest.mark.slow
async def test_who_runs_what_what_is_queued_and_what_nobody_can_run_are_on_one_page() -> None:
    async with team(Jobs()) as it:
        await it.press("ctrl+g")
        await it.shows("1 worker · 1 thread runs · 2 queued", "ann@box, process 4711", "1 of 4", "walt")
        await it.shows("! 1 thread waits for graph old flow fedcba98, which no worker runs")
        await it.shows("runs at worker 3, since 4.0 s", "queued just now: no worker has graph flow 01234567")


@pytest.mark.slow
async def test_the_page_follows_and_the_cursor_stays_at_its_thread() -> None:
    jobs = Jobs()
    async with team(jobs) as it:
        await it.press("ctrl+g")
        await it.shows("lost")
        await it.press("down", "down")
        jobs.now = replace(WORK, workers=(), jobs=(WORK.jobs[2], WORK.jobs[0]), orphans=(), queued=1)
        await it.shows("no workers: ", "0 threads run · 1 stuck · 1 queued")
        await it.press("down", "enter")
        await it.until(lambda: it.session.thread_id == "u", "the thread below it")


async def test_without_workers_the_key_says_why_it_is_disabled() -> None:
    async with team(None) as it:
        await it.press("ctrl+g")
        await it.shows("only a store in PostgreSQL has workers")


@pytest.mark.slow
async def test_the_list_of_threads_leads_to_the_page_and_the_page_to_a_thread() -> None:
    async with team(Jobs()) as it:
        await it.press("t")
        await it.shows("^g Workers")
        await it.press("ctrl+g")
        await it.shows("What runs and what comes next")
        await it.press("enter")
        await it.until(lambda: it.app.screen is it.run and it.session.thread_id == "u", "the thread")


def test_tables_fit_their_room_and_no_name_can_steer_a_terminal() -> None:
    evil = "x\x1b[2J\u202e" * 30
    work = replace(
        WORK,
        workers=(replace(WORK.workers[0], host=evil, graphs=(HandedGraph(evil, DIGEST),)),),
        jobs=(replace(WORK.jobs[0], thread=evil, graph=evil),),
        orphans=(OrphanGraph(evil, DIGEST, 12_000),),
    )
    for width in (58, 78, 118, 198):
        tables = [worker_lines(work, width)[:-1], job_lines(work, width)]
        for shown in (plain_text(row) for table in tables for row in table):
            assert "\x1b" not in shown
            assert "\u202e" not in shown
            assert cells(shown) <= max(width, 72)
    assert plain_text(worker_lines(work, 80)[-1]).startswith("! 12,000 threads wait for graph x")
    assert summary_words(replace(work, later=2)) == "1 worker · 1 thread runs · 2 queued · 2 later"
