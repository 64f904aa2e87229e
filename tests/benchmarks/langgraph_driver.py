"""A LangGraph thread stepped by our driver beside a bare loop, and a long one opened.

`python -m tests.benchmarks.langgraph_driver [--quick]`; prints figures in words and one line of JSON.  The
bare loop is what whoever steps a graph by hand writes: `stream(None, config, interrupt_after="*")`, then
`get_state`; `streamed` is the same loop that also gets messages, custom text, tasks and checkpoints, which is
what our steps are shown by.  All are run in turns, of each the best of several is taken.
"""

from __future__ import annotations

import asyncio
import json
import operator
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from hitl_tui.drivers.langgraph.hub import LangGraphHub
from hitl_tui.drivers.langgraph.pregel import MODES
from hitl_tui.engine.commands import Run, Start, Step
from hitl_tui.stores import open_store

QUICK = "--quick" in sys.argv
STEPS = 50 if QUICK else 200
TURNS = 3 if QUICK else 7
LONG = 1_000 if QUICK else 10_000


Took = tuple[float, float]
"""Seconds, on the clock and of the processor."""


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    n: int


def count(state: State) -> dict[str, Any]:
    return {"log": [f"step {state['n']}"], "n": state["n"] + 1}


def ring(saver: Any) -> Any:
    """Two nodes that take turns."""
    graph = StateGraph(State)
    graph.add_node("ping", count)
    graph.add_node("pong", count)
    graph.add_edge(START, "ping")
    graph.add_edge("ping", "pong")
    graph.add_conditional_edges("pong", lambda state: "ping" if state["n"] < STEPS else END, ["ping", END])
    return graph.compile(checkpointer=saver)


def bare(graph: Any, thread: str, **options: Any) -> Took:
    """So many supersteps by hand.

    Args:
        options: options of `stream`, for the events of a superstep.
    """
    config: Any = {"configurable": {"thread_id": thread}}
    for _ in graph.stream({"log": [], "n": 0}, config, interrupt_before="*"):
        pass
    started = time.perf_counter(), time.process_time()
    for _ in range(STEPS):
        for _ in graph.stream(None, config, interrupt_after="*", **options):
            pass
        graph.get_state(config)
    return time.perf_counter() - started[0], time.process_time() - started[1]


async def driven(graph: Any, thread: str, mirror: str, *, single: bool) -> Took:
    """So many supersteps by our driver, one by one or in one run."""
    hub = LangGraphHub(graph, open_store(mirror), name="ring", source={"graph": "ring"})
    driver = await hub.begin(thread)
    await driver.execute(Start({"log": [], "n": 0}))
    started = time.perf_counter(), time.process_time()
    seen = 0
    if single:
        for _ in range(STEPS):
            await driver.execute(Step())
            await driver.ended(seen)
            seen = driver.events(seen)[-1].number
    else:
        await driver.execute(Run())
        await driver.ended(0)
    took = time.perf_counter() - started[0], time.process_time() - started[1]
    await hub.close()
    return took


def savers(directory: Path) -> dict[str, Callable[[], Any]]:
    def sqlite() -> Any:
        path = directory / f"theirs-{time.perf_counter_ns()}.sqlite"
        return SqliteSaver(sqlite3.connect(path, check_same_thread=False))

    return {"memory": InMemorySaver, "sqlite": sqlite}


def stepping(directory: Path) -> dict[str, float]:
    """Milliseconds of a superstep, on the clock and of the processor, and how many times the bare loop's."""
    figures: dict[str, float] = {}
    for name, make in savers(directory).items():
        best: dict[str, list[float]] = {}
        for turn in range(TURNS):
            for kind in ("bare", "streamed", "step", "run"):
                graph = ring(make())
                if kind == "bare":
                    took = bare(graph, "t")
                elif kind == "streamed":
                    took = bare(graph, "t", stream_mode=list(MODES), subgraphs=True)
                else:
                    mirror = "memory:" if name == "memory" else str(directory / f"mirror-{turn}-{kind}.db")
                    took = asyncio.run(driven(graph, "t", mirror, single=kind == "step"))
                known = best.setdefault(kind, list(took))
                best[kind] = [min(pair) for pair in zip(known, took, strict=True)]
        for kind, (wall, processor) in best.items():
            figures[f"{name}_{kind}_ms"] = round(wall / STEPS * 1000, 3)
            figures[f"{name}_{kind}_cpu_ms"] = round(processor / STEPS * 1000, 3)
        for kind in ("step", "run"):
            for beside, suffix in (("bare", ""), ("streamed", "_streamed")):
                figures[f"{name}_{kind}{suffix}_ratio"] = round(best[kind][0] / best[beside][0], 3)
                figures[f"{name}_{kind}{suffix}_cpu_ratio"] = round(best[kind][1] / best[beside][1], 3)
    return figures


def opening(directory: Path) -> dict[str, float]:
    """Milliseconds until the first page of a long thread is there, beside their newest 50 checkpoints."""
    figures: dict[str, float] = {}
    saver = savers(directory)["sqlite"]()
    graph, config = long_ring(saver), {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    graph.invoke({"log": [], "n": 0}, {**config, "recursion_limit": LONG + 10})
    for name in ("first", "again", "again", "again"):
        started = time.perf_counter()
        list(graph.get_state_history(config, limit=50))
        theirs = time.perf_counter() - started
        ours = asyncio.run(first_page(graph, str(directory / "long.db")))
        figures["open_history_ms"] = round(min(theirs * 1000, figures.get("open_history_ms", 1e9)), 1)
        figures[f"open_{name}_ms"] = round(min(ours * 1000, figures.get(f"open_{name}_ms", 1e9)), 1)
    return {**figures, "open_steps": LONG}


def long_ring(saver: Any) -> Any:
    """One node that runs again and again and keeps a number."""
    graph = StateGraph(State)
    graph.add_node("ping", lambda state: {"n": state["n"] + 1})
    graph.add_edge(START, "ping")
    graph.add_conditional_edges("ping", lambda state: "ping" if state["n"] < LONG else END, ["ping", END])
    return graph.compile(checkpointer=saver)


async def first_page(graph: Any, mirror: str) -> float:
    """Seconds from opening a thread to what its screen begins with."""
    hub = LangGraphHub(graph, open_store(mirror), name="ring", source={"graph": "ring"})
    started = time.perf_counter()
    await (await hub.begin("t", at_once=True)).snapshot()
    took = time.perf_counter() - started
    await hub.close()
    return took


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        figures = {**stepping(Path(directory)), **opening(Path(directory))}
    for name, value in figures.items():
        print(f"{name:24} {value}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
