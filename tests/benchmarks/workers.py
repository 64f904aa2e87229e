"""What a team's server and workers take: lists beside many threads, threads a second, a long queue.

    python -m tests.benchmarks.workers [--quick] [--part lists|rate|queue]

- lists: the list of threads, the queue of decisions and the opening of a thread in a store of 10 threads, and
  in one of 100,000, a tenth of which wait for a person; what a thread and a step take on the disk;
- rate: threads and steps a second of threads of ten steps, for 1, 2 and 4 workers;
- queue: from the handing over of a thread until its first commit, with 100,000 threads in the queue that no
  worker has the graph of.

It starts a server of its own, which waits for the disk, and prints all of it as one line of JSON at the end.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

from hitl_tui.engine.log.store import Store
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from tests.benchmarks.thread_list import _copy, _patterns
from tests.support.fleet import Fleet
from tests.support.fleet_graph import ASKS, STEPS
from tests.support.postgres import Postgres, binaries

FEW, MANY, QUICK = 10, 100_000, 10_000
LOOKS = 15


def filled(url: str, threads: int) -> PostgresCheckpointer:
    """A store with so many threads, every tenth of which waits for a person."""
    store = PostgresCheckpointer(url, "none")
    done, asks = _patterns()
    for first in range(0, threads, 10_000):
        numbers = range(first, min(first + 10_000, threads))
        store.write_threads(_copy(asks if number % 10 == 5 else done, number) for number in numbers)
    return store


def looks(store: Store) -> dict[str, Callable[[], object]]:
    """What a screen asks for."""
    page = store.threads("", 50, None, "")
    return {
        "list": lambda: store.threads("", 50, None, ""),
        "next_page": lambda: store.threads("", 50, page[-1], ""),
        "search": lambda: store.threads("0005", 50),
        "queue": lambda: store.waiting(50),
        "line": lambda: store.summary("thread-000005"),
    }


def lists(server: Postgres, threads: int) -> dict[str, float]:
    """Milliseconds of each look with few and with many threads, in turns, the least of them; and ratios."""
    with closing(filled(server.new_url(), FEW)) as few, closing(filled(server.new_url(), threads)) as many:
        with server.admin() as db:
            db.execute("ANALYZE")
        asked = {"few": looks(few), "many": looks(many)}
        times: dict[tuple[str, str], list[float]] = {}
        for _ in range(LOOKS):
            for size, kinds in asked.items():
                for name, look in kinds.items():
                    begin = time.perf_counter()
                    look()
                    times.setdefault((size, name), []).append(time.perf_counter() - begin)
        least = {key: min(each) * 1e3 for key, each in times.items()}
        figures = {f"{name}_{size}_ms": round(least[size, name], 2) for size, name in least}
        figures |= {
            f"{name}_ratio": round(least["many", name] / least["few", name], 2) for name in asked["few"]
        }
        figures["bytes_a_thread"] = round(many.space().used / threads)
        return figures


def rate(server: Postgres, threads: int) -> dict[str, float]:
    """Threads and steps a second for 1, 2 and 4 workers, from the handing over of all to the last commit.

    The processor time of the workers, of the server and of those who decide tells the same on a busy machine.
    """
    figures: dict[str, float] = {}
    for workers in (1, 2, 4):
        folder = Path(tempfile.mkdtemp())
        fleet = Fleet(server, folder, workers=workers, tempo=0.0, plain=True)
        try:
            fleet.start_all()
            _until(lambda fleet=fleet, workers=workers: len(fleet.store.jobs().workers()) == workers)
            empty = fleet.store.space().used
            fleet.begin(threads, hand=False)
            busy, begin = fleet.processor(), time.perf_counter()
            fleet.hand([f"t{number}" for number in range(threads)])
            handed = time.perf_counter() - begin
            end = fleet.decide()
            _until(lambda fleet=fleet: fleet.done() == threads)
            took = time.perf_counter() - begin
            used = fleet.processor()
            end()
            steps = threads * (len(STEPS) + len(ASKS) + 1)
            figures[f"threads_a_second_{workers}"] = round(threads / took, 1)
            figures[f"steps_a_second_{workers}"] = round(steps / took, 1)
            figures[f"handed_a_second_{workers}"] = round(threads / handed, 1)
            for place, seconds in used.items():
                figures[f"{place}_processor_ms_a_thread_{workers}"] = round(
                    (seconds - busy[place]) / threads * 1e3, 1
                )
            figures["bytes_a_step"] = round((fleet.store.space().used - empty) / steps)
        finally:
            fleet.close()
            shutil.rmtree(folder, ignore_errors=True)
    return figures


def queue(server: Postgres, waiting: int, threads: int) -> dict[str, float]:
    """Milliseconds from the handing over of a thread until its first commit, behind so many in the queue."""
    figures: dict[str, float] = {}
    for size in (0, waiting):
        folder = Path(tempfile.mkdtemp())
        fleet = Fleet(server, folder, workers=2, tempo=0.0, plain=True)
        try:
            if size:
                fill_queue(fleet, size)
            fleet.start_all()
            _until(lambda fleet=fleet: len(fleet.store.jobs().workers()) == 2)
            names = fleet.begin(threads, hand=False)
            for name in names:
                fleet.mark(name)
                fleet.hand([name])
                time.sleep(0.1)
            _until(lambda fleet=fleet: len(fleet.started()) == threads)
            took = sorted(fleet.started())
            figures[f"start_after_ms_of_{size}"] = round(median(took) * 1e3, 1)
            figures[f"start_after_p95_ms_of_{size}"] = round(took[len(took) * 95 // 100] * 1e3, 1)
            begin = time.perf_counter()
            fleet.store.jobs().listed(50)
            figures[f"jobs_listed_ms_of_{size}"] = round((time.perf_counter() - begin) * 1e3, 1)
        finally:
            fleet.close()
            shutil.rmtree(folder, ignore_errors=True)
    return figures


def fill_queue(fleet: Fleet, size: int, due: str = "NULL") -> None:
    """Put threads of a graph that no worker has into the queue, by statements: copies of one that waits.

    Args:
        due: when each may be taken, in SQL.
    """
    _, asks = _patterns()
    fleet.store.write_threads([_copy(asks, 0)])

    def columns(table: str, leave: str) -> str:
        of = f"FROM information_schema.columns WHERE table_name = '{table}' AND table_schema = current_schema"
        return str(fleet.asked(f"SELECT string_agg(quote_ident(column_name), ', ') {of} AND {leave}")[0][0])

    thread = columns("thread", "column_name NOT IN ('key', 'id')")
    cursor = columns("cursor", "column_name <> 'thread'")
    pattern = "thread WHERE id = 'thread-000000'"
    fleet.run(
        "SET session_replication_role = replica",  # no triggers
        f"INSERT INTO thread (key, id, {thread}) SELECT 1000000 + n, 'thread-' || to_char(n, 'FM000000'), "
        f"{thread} FROM {pattern.replace(' WHERE', ', generate_series(1, ' + str(size) + ') AS n WHERE')}",
        f"INSERT INTO cursor (thread, {cursor}) SELECT key, {cursor} FROM cursor, thread "
        f"WHERE key > 1000000 AND thread = (SELECT key FROM {pattern})",
        "INSERT INTO work (thread, priority) SELECT key, 0 FROM thread WHERE key > 1000000",
        "INSERT INTO procrastinate_jobs "
        "(queue_name, task_name, lock, queueing_lock, args, scheduled_at) "
        "SELECT left(graph_digest, 32), 'advance', key::text, key::text, "
        f"jsonb_build_object('thread', id, 'version', 1, 'tries', 0, 'why', ''), {due} "
        "FROM thread WHERE key > 1000000",
        "UPDATE store SET threads = 2000000",
        "SET session_replication_role = DEFAULT",
        "ANALYZE",
    )


def _until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 1800
    while not true():
        if time.monotonic() > end:
            raise SystemExit("it does not end")
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer threads")
    parser.add_argument("--part", choices=("lists", "rate", "queue"))
    options = parser.parse_args()
    programs = binaries()
    if programs is None:
        raise SystemExit("no PostgreSQL server here")
    many = QUICK if options.quick else MANY
    parts: dict[str, Callable[[Postgres], dict[str, float]]] = {
        "lists": lambda server: lists(server, many),
        "rate": lambda server: rate(server, 40 if options.quick else 200),
        "queue": lambda server: queue(server, many, 50 if options.quick else 200),
    }
    figures: dict[str, Any] = {}
    server = Postgres(programs, durable=True)
    try:
        for name, part in parts.items():
            if options.part in (None, name):
                figures |= part(server)
    finally:
        server.close()
    for name, value in figures.items():
        print(f"{name:<36} {value:>12,.2f}")
    print(json.dumps({"benchmark": "workers", "quick": options.quick, **figures}))


if __name__ == "__main__":
    main()
