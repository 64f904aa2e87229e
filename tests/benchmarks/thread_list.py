"""The list of threads on screen with 100,000 threads, beside one with 10.

    python -m tests.benchmarks.thread_list [--quick]

From the start of the program to the list, from a key to the next page, from a letter of a search to what it
finds, and from the key that shows the waiting ones to those; as with 10 is wanted.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from hitl_tui import END, START, Channel, MemoryCheckpointer, SQLiteCheckpointer, StateGraph
from hitl_tui.engine.log.records import Checkpoint, Commit, Cursor
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.thread.hashes import facts_hash
from hitl_tui.stores import Checkpointer
from hitl_tui.stores.lineage import ImportedThread
from tests.benchmarks.terminals import APP, Program, figures, homes

FEW, MANY, QUICK = 10, 100_000, 20_000
ROUNDS, QUICK_ROUNDS = 7, 3
SECOND = 1_000_000


def store_of(folder: Path, threads: int) -> Path:
    """A store with so many threads, a second apart: copies of one that is done, and every tenth of one that
    waits for an approval, each with its facts, its cursor and its newest checkpoint.  The newest is whole:
    it is opened below the queue."""
    folder.mkdir()
    path = folder / "runs.db"
    done, asks = _patterns()
    store = SQLiteCheckpointer(path, durability="none")
    store.write_threads(_copy(asks if number % 10 == 5 else done, number) for number in range(1, threads))
    whole(store)
    store.close()
    return path


def whole(store: Checkpointer) -> None:
    """The newest thread, which is opened below the queue."""
    _graph("done").compile(checkpointer=store).invoke(thread_id="thread-000000")


class Pattern(NamedTuple):
    """What is copied of a thread."""

    info: ThreadInfo
    cursor: Cursor
    point: Checkpoint


def _graph(name: str) -> StateGraph:
    """A graph of one node, which is done or asks."""
    nodes = {"done": lambda state: {"n": 1}, "asks": lambda state, config: config.interrupt("Go?")}
    graph = StateGraph({"n": Channel(0)}, name=name).add_node("work", nodes[name])
    return graph.add_edge(START, "work").add_edge("work", END)


def _patterns() -> tuple[Pattern, Pattern]:
    """A thread that is done, and one that waits."""
    store = MemoryCheckpointer()
    for name in ("done", "asks"):
        _graph(name).compile(checkpointer=store).invoke(thread_id=name)

    def pattern(name: str) -> Pattern:
        info, cursor = store.info(name), store.cursor(name)
        point = store.checkpoint(name, cursor.head) if cursor else None
        assert info
        assert cursor
        assert point
        return Pattern(info, cursor, point)

    return pattern("done"), pattern("asks")


def _copy(pattern: Pattern, number: int) -> ImportedThread:
    """The pattern under another name, older by so many seconds."""
    name, back = f"thread-{number:06}", number * SECOND
    info = replace(pattern.info, thread_id=name, created_at=pattern.info.created_at - back)
    moment = pattern.cursor.updated_at - back
    pending = tuple(replace(request, asked_at=moment) for request in pattern.cursor.pending)
    cursor = replace(pattern.cursor, thread_id=name, updated_at=moment, pending=pending)
    point = replace(pattern.point, thread_id=name, at=moment)
    info = replace(info, facts_hash=facts_hash(info))
    return ImportedThread(info, (), [Commit(cursor, 0, "", checkpoint=point)])


def times(store: str, home: Path, threads: int) -> dict[str, float]:
    """Seconds of each look at the list."""
    found = f"thread-{threads - 1:06}"
    env = {**homes(home), "HITL_TUI_STORE": store}
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
                taken[count].append(times(str(path), path.parent, count))
    result: dict[str, float] = {}
    for what in ("opened", "found", "waiting"):
        few, lots = (statistics.median(one[what] for one in taken[count]) for count in (FEW, many))
        result |= {what: lots / few, f"{what} ms": lots * 1e3}
        print(f"{what:8} {FEW} threads {few * 1e3:6.0f} ms, {many:,} {lots * 1e3:6.0f} ms: {lots / few:.2f}")
    figures("thread_list", result)


if __name__ == "__main__":
    main()
