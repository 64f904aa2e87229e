"""What a commit costs in PostgreSQL: beside a bare commit of one row there, and a step beside LangGraph's.

    python -m tests.benchmarks.postgres_commit [--quick] [--steps 1000]

It starts a server of its own, which waits for the disk; for LangGraph's part install
langgraph-checkpoint-postgres.
Prints all of it as one line of JSON at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import operator
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.util import find_spec
from statistics import median
from typing import Annotated, Any, TypedDict

import psycopg

from hitl_tui import END, START, Channel, StateGraph, append
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from tests.benchmarks.store_commit import ENTRY, prepared
from tests.support.flows import line, say
from tests.support.postgres import Postgres, binaries
from tests.support.watching import Watcher

Timed = Iterator[float]


def bare(url: str, steps: int) -> Timed:
    """Seconds of each commit of one row."""
    with psycopg.connect(url, autocommit=True, prepare_threshold=2) as db:
        db.execute("CREATE TABLE IF NOT EXISTS bare (id bigserial PRIMARY KEY, body text)")
        for _ in range(steps):
            begin = time.perf_counter()
            db.execute("INSERT INTO bare (body) VALUES (%s)", (ENTRY,))
            yield time.perf_counter() - begin


def ours(store: PostgresCheckpointer, steps: int) -> Timed:
    """Seconds of each commit of two records and a checkpoint."""
    store.create_thread(ThreadInfo("t", "bench", "", {}, None, -1, 0, 0), Cursor("t"))
    lease = store.new_lease(store.now())
    store.acquire("t", lease, store.now())
    for commit in prepared(steps, lease.token, 0):
        begin = time.perf_counter()
        store.commit("t", commit)
        yield time.perf_counter() - begin


def our_steps(store: PostgresCheckpointer, steps: int) -> Timed:
    """Seconds of each step of a counter beside an append channel, in one run."""
    graph = StateGraph({"n": Channel(0), "entries": Channel([], reducer=append())})
    graph.add_node("count", lambda state, config: {"n": state["n"] + 1, "entries": ENTRY})
    graph.add_edge(START, "count")
    graph.add_conditional_edge(
        "count", lambda s: "on" if s["n"] < steps else "out", {"on": "count", "out": END}
    )
    runner = graph.compile(checkpointer=store)
    begin = time.perf_counter()
    for _ in runner.stream({}, thread_id="steps", max_iterations=steps + 1):
        yield time.perf_counter() - begin
        begin = time.perf_counter()


def their_steps(url: str, steps: int) -> Timed:
    """The same in LangGraph, with its PostgresSaver."""
    from langgraph.checkpoint.postgres import PostgresSaver  # type: ignore[import-not-found,unused-ignore]
    from langgraph.graph import StateGraph as TheirGraph

    class State(TypedDict):
        n: int
        entries: Annotated[list[str], operator.add]

    graph: Any = TheirGraph(State)
    graph.add_node("count", lambda state: {"n": state["n"] + 1, "entries": [ENTRY]})
    graph.add_edge("__start__", "count")
    graph.add_conditional_edges(
        "count", lambda s: "count" if s["n"] < steps else "__end__", ["count", "__end__"]
    )
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        app = graph.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "t"}, "recursion_limit": steps + 2}
        begin = time.perf_counter()
        for _ in app.stream({"n": 0, "entries": []}, config, durability="sync"):
            yield time.perf_counter() - begin
            begin = time.perf_counter()


def notification_delays(url: str, times: int) -> list[float]:
    """Seconds from the beginning of a commit until another store is told of it."""
    took = []
    with closing(PostgresCheckpointer(url)) as there, closing(PostgresCheckpointer(url)) as here:
        woken = threading.Event()
        here.subscribe(woken.set)
        here.changes()
        while here.changes() is None:
            time.sleep(0.01)
        for commit in ours(there, times):
            begin = time.perf_counter() - commit
            woken.wait(5)
            took.append(time.perf_counter() - begin)
            woken.clear()
    return took


async def display_delays(url: str, times: int) -> list[float]:
    """Seconds from the beginning of an edit until the driver of another screen tells it."""
    took = []
    with closing(PostgresCheckpointer(url)) as there, closing(PostgresCheckpointer(url)) as here:
        elsewhere, runner = (
            line(store, say("one"), say("two"), interrupt_after=["a"]) for store in (there, here)
        )
        elsewhere.invoke({}, thread_id="t")
        hub = LocalHub(here, lambda info: runner)
        watcher = await Watcher.open(await hub.open("t"))
        for number in range(times):
            begin = time.perf_counter()
            step = await asyncio.to_thread(elsewhere.update_state, "t", {"log": [str(number)]})
            await watcher.until(lambda view, step=step: view.progress.head == step)
            took.append(time.perf_counter() - begin)
        await hub.close()
    return took


def in_turns(kinds: dict[str, Callable[[], Timed]], steps: int) -> dict[str, float]:
    """The median of each, in microseconds, a step of each after a step of the others."""
    running = {name: begin() for name, begin in kinds.items()}
    times: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(steps):
        for name, timed in running.items():
            if (took := next(timed, None)) is not None:
                times[name].append(took)
    return {name: round(median(each[len(each) // 10 :]) * 1e6, 1) for name, each in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--quick", action="store_true", help="fewer steps")
    options = parser.parse_args()
    steps = 200 if options.quick else options.steps
    programs = binaries()
    if programs is None:
        raise SystemExit("no PostgreSQL server here")
    server = Postgres(programs, durable=True)
    try:
        with closing(PostgresCheckpointer(server.new_url())) as store:
            kinds: dict[str, Callable[[], Timed]] = {
                "bare": lambda: bare(server.url(), steps),
                "commit": lambda: ours(store, steps),
                "step": lambda: our_steps(store, steps),
            }
            if find_spec("langgraph.checkpoint.postgres") is not None:
                kinds["langgraph_step"] = lambda: their_steps(server.url(), steps)
            figures = in_turns(kinds, steps)
        ratios = {"commit_to_bare": figures["commit"] / figures["bare"]}
        if "langgraph_step" in figures:
            ratios["langgraph_step_to_step"] = figures["langgraph_step"] / figures["step"]
        delays = sorted(notification_delays(server.new_url(), steps // 4))
        figures["notified_after"] = round(median(delays) * 1e6, 1)
        figures["notified_after_p99"] = round(delays[len(delays) * 99 // 100] * 1e6, 1)
        seen = sorted(asyncio.run(display_delays(server.new_url(), steps // 4)))
        figures["reported_to_a_screen_after"] = round(median(seen) * 1e6, 1)
        figures["reported_to_a_screen_after_p99"] = round(seen[len(seen) * 99 // 100] * 1e6, 1)
    finally:
        server.close()
    for name, value in figures.items():
        print(f"{name:<24} {value:9.1f} us")
    for name, value in ratios.items():
        print(f"{name:<24} {value:9.2f}")
    print(json.dumps({"benchmark": "postgres_commit", "quick": options.quick, **figures, **ratios}))


if __name__ == "__main__":
    main()
