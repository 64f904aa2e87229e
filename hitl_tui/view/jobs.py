"""Describes workers and their jobs, for the tables of `workers` and a thread's own job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hitl_tui.engine.log.jobs import AtWork, JobState, OrphanGraph, WorkerInfo, WorkerJob
from hitl_tui.view.cells import GAP, columns, fitted, thread_name
from hitl_tui.view.format import ago, count, duration
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Role, trusted, untrusted

_WORKERS = ("WORKER", "WHERE", "LOGIN", "SINCE", "RUNS", "GRAPHS")
_JOBS = ("THREAD", "GRAPH", "PRIORITY", "STATE")
_SHOWN_DIGEST = 8
_LONGEST = 200
_SILENT = 20_000_000
"""Microseconds without a heartbeat after which a worker counts as silent."""


def is_silent(worker: WorkerInfo, now: int) -> bool:
    """Whether a worker has been silent for longer than a living one would be."""
    return now - worker.last_seen > _SILENT


def job_words(job: WorkerJob, now: int, workers: Sequence[WorkerInfo] | None = None) -> str:
    """Describe a job's status: "runs at worker 3, 2 min ago" or "queued 5 s ago: no worker has its graph".

    Args:
        workers: the known workers, to see whether the job's worker still lives; None if not known.
    """
    worker = next((known for known in workers or () if known.id == job.worker), None)
    if job.state == "running" and worker is not None and is_silent(worker, now):
        words = f"nobody runs it: worker {job.worker} was last seen {ago(worker.last_seen, now)}"
    elif job.state == "running" and workers is not None and worker is None:
        words = f"nobody runs it: worker {job.worker} has gone"
    elif job.state == "running":
        words = f"runs at worker {job.worker}, since {duration(max(0, now - job.since))}"
    elif job.state == "later":
        words = f"begins in {duration(max(0, job.since - now))}"
    else:
        words = f"queued {ago(job.since, now)}"
    if job.orphan:
        words += f": no worker has graph {job.graph} {job.digest[:_SHOWN_DIGEST]}"
    return f"{words}; {job.why}" if job.why else words


def worker_rows(workers: Sequence[WorkerInfo], jobs: Sequence[WorkerJob], now: int) -> list[Sequence[str]]:
    """Return the rows of the table of workers."""
    rows: list[Sequence[str]] = [_WORKERS]
    for worker in workers:
        graphs = ", ".join(f"{graph.name} {graph.digest[:_SHOWN_DIGEST]}" for graph in worker.graphs)
        rows.append(
            (
                f"{worker.id}{' stopping' if worker.stopping else ''}",
                _where(worker),
                sanitise_line(worker.login, 30),
                ago(worker.since, now),
                f"silent, {ago(worker.last_seen, now)}"
                if is_silent(worker, now)
                else f"{_runs(worker, jobs)} of {worker.concurrency}",
                sanitise_line(graphs, 200),
            )
        )
    return rows


def worker_words(worker: WorkerInfo, work: AtWork) -> str:
    """Describe a worker on a line: "ann@box, process 4711, began 5 min ago, runs 1 of 4"."""
    stops = ", stopping" if worker.stopping else ""
    runs = f"runs {_runs(worker, work.jobs)} of {worker.concurrency}"
    if is_silent(worker, work.now):
        runs = f"last seen {ago(worker.last_seen, work.now)}"
    return f"{_where(worker)}, began {ago(worker.since, work.now)}, {runs}{stops}"


def _where(worker: WorkerInfo) -> str:
    return sanitise_line(f"{worker.user}@{worker.host}, process {worker.pid}", 60)


def _runs(worker: WorkerInfo, jobs: Sequence[WorkerJob]) -> int:
    return sum(job.state == "running" and job.worker == worker.id for job in jobs)


def job_rows(
    jobs: Sequence[WorkerJob], now: int, workers: Sequence[WorkerInfo] | None = None
) -> list[Sequence[str]]:
    """Return the rows of the table of jobs."""
    return [
        _JOBS,
        *(
            (
                thread_name(job.thread, 60),
                sanitise_line(job.graph, 30),
                str(job.priority),
                sanitise_line(job_words(job, now, workers), 300),
            )
            for job in jobs
        ),
    ]


def orphan_words(graph: OrphanGraph) -> str:
    """Describe a graph without worker: "3 threads wait for graph flow 01234567, which no worker runs"."""
    threads = "1 thread waits" if graph.threads == 1 else f"{graph.threads:,} threads wait"
    named = f"{sanitise_line(graph.name, 30)} {graph.digest[:_SHOWN_DIGEST]}"
    return f"{threads} for graph {named}, which no worker runs"


def summary_words(work: AtWork) -> str:
    """Return the totals: "2 workers · 3 threads run · 14 queued · 1 later"."""
    silent = {worker.id for worker in work.workers if is_silent(worker, work.now)}
    living = {worker.id for worker in work.workers} - silent
    stuck = sum(job.state == "running" and job.worker not in living for job in work.jobs)
    running = work.running - stuck
    parts = [
        count(len(living), "worker"),
        *([f"{len(silent):,} silent"] if silent else []),
        f"{running:,} {'thread runs' if running == 1 else 'threads run'}",
        *([f"{stuck:,} stuck"] if stuck else []),
        f"{work.queued:,} queued",
    ]
    return " · ".join((*parts, f"{work.later:,} later") if work.later else parts)


# The same for a screen.

_STATES: Mapping[JobState, Role] = {"running": "node", "queued": "plain", "later": "dim"}


def worker_lines(work: AtWork, width: int) -> list[Line]:
    """Return lines of the table of workers in so many cells, and below it the graphs without worker."""
    orphans = [
        (trusted("! ", "warning"), untrusted(orphan_words(graph), "warning", _LONGEST))
        for graph in work.orphans
    ]
    if not work.workers:
        return [(trusted("no workers: hitl-tui worker --graph GRAPH starts one", "dim"),), *orphans]
    rows = worker_rows(work.workers, work.jobs, work.now)
    roles: tuple[Role, ...] = ("name", "plain", "dim", "dim", "node", "plain")
    return [*_lines(rows, [roles] * len(work.workers), (5, 1), width), *orphans]


def job_lines(work: AtWork, width: int) -> list[Line]:
    """Return lines of the table of jobs in so many cells, with a heading; one line if there are none."""
    if not work.jobs:
        return [(trusted("nothing is queued", "dim"),)]
    roles: list[tuple[Role, ...]] = [
        ("name", "plain", "dim", "warning" if job.orphan else _STATES[job.state]) for job in work.jobs
    ]
    return _lines(job_rows(work.jobs, work.now, work.workers), roles, (1, 0), width)


def _lines(
    rows: Sequence[Sequence[str]], roles: Sequence[Sequence[Role]], give: Sequence[int], width: int
) -> list[Line]:
    widths = columns(rows, give, width)
    heading, *body = ([fitted(cell, most) for cell, most in zip(row, widths, strict=True)] for row in rows)
    gap = " " * GAP
    return [
        (trusted(gap.join(heading).rstrip(), "dim"),),
        *(
            tuple(
                trusted(cell + gap if at < len(row) - 1 else cell.rstrip(), role)
                for at, (cell, role) in enumerate(zip(row, of, strict=True))
            )
            for row, of in zip(body, roles, strict=True)
        ),
    ]
