"""Where the time of one step goes, by module, and the floor: a bare sqlite3 commit in the same run.

    python -m tests.benchmarks.step_profile [--quick] [--steps 2000]

The shares are cProfile's, whose own cost weighs on small functions; the microseconds above them are
measured without it, the least of several rounds in turns.  Prints all of it as one line of JSON at the end.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import tempfile
from collections import Counter
from functools import partial
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


def shares(runner: GraphRunner) -> dict[str, float]:
    """The modules in which a run spends its time, each with its part of it."""
    profile = cProfile.Profile()
    profile.runcall(runner.invoke, {}, thread_id="profiled")
    spent: Counter[str] = Counter()
    stats: Any = pstats.Stats(profile)
    for (file, _line, function), row in stats.stats.items():
        spent[function if file == "~" else _module(file)] += row[2]
    total = sum(spent.values())
    return {name: round(own / total, 4) for name, own in spent.most_common(_SHOWN)}


def _module(file: str) -> str:
    path = Path(file)
    return f"{path.parent.name}/{path.name}" if "hitl_tui" in path.parts else path.name


def main() -> None:
    """Print microseconds a step for each store and the floor, then the shares of a step on SQLite."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--quick", action="store_true", help="fewer steps and rounds")
    options = parser.parse_args()
    steps, rounds = (500, 3) if options.quick else (options.steps, 7)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        stores: list[tuple[str, Any]] = [
            ("no store", None),
            ("memory", MemoryCheckpointer()),
            ("SQLite", SQLiteCheckpointer(Path(folder) / "ours.db")),
        ]
        took: dict[str, list[float]] = {}
        for place in range(rounds):
            for name, store in stores:
                runner = counting(store, steps)
                run = partial(runner.invoke, {}, thread_id=f"t{place}")
                took.setdefault(name, []).append(seconds(run))
            took.setdefault("floor", []).append(sum(bare(Path(folder) / f"bare{place}.db", steps)))
        for name, times in took.items():
            figures[name] = round(min(times) / steps * 1e6, 1)
            print(f"{name:<10} {figures[name]:7.1f} µs {'a bare commit' if name == 'floor' else 'a step'}")
        for name, store in stores[1:]:
            parts = figures[f"of a step, {name}"] = shares(counting(store, steps))
            print(f"of a step, {name}:")
            print("\n".join(f"  {part:6.1%}  {module}" for module, part in parts.items()))
    print(json.dumps({"benchmark": "step_profile", "quick": options.quick, **figures}))


if __name__ == "__main__":
    main()
