"""How many records a second `verify`, `verify --strict` and `replay` check, on a long thread in SQLite.

    python -m tests.benchmarks.verify_speed [STEPS]

The target is 20,000 records a second of `verify --strict`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hitl_tui import END, START, Channel, SQLiteCheckpointer, StateGraph
from hitl_tui.engine.log.records import Limits
from hitl_tui.engine.runner import GraphRunner


def make_runner(store: SQLiteCheckpointer, steps: int) -> GraphRunner:
    """A loop whose node writes five channels of different reducers."""

    def work(state: Any, config: Any) -> dict[str, Any]:
        n = state["n"]
        return {
            "n": n + 1,
            "log": f"line {n} of the log",
            "total": 2,
            "facts": {f"k{n % 20}": n},
            "recent": n,
        }

    return (
        StateGraph(
            {
                "n": Channel(0),
                "log": Channel([], reducer="append"),
                "total": Channel(0, reducer="sum"),
                "facts": Channel({}, reducer="merge"),
                "recent": Channel([], reducer="last_n(8)"),
            }
        )
        .add_node("work", work)
        .add_edge(START, "work")
        .add_conditional_edge(
            "work", lambda s: "end" if s["n"] >= steps else "on", {"end": END, "on": "work"}
        )
        .compile(checkpointer=store, limits=Limits(max_iterations=None))
    )


def measure(name: str, work: Callable[[], Any]) -> None:
    """Run once and print the rate."""
    begun = time.perf_counter()
    report = work()
    seconds = time.perf_counter() - begun
    assert report.ok, report.mismatches[:3]
    rate = report.records / seconds
    print(f"{name:<14}{report.records:>9,} records  {seconds:6.2f} s  {rate:>10,.0f} a second")


def main() -> None:
    """Make the thread, then check it in each way."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteCheckpointer(Path(folder) / "runs.db")
        runner = make_runner(store, steps)
        runner.invoke(thread_id="t")
        measure("verify", lambda: runner.verify("t"))
        measure("verify strict", lambda: runner.verify("t", strict=True))
        measure("replay", lambda: runner.replay("t"))
        store.close()


if __name__ == "__main__":
    main()
