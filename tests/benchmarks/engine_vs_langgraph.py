"""Engine steps against LangGraph's, side by side in one run: a counter, a map of 100 branches
(theirs by Send), and an append channel.

    python -m venv bench && bench/bin/pip install -e . "langgraph==1.2.*" langgraph-checkpoint-sqlite
    bench/bin/python tests/benchmarks/engine_vs_langgraph.py [--entries 1000]

Prints microseconds a step and the ratios; it asserts nothing, since a shared machine is noisy.
LangGraph's append is quadratic: 5,000 entries take it about 20 s and 2.5 GB, so the default is 1,000.
"""

from __future__ import annotations

import argparse
import asyncio
import operator
import random
import sqlite3
import string
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import StateGraph as TheirGraph
from langgraph.types import Send

from hitl_tui import END, START, Channel, MemoryCheckpointer, SQLiteCheckpointer, StateGraph
from hitl_tui.engine.log.records import Limits

STEPS = 1_000
ROUNDS = 3
BRANCHES = 100


def our_counter(store: Any) -> Callable[[], Any]:
    graph = (
        StateGraph({"n": Channel(0)})
        .add_node("count", lambda state: {"n": state["n"] + 1})
        .add_edge(START, "count")
        .add_conditional_edge("count", lambda s: s["n"] < STEPS, {"true": "count", "false": END})
        .compile(checkpointer=store, limits=Limits(max_iterations=None))
    )
    return lambda: graph.invoke({"n": 0}, thread_id=f"t{time.perf_counter_ns()}")


def their_counter(saver: Any) -> Callable[[], Any]:
    class State(TypedDict):
        n: int

    graph = TheirGraph(State)
    graph.add_node("count", lambda state: {"n": state["n"] + 1})
    graph.set_entry_point("count")
    graph.add_conditional_edges("count", lambda s: "__end__" if s["n"] >= STEPS else "count")
    compiled = graph.compile(checkpointer=saver)
    return lambda: compiled.invoke(
        {"n": 0},
        {"recursion_limit": STEPS + 10, "configurable": {"thread_id": f"t{time.perf_counter_ns()}"}},
    )


def entries(count: int) -> list[str]:
    source = random.Random(1)
    return ["".join(source.choices(string.ascii_letters + " ", k=200)) for _ in range(count)]


def our_append(store: Any, texts: list[str]) -> Callable[[], Any]:
    graph = (
        StateGraph({"n": Channel(0), "log": Channel([], reducer="append")})
        .add_node("add", lambda state: {"n": state["n"] + 1, "log": texts[state["n"]]})
        .add_edge(START, "add")
        .add_conditional_edge("add", lambda s: s["n"] < len(texts), {"true": "add", "false": END})
        .compile(checkpointer=store, limits=Limits(max_iterations=None))
    )
    return lambda: graph.invoke({"n": 0}, thread_id="t")


def their_append(saver: Any, texts: list[str]) -> Callable[[], Any]:
    class State(TypedDict):
        n: int
        log: Annotated[list[str], operator.add]

    graph = TheirGraph(State)
    graph.add_node("add", lambda state: {"n": state["n"] + 1, "log": [texts[state["n"]]]})
    graph.set_entry_point("add")
    graph.add_conditional_edges("add", lambda s: "__end__" if s["n"] >= len(texts) else "add")
    compiled = graph.compile(checkpointer=saver)
    config = {"recursion_limit": len(texts) + 10, "configurable": {"thread_id": "t"}}
    return lambda: compiled.invoke({"n": 0, "log": []}, config)


def our_fan_out(store: Any, branches: int) -> Callable[[], Any]:
    async def look(_state: Any, config: Any) -> dict[str, Any]:
        return {"log": config.item}

    graph = (
        StateGraph({"items": Channel([], reducer="overwrite"), "log": Channel([], reducer="append")})
        .add_map("look", over="items", node=look, max_concurrent=branches)
        .add_edge(START, "look")
        .add_edge("look", END)
        .compile(checkpointer=store)
    )
    items = [str(place) for place in range(branches)]
    return lambda: graph.invoke({"items": items}, thread_id=f"t{time.perf_counter_ns()}")


def their_fan_out(saver: Any, branches: int) -> Callable[[], Any]:
    class State(TypedDict):
        items: list[str]
        log: Annotated[list[str], operator.add]

    async def look(item: str) -> dict[str, Any]:
        return {"log": [item]}

    graph = TheirGraph(State)
    graph.add_node("begin", lambda state: {})
    graph.add_node("look", look)
    graph.set_entry_point("begin")
    graph.add_conditional_edges("begin", lambda s: [Send("look", item) for item in s["items"]], ["look"])
    compiled = graph.compile(checkpointer=saver)
    items = [str(place) for place in range(branches)]

    def run() -> Any:
        config = {"configurable": {"thread_id": f"t{time.perf_counter_ns()}"}}
        return asyncio.run(compiled.ainvoke({"items": items, "log": []}, config))

    return run


def seconds(run: Callable[[], Any]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def side_by_side(
    name: str, ours: Callable[[], Any], theirs: Callable[[], Any], *, steps: int, rounds: int
) -> None:
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(rounds)]
    mine, other = (min(column) for column in zip(*pairs, strict=True))
    ratio = sorted(b / a for a, b in pairs)[rounds // 2]
    print(f"{name:22} {mine / steps * 1e6:9.1f} µs {other / steps * 1e6:9.1f} µs {ratio:8.1f} x")


def their_sqlite(path: Path) -> SqliteSaver:
    return SqliteSaver(sqlite3.connect(path, check_same_thread=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=1_000)
    texts = entries(parser.parse_args().entries)
    print(f"{'a step of':22} {'ours':>12} {'LangGraph':>12} {'faster by':>10}")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        stores: list[tuple[str, Any, Any]] = [
            ("no store", None, None),
            ("memory", MemoryCheckpointer(), InMemorySaver()),
            ("SQLite", SQLiteCheckpointer(place / "ours.db"), their_sqlite(place / "theirs.db")),
        ]
        for name, ours, theirs in stores:
            side_by_side(
                f"counter, {name}", our_counter(ours), their_counter(theirs), steps=STEPS, rounds=ROUNDS
            )
        for name, ours, theirs in stores[:2]:
            side_by_side(
                f"map of {BRANCHES}, {name}",
                our_fan_out(ours, BRANCHES),
                their_fan_out(theirs, BRANCHES),
                steps=1,
                rounds=ROUNDS,
            )
        mine, other = place / "append.db", place / "their-append.db"
        store = SQLiteCheckpointer(mine)
        adding = their_append(their_sqlite(other), texts)
        side_by_side("append, SQLite", our_append(store, texts), adding, steps=len(texts), rounds=1)
        store.close()
        sizes = [path.stat().st_size / 1e6 for path in (mine, other)]
        print(f"files after {len(texts):,} entries: {sizes[0]:.1f} MB and {sizes[1]:.1f} MB")


if __name__ == "__main__":
    main()
