"""A large nested mapping of which each step changes one leaf, on SQLite: time and bytes a step beside
LangGraph's.

    PYTHONPATH=. bench/bin/python -m tests.benchmarks.large_values [--quick]

`bench` is an environment with "langgraph==1.2.*" and langgraph-checkpoint-sqlite; without them ours alone is
measured.  The node makes the new mapping around the parts that stay ("shared"), or changes a deep copy
("copied").  The last line is JSON.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import random
import sqlite3
import string
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from hitl_tui import END, START, Channel, SQLiteCheckpointer, StateGraph
from hitl_tui.engine.log.records import Limits

Edit = Callable[[dict[str, Any], int], dict[str, Any]]

WIDTH = 10


def document(size: int) -> dict[str, Any]:
    """A mapping of ten mappings of ten mappings of texts, of about `size` bytes."""
    source = random.Random(1)
    leaves = max(1, size // (WIDTH * WIDTH * 110))
    return {
        f"part{a}": {
            f"section{b}": {
                f"leaf{c}": "".join(source.choices(string.ascii_letters, k=95)) for c in range(leaves)
            }
            for b in range(WIDTH)
        }
        for a in range(WIDTH)
    }


def shared(old: dict[str, Any], n: int) -> dict[str, Any]:
    """The mapping with another leaf; all else is the old one's."""
    part, section = f"part{n % WIDTH}", f"section{n // WIDTH % WIDTH}"
    sections = old[part]
    leaves = {**sections[section], f"leaf{n % len(sections[section])}": f"changed in step {n}"}
    return {**old, part: {**sections, section: leaves}}


def copied(old: dict[str, Any], n: int) -> dict[str, Any]:
    """A deep copy of the mapping with another leaf."""
    new = copy.deepcopy(old)
    leaves = new[f"part{n % WIDTH}"][f"section{n // WIDTH % WIDTH}"]
    leaves[f"leaf{n % len(leaves)}"] = f"changed in step {n}"
    return new


class Run(NamedTuple):
    """One run: how long it took, and how large its store was at its end."""

    seconds: float
    bytes: int


class State(TypedDict):
    n: int
    doc: dict[str, Any]


def ours(path: Path, edit: Edit, steps: int, doc: dict[str, Any]) -> Callable[[], Any]:
    """A run of our engine over `steps` steps."""
    graph = (
        StateGraph({"n": Channel(0), "doc": Channel({}, reducer="overwrite")})
        .add_node("edit", lambda state: {"n": state["n"] + 1, "doc": edit(state["doc"], state["n"])})
        .add_edge(START, "edit")
        .add_conditional_edge("edit", lambda s: s["n"] < steps, {"true": "edit", "false": END})
        .compile(
            checkpointer=SQLiteCheckpointer(path),
            limits=Limits(max_iterations=None),
            max_update_bytes=1 << 22,
        )
    )
    return lambda: graph.invoke({"n": 0, "doc": doc}, thread_id="t")


def theirs(path: Path, edit: Edit, steps: int, doc: dict[str, Any]) -> Callable[[], Any]:
    """The same run of LangGraph."""
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import StateGraph as TheirGraph

    graph = TheirGraph(State)
    graph.add_node("edit", lambda state: {"n": state["n"] + 1, "doc": edit(state["doc"], state["n"])})
    graph.set_entry_point("edit")
    graph.add_conditional_edges("edit", lambda s: "__end__" if s["n"] >= steps else "edit")
    compiled = graph.compile(checkpointer=SqliteSaver(sqlite3.connect(path, check_same_thread=False)))
    config: Any = {"recursion_limit": steps + 10, "configurable": {"thread_id": "t"}}
    return lambda: compiled.invoke({"n": 0, "doc": doc}, config)


def run(make: Callable[..., Callable[[], Any]], edit: Edit, steps: int, doc: dict[str, Any]) -> Run:
    """How long a run of so many steps takes, and how large its store is then."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "runs.db"
        invoke = make(path, edit, steps, doc)
        gc.collect()
        started = time.perf_counter()
        invoke()
        seconds = time.perf_counter() - started
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return Run(seconds, path.stat().st_size)


def a_step(runs: list[tuple[Run, Run]], steps: int) -> tuple[int, int]:
    """Microseconds and bytes of a step, from pairs of a run of one step and one of `steps`: what comes once,
    as the first value, is in both."""
    short, long = zip(*runs, strict=True)
    seconds = min(one.seconds for one in long) - min(one.seconds for one in short)
    size = min(one.bytes for one in long) - min(one.bytes for one in short)
    return round(seconds / (steps - 1) * 1e6), round(size / (steps - 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    steps, rounds = (60, 2) if options.quick else (200, 5)
    try:
        import langgraph  # noqa: F401
    except ImportError:
        makers: tuple[Any, ...] = (ours,)
    else:
        makers = (ours, theirs)
    figures: dict[str, dict[str, float]] = {}
    for name, size, count in (("100 KB", 100_000, steps), ("1 MB", 1_000_000, steps // 4)):
        doc = document(size)
        for edit in (shared, copied):
            runs: dict[Any, list[tuple[Run, Run]]] = {make: [] for make in makers}
            for _ in range(rounds):
                for make, pairs in runs.items():
                    pairs.append((run(make, edit, 1, doc), run(make, edit, count, doc)))
            took = {make: a_step(pairs, count) for make, pairs in runs.items()}
            row: dict[str, float] = dict(zip(("us", "bytes"), took[ours], strict=True))
            print(f"{name:6} {edit.__name__:6}: {row['us']:8,} µs {row['bytes']:9,} bytes a step", end="")
            if theirs in took:
                row |= zip(("langgraph_us", "langgraph_bytes"), took[theirs], strict=True)
                row["faster"] = round(row["langgraph_us"] / row["us"], 2)
                print(f"; LangGraph {row['langgraph_us']:8,} µs {row['langgraph_bytes']:9,} bytes", end="")
                print(f": {row['faster']:.2f} times as fast", end="")
            print()
            figures[f"{name} {edit.__name__}"] = row
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
