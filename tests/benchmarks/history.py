"""Looking back in a long thread and forking from it, beside LangGraph where it can do the same, in one run.

    bench/bin/python -m tests.benchmarks.history [STEPS]

with an environment as for engine_vs_langgraph.  Prints medians and worsts of 100; asserts nothing.
"""

from __future__ import annotations

import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import count, islice
from pathlib import Path
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import StateGraph as TheirGraph

from hitl_tui import END, START, Channel, GraphRunner, SQLiteCheckpointer, StateGraph
from hitl_tui.engine.log.records import Limits
from hitl_tui.engine.thread.rebuild import state_at
from tests.benchmarks.long_thread import opened

TIMES = 100
ENTRIES = 5_000


def figure(name: str, call: Callable[[Any], Any], places: Iterable[Any]) -> None:
    """Print the median and the worst time of calls."""
    taken = []
    for place in places:
        started = time.perf_counter()
        call(place)
        taken.append((time.perf_counter() - started) * 1e3)
    print(f"{name:52} median {statistics.median(taken):8.2f} ms   worst {max(taken):8.2f} ms", flush=True)


def ours(folder: Path, steps: int) -> None:
    """Pages, states and forks of a thread of so many steps."""
    os.environ["STEPS"] = str(steps)
    runner, store = opened(folder)
    runner.invoke({}, thread_id="t")
    choose = random.Random(1)
    places = [choose.randrange(steps) for _ in range(TIMES)]
    numbers = count()
    figure(f"ours, {steps:,} steps: newest 50", lambda _: store.checkpoints("t", None, 50), range(TIMES))
    figure(f"ours, {steps:,} steps: state at any step", lambda step: state_at(store, "t", step), places)
    figure(
        f"ours, {steps:,} steps: fork at any step",
        lambda step: runner.fork("t", step, f"fork-{next(numbers)}"),
        places,
    )
    store.close()


def appending(store: SQLiteCheckpointer) -> GraphRunner:
    """An append channel with a counter beside it."""
    return (
        StateGraph({"n": Channel(0), "log": Channel([], reducer="append")})
        .add_node("add", lambda state: {"n": state["n"] + 1, "log": f"{state['n']:0200}"})
        .add_edge(START, "add")
        .add_conditional_edge("add", lambda s: s["n"] < ENTRIES, {"true": "add", "false": END})
        .compile(checkpointer=store, limits=Limits(max_iterations=None))
    )


def ours_appending(folder: Path) -> None:
    """States of an append channel, whose size grows with the step."""
    store = SQLiteCheckpointer(folder / "append.db")
    appending(store).invoke({}, thread_id="t")
    choose = random.Random(1)
    places = [choose.randrange(ENTRIES) for _ in range(TIMES)]
    label = f"ours, append of {ENTRIES:,} entries: state at"
    figure(f"{label} any step", lambda step: state_at(store, "t", step), places)
    figure(
        f"{label} the newest steps", lambda step: state_at(store, "t", step), range(ENTRIES - 100, ENTRIES)
    )
    store.close()


def theirs(folder: Path, steps: int) -> None:
    """The same of LangGraph."""

    class State(TypedDict):
        n: int
        text: str

    def step(state: State) -> State:
        return {"n": state["n"] + 1, "text": f"step {state['n'] + 1} " * 10}

    graph = TheirGraph(State)
    graph.add_node("count", step)
    graph.set_entry_point("count")
    graph.add_conditional_edges("count", lambda s: "__end__" if s["n"] >= steps else "count")
    saver = SqliteSaver(sqlite3.connect(folder / "theirs.db", check_same_thread=False))
    compiled = graph.compile(checkpointer=saver)
    config: Any = {"recursion_limit": steps + 10, "configurable": {"thread_id": "t"}}
    compiled.invoke({"n": 0, "text": ""}, config)
    label = f"LangGraph, {steps:,} steps:"
    newest = compiled.get_state_history
    figure(f"{label} newest 50", lambda _: list(newest(config, limit=50)), range(20))
    points = [point.config for point in islice(newest(config), 0, steps, max(1, steps // 50))]
    figure(f"{label} state at any step", compiled.get_state, points)
    figure(f"{label} fork at any step", lambda at: compiled.update_state(at, {"text": "fork"}), points)


def main() -> None:
    """Print ours for a short and a long thread, then theirs."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for length in (100, steps):
        with tempfile.TemporaryDirectory() as folder:
            ours(Path(folder), length)
    with tempfile.TemporaryDirectory() as folder:
        ours_appending(Path(folder))
        theirs(Path(folder), steps)


if __name__ == "__main__":
    main()
