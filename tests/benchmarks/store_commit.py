"""What a commit costs: microseconds and bytes a step on SQLite, beside a bare two-row commit.

    python -m tests.benchmarks.store_commit [--quick] [--steps 5000]

Prints all of it as one line of JSON at the end.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import get_args

from hitl_tui.engine.log.records import Checkpoint, Commit, Cursor, LedgerEntry, UpdateRecord
from hitl_tui.engine.log.store import Durability
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.stores import Checkpointer, MemoryCheckpointer, SQLiteCheckpointer, open_store

ENTRY = "x" * 200


def record(seq: int, step: int, channel: str, reducer: str, update: object) -> UpdateRecord:
    source = b"%s%d" % (channel.encode(), step)
    return UpdateRecord(
        thread_id="t",
        seq=seq,
        step=step,
        invocation=1,
        node="append",
        path="",
        attempt=1,
        channel=channel,
        op="reduce",
        reducer=reducer,
        visibility="public",
        source="node",
        update=update,
        previous_hash=sha256(b"p" + source).digest(),
        update_hash=sha256(b"u" + source).digest(),
        next_hash=sha256((b"u" if reducer == "overwrite" else b"n") + source).digest(),
        tainted=False,
        actor=None,
        note=None,
        at=1_760_000_000_000_000 + step,
        prev_record_hash=b"",
        record_hash=sha256(b"r" + source).digest(),
    )


def prepared(steps: int, token: str, deciding: int) -> list[Commit]:
    """Commits of two records and a checkpoint, as a counter beside an append channel writes them.

    Args:
        deciding: every so many of them are decisions; 0 for none.
    """
    commits = []
    for step in range(steps):
        seq = 2 * step + 1
        records = (
            record(seq, step, "entries", "append", ENTRY),
            record(seq + 1, step, "counter", "overwrite", step),
        )
        point = Checkpoint(
            thread_id="t",
            step=step,
            parent_thread="t",
            parent_step=step - 1,
            source="node",
            node="append",
            position="node:append",
            status="running",
            reason="",
            invocation=1,
            iteration=step,
            attempt=1,
            duration=100,
            tokens_in=0,
            tokens_out=0,
            cost=0.0,
            state_hash=sha256(b"s%d" % step).digest(),
            first_seq=seq,
            last_seq=seq + 1,
            at=1_760_000_000_000_000 + step,
            ledger_hash=sha256(b"l").digest(),
            cursor_hash=sha256(b"u%d" % step).digest(),
            checkpoint_hash=sha256(b"c%d" % step).digest(),
        )
        cursor = Cursor(
            "t",
            version=step + 1,
            head=step,
            last_seq=seq + 1,
            last_record_hash=records[-1].record_hash,
            status="running",
            position="node:append",
            visits={"append": step},
            updated_at=point.at,
        )
        decided = deciding and step % deciding == 0
        entries = (LedgerEntry("t", step + 1, "answer", step, "r", "ann", None, b"", {}, 0, b"", b""),)
        commits.append(Commit(cursor, step, token, records, point, ledger=entries if decided else ()))
    return commits


def run(store: Checkpointer, steps: int, deciding: int = 0) -> list[float]:
    """Seconds of each commit; every `deciding` of them is a decision."""
    store.create_thread(ThreadInfo("t", "bench", "", {}, None, -1, 0, 0), Cursor("t"))
    lease = store.new_lease(time.time_ns() // 1000)
    store.acquire("t", lease, 0)
    times = []
    for commit in prepared(steps, lease.token, deciding):
        begin = time.perf_counter()
        store.commit("t", commit)
        times.append(time.perf_counter() - begin)
    return times


def bare(path: Path, steps: int) -> list[float]:
    """Seconds of each commit of two rows of the same size, with nothing else."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("CREATE TABLE record (id INTEGER PRIMARY KEY, body BLOB)")
    times = []
    for step in range(steps):
        begin = time.perf_counter()
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO record VALUES (?, ?)", (2 * step, ENTRY))
        db.execute("INSERT INTO record VALUES (?, ?)", (2 * step + 1, ENTRY))
        db.execute("COMMIT")
        times.append(time.perf_counter() - begin)
    db.close()
    return times


def timed(what: str, call: Callable[[], object], times: int = 21) -> float:
    """Milliseconds of a call, the median."""
    took = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        took.append(time.perf_counter() - begin)
    print(f"{what:<44} {median(took) * 1e3:8.2f} ms")
    return round(median(took) * 1e3, 3)


def durability(directory: Path, steps: int) -> dict[str, float]:
    """What waiting for the disk costs, by store and durability: microseconds a commit."""
    figures = {}
    for kind in ("sqlite", "files"):
        for which in get_args(Durability):
            for deciding in (0, 10) if which == "decisions" else (0,):
                name = f"{kind} {which}{' (each 10th decides)' if deciding else ''}"
                place = directory / name.replace(" ", "-")
                url = f"files:{place}" if kind == "files" else f"{place}.db"
                with closing(open_store(url, which)) as store:
                    times = run(store, steps, deciding)
                figures[name] = round(sum(times) / steps * 1e6, 1)
                print(f"{name:<44} {figures[name]:8.1f} us a commit")
                if deciding:
                    figures[f"{name}, a decision itself"] = round(median(times[::deciding]) * 1e6, 1)
                    print(f"{'  a decision itself':<44} {median(times[::deciding]) * 1e6:8.1f} us (median)")
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=5_000)
    parser.add_argument("--quick", action="store_true", help="fewer steps, and no waiting for the disk")
    options = parser.parse_args()
    steps = 1_000 if options.quick else options.steps
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "store.db"
        floor = bare(Path(directory) / "bare.db", steps)
        store = SQLiteCheckpointer(path)
        ours = run(store, steps)
        memory = run(MemoryCheckpointer(), steps)
        for name, times in (("bare", floor), ("sqlite", ours), ("memory", memory)):
            mean, middle = sum(times) / steps * 1e6, median(times) * 1e6
            figures[f"{name}_us"] = round(middle, 1)
            print(f"{name:<8} {mean:7.1f} us a commit (median {middle:.1f})")
        figures["ratio"] = round(median(ours) / median(floor), 2)
        print(f"ratio    {figures['ratio']:7.2f} sqlite to bare")
        reads: dict[str, Callable[[], object]] = {
            "newest 50 checkpoints": lambda: store.checkpoints("t", None, 50),
            "50 checkpoints in the middle": lambda: store.checkpoints("t", steps // 2, 50),
            "records of one step": lambda: list(store.records("t", steps // 2, steps // 2)),
            "records of 100 steps": lambda: list(store.records("t", steps // 2, steps // 2 + 99)),
            "totals at the head": lambda: store.totals("t", steps),
        }
        figures["reads_ms"] = {name: timed(name, read) for name, read in reads.items()}
        store.close()
        if not options.quick:
            figures["durability_us"] = durability(Path(directory), min(steps, 1000))
        figures["bytes_a_step"] = path.stat().st_size // steps
        print(f"bytes    {path.stat().st_size:,} in all, {figures['bytes_a_step']} a step")
    print(json.dumps({"benchmark": "store_commit", "quick": options.quick, **figures}))


if __name__ == "__main__":
    main()
