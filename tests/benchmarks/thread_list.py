"""The list of threads on screen with 100,000 threads, beside one with 10.

    python -m tests.benchmarks.thread_list [--quick]

From the start of the program to the list, from a key to the next page, from a letter of a search to what it
finds, and from the key that shows the waiting ones to those; as with 10 is wanted.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.long_thread import opened
from tests.benchmarks.terminals import APP, Program, figures, homes

FEW, MANY, QUICK = 10, 100_000, 20_000
ROUNDS, QUICK_ROUNDS = 7, 3
SECOND = 1_000_000


def store_of(folder: Path, threads: int) -> Path:
    """A store with so many threads: the rows of one, a second apart, every tenth of them waiting."""
    folder.mkdir()
    runner, store = opened(folder)
    runner.invoke({"n": 1}, thread_id="thread-000000")
    store.close()
    path = folder / "runs.db"
    with sqlite3.connect(path) as db:
        for table in ("thread", "cursor"):
            names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            first = dict(zip(names, db.execute(f"SELECT * FROM {table}").fetchone(), strict=True))
            marks = ", ".join("?" * len(names))
            db.executemany(
                f"INSERT INTO {table} VALUES ({marks})",
                (tuple(row(first, number).values()) for number in range(1, threads)),
            )
    db.close()
    return path


def row(first: dict[str, object], number: int) -> dict[str, object]:
    """The row of another thread, older by so many seconds than the first one."""
    other = dict(first)
    if "key" in first:
        return other | {"key": _whole(first["key"]) + number, "id": f"thread-{number:06}"}
    moment = _whole(first["updated_at"]) - number * SECOND
    shift = _whole(first["updated_at"]) // max(_whole(first["touched"]), 1)
    waits = number % 10 == 5
    return other | {
        "thread": _whole(first["thread"]) + number,
        "updated_at": moment,
        "touched": moment >> (shift.bit_length() - 1),
        "waiting_since": moment if waits else None,
        "waiting_for": "an approval" if waits else first["waiting_for"],
    }


def _whole(value: object) -> int:
    assert isinstance(value, int)
    return value


def times(path: Path, threads: int) -> dict[str, float]:
    """Seconds of each look at the list."""
    found = f"thread-{threads - 1:06}"
    env = {**homes(path.parent), "HITL_TUI_STORE": str(path)}
    with Program([APP], env) as program:
        taken = {"opened": program.readable("thread-000000", "thread-000009")[0]}
        program.quiet(0.5)
        program.press("/")
        program.quiet(0.3)
        program.press(found[-6:])
        taken["found"] = program.until(found)
        program.press("\x7f" * 6)
        program.quiet(0.5)
        program.press("\r")
        program.quiet(0.3)
        program.press("w")
        taken["waiting"] = program.until("FOR YOU")
    return taken


def main() -> None:
    """Print the times, their ratios and one line of JSON."""
    quick = "--quick" in sys.argv
    many = QUICK if quick else MANY
    with tempfile.TemporaryDirectory() as place:
        stores = {count: store_of(Path(place) / str(count), count) for count in (FEW, many)}
        taken: dict[int, list[dict[str, float]]] = {FEW: [], many: []}
        for _ in range(QUICK_ROUNDS if quick else ROUNDS):
            for count, path in stores.items():
                taken[count].append(times(path, count))
    result: dict[str, float] = {}
    for what in ("opened", "found", "waiting"):
        few, lots = (statistics.median(one[what] for one in taken[count]) for count in (FEW, many))
        result |= {what: lots / few, f"{what} ms": lots * 1e3}
        print(f"{what:8} {FEW} threads {few * 1e3:6.0f} ms, {many:,} {lots * 1e3:6.0f} ms: {lots / few:.2f}")
    figures("thread_list", result)


if __name__ == "__main__":
    main()
