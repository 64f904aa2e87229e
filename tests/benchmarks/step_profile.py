"""Where the time of one step goes, by module, and the floor: a bare sqlite3 commit in the same run.

    python -m tests.benchmarks.step_profile [STEPS]

The shares are cProfile's, whose own cost weighs on small functions; the microseconds above them are
measured without it.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hitl_tui import END, START, Channel, MemoryCheckpointer, SQLiteCheckpointer, StateGraph
from hitl_tui.engine.log.records import Limits
from hitl_tui.engine.runner import GraphRunner
from tests.benchmarks.store_commit import bare
from tests.benchmarks.typed import seconds

_SHOWN = 14


def counting(store: Any, steps: int) -> GraphRunner:
    """A node that counts up, round and round."""
    return (
        StateGraph({"n": Channel(0)})
        .add_node("count", lambda state: {"n": state["n"] + 1})
        .add_edge(START, "count")
        .add_conditional_edge("count", lambda s: s["n"] < steps, {"true": "count", "false": END})
        .compile(checkpointer=store, limits=Limits(max_iterations=None))
    )


def shares(runner: GraphRunner) -> None:
    """The modules in which a run spends its time, with what of it is their own."""
    profile = cProfile.Profile()
    profile.runcall(runner.invoke, {}, thread_id="profiled")
    spent: Counter[str] = Counter()
    stats: Any = pstats.Stats(profile)
    for (file, _line, function), row in stats.stats.items():
        spent[function if file == "~" else _module(file)] += row[2]
    total = sum(spent.values())
    for name, own in spent.most_common(_SHOWN):
        print(f"  {own / total:6.1%}  {name}")


def _module(file: str) -> str:
    path = Path(file)
    return f"{path.parent.name}/{path.name}" if "hitl_tui" in path.parts else path.name


def main() -> None:
    """Print microseconds a step for each store and the floor, then the shares of a step on SQLite."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    with tempfile.TemporaryDirectory() as folder:
        floor = sum(bare(Path(folder) / "bare.db", steps)) / steps * 1e6
        stores: list[tuple[str, Any]] = [
            ("no store", None),
            ("memory", MemoryCheckpointer()),
            ("SQLite", SQLiteCheckpointer(Path(folder) / "ours.db")),
        ]
        for name, store in stores:
            runner = counting(store, steps)
            took = min(seconds(lambda r=runner, i=i: r.invoke({}, thread_id=f"t{i}")) for i in range(3))  # type: ignore[misc]
            print(f"{name:<10} {took / steps * 1e6:7.1f} µs a step")
        print(f"{'floor':<10} {floor:7.1f} µs a bare commit of two rows")
        for name, store in stores[1:]:
            print(f"of a step, {name}:")
            shares(counting(store, steps))


if __name__ == "__main__":
    main()
