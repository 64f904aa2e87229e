"""What is said of workers that were killed: nobody runs what they ran."""

from __future__ import annotations

from hitl_tui.engine.log.jobs import AtWork, WorkerInfo, WorkerJob
from hitl_tui.view.jobs import job_rows, job_words, summary_words, worker_rows, worker_words

SECOND = 1_000_000
NOW = 1_000_000 * SECOND


def worker(number: int, silent_for: int) -> WorkerInfo:
    last_heartbeat = NOW - silent_for * SECOND
    return WorkerInfo(number, "ann", "box", 4711, "ann", 4, (), NOW - 600 * SECOND, last_heartbeat)


def job(thread: str, number: int) -> WorkerJob:
    return WorkerJob(thread, "running", "g", "00", 0, NOW - 300 * SECOND, worker=number)


def test_a_worker_that_lives_runs_its_threads() -> None:
    work = AtWork((worker(1, 1),), (job("t", 1),), (), 1, 0, 0, NOW)
    assert summary_words(work) == "1 worker · 1 thread runs · 0 queued"
    assert job_words(job("t", 1), NOW, work.workers).startswith("runs at worker 1")
    assert "runs 1 of 4" in worker_words(work.workers[0], work)


def test_what_a_silent_worker_or_one_that_has_gone_ran_is_stuck() -> None:
    work = AtWork((worker(1, 120), worker(2, 0)), (job("t", 1), job("u", 3), job("v", 2)), (), 3, 0, 0, NOW)
    assert summary_words(work) == "1 worker · 1 silent · 1 thread runs · 2 stuck · 0 queued"
    states = [row[-1] for row in job_rows(work.jobs, NOW, work.workers)[1:]]
    assert states[0].startswith("nobody runs it: worker 1 was last seen 2 m")
    assert states[1] == "nobody runs it: worker 3 has gone"
    assert states[2].startswith("runs at worker 2")
    assert worker_rows(work.workers, work.jobs, NOW)[1][4].startswith("silent, ")
    assert "last seen" in worker_words(work.workers[0], work)
