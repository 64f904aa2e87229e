"""What a worker makes of a job, and what is said of jobs."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui.engine.log.jobs import HandedGraph, WorkerInfo, WorkerJob
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.log.requests import Request
from hitl_tui.team.workers.worker import task_for, wait_before
from hitl_tui.view.jobs import job_rows, job_words, worker_rows

NOW = 1_000_000_000


def request(**facts: Any) -> Request:
    return Request("r", "approve", "a", "after", 1, "ok?", **facts)


@pytest.mark.parametrize(
    ("cursor", "what"),
    [
        (Cursor("t", 5, status="pending"), "run"),
        (Cursor("t", 5, status="running"), "run"),
        (Cursor("t", 5, status="waiting", reason="paused"), "run"),
        (Cursor("t", 5, status="waiting", reason="limit"), "nothing"),
        (Cursor("t", 5, status="waiting", pending=(request(breakpoint=True),)), "nothing"),
        (Cursor("t", 5, status="waiting", pending=(request(deadline=NOW + 1),)), "run"),
        (Cursor("t", 5, status="waiting", pending=(request(deadline=NOW - 1),)), "expire"),
        (Cursor("t", 5, status="failed"), "run"),
        (Cursor("t", 6, status="failed"), "nothing"),
        (Cursor("t", 5, status="completed"), "nothing"),
        (Cursor("t", 5, status="cancelled"), "nothing"),
    ],
)
def test_what_a_worker_does_with_a_thread(cursor: Cursor, what: str) -> None:
    assert task_for(cursor, 5, NOW) == what


def test_the_wait_before_a_postponed_job_doubles_up_to_a_minute() -> None:
    assert [wait_before(tries) for tries in (0, 1, 2, 6, 5_000)] == [1, 2, 4, 60, 60]


def job(**facts: Any) -> WorkerJob:
    given = {"state": "queued", "since": NOW, **facts}
    return WorkerJob("t\x1b[2J", graph="flow", digest="0123456789ab", priority=0, **given)


@pytest.mark.parametrize(
    ("worker_job", "words"),
    [
        (job(), "queued just now"),
        (job(orphan=True), "queued just now: no worker has graph flow 01234567"),
        (job(state="later", since=NOW + 90_000_000), "begins in 1m 30s"),
        (job(state="running", worker=3, since=NOW - 4_000_000), "runs at worker 3, since 4.0 s"),
        (
            job(why="it is run by ann", state="later", since=NOW + 1_000_000),
            "begins in 1.0 s; it is run by ann",
        ),
    ],
)
def test_the_state_of_a_job_in_words(worker_job: WorkerJob, words: str) -> None:
    assert job_words(worker_job, NOW) == words


def test_names_in_the_tables_have_no_control_characters() -> None:
    graphs = (HandedGraph("flow\x1b]0;x\x07", "0123456789ab"),)
    worker = WorkerInfo(3, "ann\x1b[1m", "box", 4711, "walt", 4, graphs, NOW, NOW)
    running = job(state="running", worker=3)
    rows = [*worker_rows([worker], [running], NOW), *job_rows([running], NOW)]
    assert "\x1b" not in str(rows).replace("\\x1b", "\x1b")
    assert rows[1][4] == "1 of 4"
