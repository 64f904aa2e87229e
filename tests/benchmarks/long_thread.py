"""Threads of any length in a store file, of a graph that the app can open again, and what it takes to run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hitl_tui import SQLiteCheckpointer
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.loading.sources import open_graph

GRAPH = """
import asyncio, os, time
from hitl_tui import END, START, Channel, StateGraph
from hitl_tui import Limits

STEPS = int(os.environ.get("STEPS", "0"))
PACE = float(os.environ.get("PACE", "0"))
TOKENS = float(os.environ.get("TOKENS", "0"))

def count(state):
    if os.environ.get("LITELLM"):
        from hitl_tui.agents.litellm_backend import preload
        preload().result()
    if PACE:
        time.sleep(PACE)
    return {"n": state["n"] + 1, "text": f"step {state['n'] + 1} " * 10}

async def write(state, config):
    for word in range(int(60 * TOKENS)):
        config.emit(f"word{word} ")
        await asyncio.sleep(1 / TOKENS)
    return {"n": state["n"] + 1}

def build(checkpointer):
    return (
        StateGraph({"n": Channel(0), "text": Channel("")}, name="long")
        .add_node("count", write if TOKENS else count)
        .add_edge(START, "count")
        .add_conditional_edge("count", lambda s: s["n"] < STEPS, {"true": "count", "false": END})
        .compile(checkpointer=checkpointer, limits=Limits(max_iterations=None))
    )
"""


def graph_file(folder: Path) -> Path:
    """The graph; its environment says how many steps it makes, and at what pace."""
    path = folder / "long.py"
    path.write_text(GRAPH)
    return path


def opened(folder: Path) -> tuple[GraphRunner, SQLiteCheckpointer]:
    """The graph on a store file in the same folder."""
    store = SQLiteCheckpointer(folder / "runs.db")
    return open_graph(str(graph_file(folder)), store), store


class Spent(NamedTuple):
    """Seconds that a run took, and seconds of processor time of its process."""

    wall: float
    cpu: float


_INVOKED = """
import sys, time
from pathlib import Path
from tests.benchmarks.long_thread import opened
runner, store = opened(Path(sys.argv[1]))
wall, cpu = time.perf_counter(), time.process_time()
runner.invoke({}, thread_id="t")
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


def invoked(steps: int) -> Spent:
    """One `invoke` of the graph on SQLite, in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        argv = [sys.executable, "-c", _INVOKED, place]
        env = {**os.environ, "STEPS": str(steps)}
        done = subprocess.run(argv, env=env, check=True, capture_output=True, text=True)
    wall, cpu = map(float, done.stdout.split())
    return Spent(wall, cpu)


def rounds(arguments: Sequence[str]) -> tuple[int, list[int]]:
    """How often to measure, and the numbers of the command line."""
    return (1 if "--quick" in arguments else 5), [int(given) for given in arguments if given.isdigit()]


def compared(
    script: str, lengths: Sequence[int], times: int, programs: Mapping[str, Callable[[int], Spent]]
) -> None:
    """Run programs in turns and print what each takes at best, beside the first of them; JSON last."""
    figures: dict[str, object] = {"script": script}
    for steps in lengths:
        spent: dict[str, list[Spent]] = {name: [] for name in programs}
        for _ in range(times):
            for name, run in programs.items():
                spent[name].append(run(steps))
        best = {name: Spent(*map(min, zip(*taken, strict=True))) for name, taken in spent.items()}
        first = next(iter(best.values()))
        for name, (wall, cpu) in best.items():
            ratios = wall / first.wall, cpu / first.cpu
            print(
                f"{steps:6,} steps  {name:8} {wall / steps * 1e6:6.0f} µs a step ({ratios[0]:.2f})   "
                f"{cpu / steps * 1e6:6.0f} µs of processor time ({ratios[1]:.2f})",
                flush=True,
            )
            figures[f"{name}_{steps}"] = {
                "wall_us": round(wall / steps * 1e6, 1),
                "cpu_us": round(cpu / steps * 1e6, 1),
                "wall_ratio": round(ratios[0], 2),
                "cpu_ratio": round(ratios[1], 2),
            }
    print(json.dumps(figures))


def many_steps(
    folder: Path, thread: str, steps: int, *, saved: bool = False
) -> tuple[GraphRunner, SQLiteCheckpointer]:
    """A thread of so many steps in a store file of its own, quickly: nothing waits for the disk.

    Args:
        saved: it was started by `save`, so that its log did not name the graph from the first step on.
    """
    os.environ["STEPS"] = str(steps)
    here = folder / thread
    here.mkdir()
    store = SQLiteCheckpointer(here / "runs.db", durability="none")
    runner = open_graph(str(graph_file(here)), store)
    started = time.perf_counter()
    if saved:
        store.save(thread, 0, {"n": 0, "text": ""})
    runner.invoke({}, thread_id=thread, resume="entry" if saved else "cursor", max_iterations=steps + 1)
    print(f"{thread}: {steps:,} steps made in {time.perf_counter() - started:.1f} s", flush=True)
    return runner, store
