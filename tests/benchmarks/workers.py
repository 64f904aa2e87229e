"""What a team's server and workers take: lists beside many threads, threads a second, a long queue.

    python -m tests.benchmarks.workers [--quick] [--part lists|screens|rate|queue|idle]

- lists: the list of threads, the queue of decisions and the opening of a thread in a store of 10 threads, and
  in one of 100,000, a tenth of which wait for a person;
- screens: until a terminal shows the list, the queue and what a search finds, with 10 threads and 100,000;
- rate: threads and steps a second of threads of ten steps, for 1, 2 and 4 workers;
- queue: from the handing over of a thread until its first commit, with 100,000 threads in the queue: that no
  worker has the graph of, ready or with a deadline to come; or of the same graph, where the thread goes first
  by its priority; and how long it takes to look at the queue;
- idle: what a worker takes that has nothing to do.

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
from hitl_tui.stores.postgres.jobs import DIGEST
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from hitl_tui.stores.rows import TOUCHED_SHIFT
from tests.benchmarks.thread_list import _copy, _patterns, times, whole
from tests.support.fleet import Fleet
from tests.support.fleet_graph import ASKS, STEPS
from tests.support.postgres import Postgres, binaries

FEW, MANY, QUICK = 10, 100_000, 10_000
LOOKS = 15
PAINTS = 3
FIRST = 1_000_000_000
"""Behind it are the keys of copies."""


def filled(server: Postgres, threads: int) -> str:
    """The URL of a store with so many threads, every tenth of which waits for a person."""
    url = server.new_url()
    with closing(PostgresCheckpointer(url, "none")) as store:
        done, asks = _patterns()
        store.write_threads([_copy(done, 1)])
        # Those that wait are whole: what they ask is read.
        store.write_threads(_copy(asks, number) for number in range(5, threads, 10))
        multiply(server, url, threads, "n % 10 <> 5")
        whole(store)
    return url


def multiply(server: Postgres, url: str, threads: int, which: str = "n <> 5") -> None:
    """Copy the threads 1 and 5 by statements until there are so many, each a second older than the last.

    What they hold is that of the pattern, under another name: enough to be listed.

    Args:
        which: of their numbers n, in SQL.
    """

    def columns(table: str, *without: str) -> str:
        rows = db.execute(
            "SELECT quote_ident(column_name) FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s",
            (url.rpartition("=")[2], table),
        ).fetchall()
        return ", ".join(str(name) for (name,) in rows if name not in without)

    with server.admin() as db:
        db.execute(f"SET search_path = {url.rpartition('=')[2]}".encode())
        thread = columns("thread", "key", "id")
        times = ("waiting_since", "updated_at", "touched")
        cursor = columns("cursor", "thread", *times)
        for statement in (
            "SET session_replication_role = replica",  # no triggers
            f"INSERT INTO thread (key, id, {thread}) "
            f"SELECT {FIRST} + n, 'thread-' || to_char(n, 'FM000000'), {thread} "
            f"FROM generate_series(2, {threads - 1}) AS n JOIN thread "
            "ON id = CASE WHEN n % 10 = 5 THEN 'thread-000005' ELSE 'thread-000001' END "
            f"WHERE {which}",
            f"INSERT INTO cursor (thread, {', '.join(times)}, {cursor}) SELECT new.key, "
            f"waiting_since - (new.key - {FIRST}) * 1000000, updated_at - (new.key - {FIRST}) * 1000000, "
            f"(updated_at - (new.key - {FIRST}) * 1000000) >> {TOUCHED_SHIFT}, {cursor} "
            f"FROM thread AS new JOIN thread AS pattern ON pattern.key < {FIRST} AND pattern.id = "
            f"CASE WHEN new.key % 10 = 5 THEN 'thread-000005' ELSE 'thread-000001' END "
            f"JOIN cursor ON cursor.thread = pattern.key WHERE new.key > {FIRST}",
            f"UPDATE store SET threads = {FIRST} + {threads}",
            "SET session_replication_role = DEFAULT",
            "ANALYZE",
        ):
            db.execute(statement.encode())


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
    urls = filled(server, FEW), filled(server, threads)
    with closing(PostgresCheckpointer(urls[0])) as few, closing(PostgresCheckpointer(urls[1])) as many:
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
        return figures


def screens(server: Postgres, threads: int) -> dict[str, float]:
    """Milliseconds until the list is painted, what a search finds, and the queue; in turns."""
    urls = {FEW: filled(server, FEW), threads: filled(server, threads)}
    taken: dict[tuple[str, int], list[float]] = {}
    for _ in range(PAINTS):
        for size, url in urls.items():
            with tempfile.TemporaryDirectory() as home:
                for name, seconds in times(url, Path(home), size).items():
                    taken.setdefault((name, size), []).append(seconds)
    least = {key: min(each) * 1e3 for key, each in taken.items()}
    return {
        **{f"painted_{name}_ms_of_{size}": round(each, 1) for (name, size), each in least.items()},
        **{
            f"painted_{name}_ratio": round(least[name, threads] / least[name, FEW], 2)
            for name, size in least
            if size == FEW
        },
    }


def idle(server: Postgres, seconds: float) -> dict[str, float]:
    """What a worker takes to which nothing is given: transactions a second, and processor time."""
    fleet = Fleet(server, Path(tempfile.mkdtemp()), workers=1, plain=True)
    try:
        fleet.start_all()
        _until(lambda: len(fleet.store.jobs().workers()) == 1)
        time.sleep(3)
        asked, busy = _transactions(fleet), fleet.processor()
        time.sleep(seconds)
        transactions, used = _transactions(fleet), fleet.processor()
        return {
            "idle_transactions_a_second": round((transactions - asked) / seconds, 1),
            "idle_worker_processor_percent": round((used["workers"] - busy["workers"]) / seconds * 100, 2),
            "idle_server_processor_percent": round((used["server"] - busy["server"]) / seconds * 100, 2),
        }
    finally:
        fleet.close()


def _transactions(fleet: Fleet) -> int:
    return int(fleet.asked("SELECT sum(xact_commit) FROM pg_stat_database")[0][0])


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
    """Milliseconds from the handing over of a thread until its first commit, behind so many in the queue.

    They are of a graph that no worker has, all of them ready or all with a deadline to come; or of that of
    the thread, which has a higher priority.
    """
    figures: dict[str, float] = {}
    for name, size, due, same in (
        ("0", 0, "", False),
        (f"{waiting}", waiting, "NULL", False),
        (f"{waiting}_deadlines", waiting, "now() + interval '1 day' * (1 + random())", False),
        (f"{waiting}_of_its_graph", waiting, "NULL", True),
    ):
        folder = Path(tempfile.mkdtemp())
        fleet = Fleet(server, folder, workers=2, tempo=0.0, plain=True)
        try:
            if size:
                fill_queue(fleet, size, due, fleet.runner.graph.digest if same else "")
            fleet.start_all()
            _until(lambda fleet=fleet: len(fleet.store.jobs().workers()) == 2)
            names = fleet.begin(threads, hand=False)
            for thread in names:
                fleet.mark(thread)
                fleet.store.jobs().hand(thread, priority=int(same))
                time.sleep(0.1)
            _until(lambda fleet=fleet: len(fleet.started()) == threads)
            took = sorted(fleet.started())
            figures[f"start_after_ms_of_{name}"] = round(median(took) * 1e3, 1)
            figures[f"start_after_p95_ms_of_{name}"] = round(took[len(took) * 95 // 100] * 1e3, 1)
            jobs = fleet.store.jobs()
            for what, look in {
                "listed": lambda jobs=jobs: jobs.listed(50),
                "at_work": lambda jobs=jobs: jobs.at_work(50),
                "taken": lambda fleet=fleet: fleet.store._rows(
                    "SELECT * FROM take_job(?, NULL)", (["none"],)
                ),
            }.items():
                figures[f"{what}_ms_of_{name}"] = round(min(map(_seconds, [look] * LOOKS)) * 1e3, 1)
        finally:
            fleet.close()
            shutil.rmtree(folder, ignore_errors=True)
    return figures


def _seconds(look: Callable[[], object]) -> float:
    begin = time.perf_counter()
    look()
    return time.perf_counter() - begin


def fill_queue(fleet: Fleet, size: int, due: str = "NULL", digest: str = "") -> None:
    """Put threads into the queue, by statements.

    Args:
        due: when each may be taken, in SQL.
        digest: of the graph whose queue it is; of one that no worker has if empty.
    """
    queue = f"'{digest}'" if digest else "graph_digest"
    done, asks = _patterns()
    fleet.store.write_threads([_copy(done, 1), _copy(asks, 5)])
    multiply(fleet.server, fleet.url, size + 2)
    fleet.run(
        "SET session_replication_role = replica",
        f"INSERT INTO work (thread, priority) SELECT key, 0 FROM thread WHERE key > {FIRST}",
        "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args, scheduled_at) "
        f"SELECT left({queue}, {DIGEST}), 'advance', key::text, key::text, "
        f"jsonb_build_object('thread', id, 'version', 1, 'tries', 0, 'why', ''), {due} "
        f"FROM thread WHERE key > {FIRST}",
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
    parser.add_argument("--part", choices=("lists", "screens", "rate", "queue", "idle"))
    options = parser.parse_args()
    programs = binaries()
    if programs is None:
        raise SystemExit("no PostgreSQL server here")
    many = QUICK if options.quick else MANY
    parts: dict[str, Callable[[Postgres], dict[str, float]]] = {
        "lists": lambda server: lists(server, many),
        "rate": lambda server: rate(server, 40 if options.quick else 200),
        "screens": lambda server: screens(server, many),
        "idle": lambda server: idle(server, 10.0 if options.quick else 60.0),
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
