"""Workers and their jobs in words: the tables of `workers`, and what a thread says of its own job."""

from __future__ import annotations

from collections.abc import Sequence

from hitl_tui.engine.log.jobs import WorkerInfo, WorkerJob
from hitl_tui.view.format import ago, count, duration
from hitl_tui.view.sanitise import sanitise_line

_WORKERS = ("WORKER", "WHERE", "LOGIN", "SINCE", "RUNS", "GRAPHS")
_JOBS = ("THREAD", "GRAPH", "PRIORITY", "STATE")
_SHOWN_DIGEST = 8


def job_words(job: WorkerJob, now: int) -> str:
    """Where a job stands, as "runs at worker 3, 2 min ago" or "queued 5 s ago: no worker has its graph"."""
    if job.state == "running":
        words = f"runs at worker {job.worker}, since {duration(max(0, now - job.since))}"
    elif job.state == "later":
        words = f"begins in {duration(max(0, job.since - now))}"
    else:
        words = f"queued {ago(job.since, now)}"
    if job.orphan:
        words += f": no worker has graph {job.graph} {job.digest[:_SHOWN_DIGEST]}"
    return f"{words}; {job.why}" if job.why else words


def worker_rows(workers: Sequence[WorkerInfo], jobs: Sequence[WorkerJob], now: int) -> list[Sequence[str]]:
    """The table of workers."""
    rows: list[Sequence[str]] = [_WORKERS]
    for worker in workers:
        runs = sum(job.state == "running" and job.worker == worker.id for job in jobs)
        graphs = ", ".join(f"{graph.name} {graph.digest[:_SHOWN_DIGEST]}" for graph in worker.graphs)
        rows.append(
            (
                f"{worker.id}{' stopping' if worker.stopping else ''}",
                sanitise_line(f"{worker.user}@{worker.host}, process {worker.pid}", 60),
                sanitise_line(worker.login, 30),
                ago(worker.since, now),
                f"{runs} of {worker.concurrency}",
                sanitise_line(graphs, 200),
            )
        )
    return rows


def job_rows(jobs: Sequence[WorkerJob], now: int) -> list[Sequence[str]]:
    """The table of jobs."""
    return [
        _JOBS,
        *(
            (
                sanitise_line(job.thread, 60),
                sanitise_line(job.graph, 30),
                str(job.priority),
                sanitise_line(job_words(job, now), 300),
            )
            for job in jobs
        ),
    ]


def summary_words(workers: Sequence[WorkerInfo], jobs: Sequence[WorkerJob]) -> str:
    """ "2 workers, 3 run, 14 wait, 2 of them for a worker that has their graph"."""
    run = sum(job.state == "running" for job in jobs)
    orphans = sum(job.orphan for job in jobs)
    words = f"{count(len(workers), 'worker')}, {run} run, {len(jobs) - run} wait"
    return f"{words}, {orphans} of them for a worker that has their graph" if orphans else words
