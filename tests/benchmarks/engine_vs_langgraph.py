"""Engine steps against LangGraph's, side by side in one run: a counter, 50 channels that change, one step
at a time with the state read, an append channel, and maps (theirs by Send), in time and in memory.

    python -m venv bench && bench/bin/pip install -e . "langgraph==1.2.*" langgraph-checkpoint-sqlite
    bench/bin/python -m tests.benchmarks.engine_vs_langgraph [--quick] [--only WORD] [--entries 1000]

Prints microseconds a step and how many times faster ours are, then all of it as one line of JSON; it asserts
nothing, since a shared machine is noisy.  Rounds are taken in turns, each on a new store, and the least of
each side counts, in time and in processor time, which a machine that does something else as well changes
less; "at least" is the smallest ratio of two runs that followed on each other.
LangGraph's append is quadratic: 5,000 entries take it about 20 s and 2.5 GB, so the default is 1,000.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import operator
import random
import sqlite3
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import StateGraph as TheirGraph
from langgraph.types import Send

from hitl_tui import END, START, Channel, MemoryCheckpointer, SQLiteCheckpointer, StateGraph
from hitl_tui.engine.log.records import Limits

BRANCHES = 100
MANY_BRANCHES = 10_000
CHANNELS = [f"c{place:02}" for place in range(50)]
CHANNEL_BYTES = 2_000
_names = count()

Run = Callable[[], Any]


def _thread() -> str:
    return f"t{next(_names)}"


def our_counter(store: Any, steps: int) -> Run:
    graph = (
        StateGraph({"n": Channel(0)})
        .add_node("count", lambda state: {"n": state["n"] + 1})
        .add_edge(START, "count")
        .add_conditional_edge("count", lambda s: s["n"] < steps, {"true": "count", "false": END})
        .compile(checkpointer=store, limits=Limits(max_iterations=None))
    )
    return lambda: graph.invoke({"n": 0}, thread_id=_thread())


class Counter(TypedDict):
    n: int


def their_counter(saver: Any, steps: int) -> Run:
    graph = TheirGraph(Counter)
    graph.add_node("count", lambda state: {"n": state["n"] + 1})
    graph.set_entry_point("count")
    graph.add_conditional_edges("count", lambda s: "__end__" if s["n"] >= steps else "count")
    compiled = graph.compile(checkpointer=saver)
    return lambda: compiled.invoke(
        {"n": 0}, {"recursion_limit": steps + 10, "configurable": {"thread_id": _thread()}}
    )


def our_steps(store: Any, steps: int) -> Run:
    """One step at a time, with the state read after each."""
    graph = (
        StateGraph({"n": Channel(0)})
        .add_node("count", lambda state: {"n": state["n"] + 1})
        .add_edge(START, "count")
        .add_conditional_edge("count", lambda s: s["n"] < steps, {"true": "count", "false": END})
        .compile(checkpointer=store, limits=Limits(max_iterations=None))
    )

    def run() -> None:
        thread = _thread()
        graph.step({"n": 0}, thread_id=thread)
        for place in range(1, steps):
            graph.step(thread_id=thread)
            assert graph.get_state(thread)["n"] == place + 1

    return run


def their_steps(saver: Any, steps: int) -> Run:
    graph = TheirGraph(Counter)
    graph.add_node("count", lambda state: {"n": state["n"] + 1})
    graph.set_entry_point("count")
    graph.add_conditional_edges("count", lambda s: "__end__" if s["n"] >= steps else "count")
    compiled = graph.compile(checkpointer=saver, interrupt_after=["count"])

    def run() -> None:
        config: Any = {"recursion_limit": steps + 10, "configurable": {"thread_id": _thread()}}
        compiled.invoke({"n": 0}, config)
        for place in range(1, steps):
            compiled.invoke(None, config)
            assert compiled.get_state(config).values["n"] == place + 1

    return run


def texts_of(rows: int, length: int, seed: int = 1) -> list[str]:
    source = random.Random(seed)
    return ["".join(source.choices(string.ascii_letters + " ", k=length)) for _ in range(rows)]


def _filled(number: int) -> dict[str, str]:
    """A text for each of the channels."""
    return dict(zip(CHANNELS, texts_of(len(CHANNELS), CHANNEL_BYTES, number), strict=True))


def one_channel(steps: int) -> Iterator[dict[str, str]]:
    """For each step a new text for one channel, in turns."""
    for number, text in enumerate(texts_of(steps, CHANNEL_BYTES, 2)):
        yield {CHANNELS[number % len(CHANNELS)]: text}


def one_of_all(steps: int) -> Iterator[dict[str, str]]:
    """For each step all channels, of which one has a new text."""
    values = _filled(1)
    for update in one_channel(steps):
        values = {**values, **update}
        yield values


def a_word_each(steps: int) -> Iterator[dict[str, str]]:
    """For each step all channels, each with another word inside its text."""
    values, words = _filled(1), texts_of(steps, 12, 2)
    for number, word in enumerate(words):
        place = 37 * number % (CHANNEL_BYTES - len(word))
        values = {name: text[:place] + word + text[place + len(word) :] for name, text in values.items()}
        yield values


def new_texts(steps: int) -> Iterator[dict[str, str]]:
    """For each step a new text for each of the channels."""
    texts = texts_of(len(CHANNELS) + steps, CHANNEL_BYTES, 2)
    for number in range(steps):
        yield dict(zip(CHANNELS, texts[number:], strict=False))


Updates = Callable[[int], Iterator[dict[str, str]]]
WIDE: dict[str, Updates] = {
    "one changes": one_channel,
    "all written, one changes": one_of_all,
    "a word in each": a_word_each,
    "all new": new_texts,
}
"""What a node writes into the channels in each step, by the name of the row."""


def our_wide(store: Any, size: tuple[Updates, int]) -> Run:
    steps = size[1]
    updates = list(size[0](steps))
    graph = (
        StateGraph({"n": Channel(0), **{name: Channel("") for name in CHANNELS}})
        .add_node("write", lambda state: {"n": state["n"] + 1, **updates[state["n"]]})
        .add_edge(START, "write")
        .add_conditional_edge("write", lambda s: s["n"] < steps, {"true": "write", "false": END})
        .compile(checkpointer=store, limits=Limits(max_iterations=None))
    )
    inputs = {"n": 0, **_filled(1)}
    return lambda: graph.invoke(inputs, thread_id=_thread())


def their_wide(saver: Any, size: tuple[Updates, int]) -> Run:
    steps = size[1]
    updates = list(size[0](steps))
    graph = TheirGraph(TypedDict("Wide", {"n": int, **dict.fromkeys(CHANNELS, str)}))  # type: ignore[operator]
    graph.add_node("write", lambda state: {"n": state["n"] + 1, **updates[state["n"]]})
    graph.set_entry_point("write")
    graph.add_conditional_edges("write", lambda s: "__end__" if s["n"] >= steps else "write")
    compiled = graph.compile(checkpointer=saver)
    inputs: Any = {"n": 0, **_filled(1)}
    return lambda: compiled.invoke(
        inputs, {"recursion_limit": steps + 10, "configurable": {"thread_id": _thread()}}
    )


def our_append(store: Any, texts: list[str]) -> Run:
    graph = (
        StateGraph({"n": Channel(0), "log": Channel([], reducer="append")})
        .add_node("add", lambda state: {"n": state["n"] + 1, "log": texts[state["n"]]})
        .add_edge(START, "add")
        .add_conditional_edge("add", lambda s: s["n"] < len(texts), {"true": "add", "false": END})
        .compile(checkpointer=store, limits=Limits(max_iterations=None))
    )
    return lambda: graph.invoke({"n": 0}, thread_id=_thread())


class Log(TypedDict):
    n: int
    log: Annotated[list[str], operator.add]


def their_append(saver: Any, texts: list[str]) -> Run:
    graph = TheirGraph(Log)
    graph.add_node("add", lambda state: {"n": state["n"] + 1, "log": [texts[state["n"]]]})
    graph.set_entry_point("add")
    graph.add_conditional_edges("add", lambda s: "__end__" if s["n"] >= len(texts) else "add")
    compiled = graph.compile(checkpointer=saver)
    return lambda: compiled.invoke(
        {"n": 0, "log": []}, {"recursion_limit": len(texts) + 10, "configurable": {"thread_id": _thread()}}
    )


def our_map(store: Any, branches: int) -> Run:
    async def look(_state: Any, config: Any) -> dict[str, Any]:
        return {"log": config.item}

    graph = (
        StateGraph({"items": Channel([], reducer="overwrite"), "log": Channel([], reducer="append")})
        .add_map("look", over="items", node=look, max_concurrent=branches, max_items=branches)
        .add_edge(START, "look")
        .add_edge("look", END)
        .compile(checkpointer=store)
    )
    items = [str(place) for place in range(branches)]
    return lambda: graph.invoke({"items": items}, thread_id=_thread())


class Items(TypedDict):
    items: list[str]
    log: Annotated[list[str], operator.add]


def their_map(saver: Any, branches: int) -> Run:
    async def look(item: str) -> dict[str, Any]:
        return {"log": [item]}

    graph = TheirGraph(Items)
    graph.add_node("begin", lambda state: {})
    graph.add_node("look", look)  # type: ignore[arg-type]
    graph.set_entry_point("begin")
    graph.add_conditional_edges("begin", lambda s: [Send("look", item) for item in s["items"]], ["look"])
    compiled = graph.compile(checkpointer=saver)
    items = [str(place) for place in range(branches)]

    def run() -> Any:
        config: Any = {"configurable": {"thread_id": _thread()}}
        return asyncio.run(compiled.ainvoke({"items": items, "log": []}, config))

    return run


class Row(NamedTuple):
    """What is compared; `steps` is how many steps a run takes."""

    name: str
    ours: Callable[[], Run]
    theirs: Callable[[], Run]
    steps: int
    rounds: int


def rows(place: Path, entries: int, *, quick: bool) -> Iterator[Row]:
    """What is compared, each on stores of its own."""
    steps, rounds = (500, 7) if quick else (1000, 15)
    stores: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "no store": (lambda: None, lambda: None),
        "memory": (MemoryCheckpointer, InMemorySaver),
        "SQLite": (
            lambda: SQLiteCheckpointer(place / f"{_thread()}.db"),
            lambda: SqliteSaver(sqlite3.connect(place / f"{_thread()}.db", check_same_thread=False)),
        ),
    }

    def row(name: str, sides: tuple[Any, Any], size: Any, steps: int, rounds: int = rounds) -> Row:
        our_store, their_store = stores[name.rpartition(", ")[2]]
        ours, theirs = sides
        return Row(name, lambda: ours(our_store(), size), lambda: theirs(their_store(), size), steps, rounds)

    for which in stores:
        yield row(f"counter, {which}", (our_counter, their_counter), steps, steps)
    yield row("step by step, read, SQLite", (our_steps, their_steps), steps // 10, steps // 10)
    for what, updates in WIDE.items():
        for which in ("memory", "SQLite"):
            name = f"50 of 2 KB, {what}, {which}"
            yield row(name, (our_wide, their_wide), (updates, steps // 10), steps // 10)
    for which in ("no store", "memory"):
        yield row(f"map of {BRANCHES}, {which}", (our_map, their_map), BRANCHES, 1)
    texts = texts_of(entries // 4 if quick else entries, 200)
    yield row("append, SQLite", (our_append, their_append), texts, len(texts), 1)


def seconds(run: Run) -> tuple[float, float]:
    """How long a run takes, and how long the processors worked for it."""
    gc.collect()  # what the other side has left is not this one's to clear away
    started, worked = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - started, time.process_time() - worked


def measured(row: Row) -> dict[str, float]:
    """Microseconds a step of both sides, how many times faster ours are, and the least of that in a round."""
    rounds = [(*seconds(row.ours()), *seconds(row.theirs())) for _ in range(row.rounds)]
    mine, worked, other, they_worked = (min(column) / row.steps * 1e6 for column in zip(*rounds, strict=True))
    faster, less = other / mine, they_worked / worked
    least = min(theirs / ours for ours, _, theirs, _ in rounds)
    columns = f"{mine:10.1f} µs {other:12.1f} µs {faster:8.1f} x {least:8.1f} x {less:8.1f} x"
    print(f"{row.name:42} {columns}", flush=True)
    figures = {"ours_us": mine, "theirs_us": other, "faster": faster, "least": least}
    figures |= {"ours_cpu_us": worked, "theirs_cpu_us": they_worked, "less_cpu": less}
    return {name: round(figure, 2) for name, figure in figures.items()}


SIDES: dict[str, Callable[[Any, int], Run]] = {"ours": our_map, "theirs": their_map}


def peak_growth(side: str, branches: int) -> float:
    """By how many MB the peak memory of a process of its own grows while it runs one large map."""
    module = "tests.benchmarks.engine_vs_langgraph"
    command = [sys.executable, "-m", module, "--map", side, "--branches", str(branches)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _peak() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _run_map(side: str, branches: int) -> None:
    """In a process of its own: one large map after a small one, that what is loaded once does not count."""
    SIDES[side](MemoryCheckpointer() if side == "ours" else InMemorySaver(), 10)()
    run = SIDES[side](MemoryCheckpointer() if side == "ours" else InMemorySaver(), branches)
    before = _peak()
    run()
    print(_peak() - before)


def memory(branches: int, rounds: int) -> dict[str, float]:
    """Peak memory of a large map on the memory store, ours and theirs."""
    mine, other = (min(peak_growth(side, branches) for _ in range(rounds)) for side in SIDES)
    name = f"map of {branches:,}, peak"
    print(f"{name:42} {mine:10.1f} MB {other:12.1f} MB {mine / other:8.2f} x as much", flush=True)
    return {"ours_mb": round(mine, 2), "theirs_mb": round(other, 2), "as_much": round(mine / other, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=1_000, help="entries of the append channel")
    parser.add_argument("--quick", action="store_true", help="fewer steps and rounds")
    parser.add_argument("--only", default="", help="rows with this in their name")
    parser.add_argument("--map", choices=list(SIDES), help=argparse.SUPPRESS)
    parser.add_argument("--branches", type=int, default=MANY_BRANCHES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.map:
        _run_map(options.map, options.branches)
        return
    heads = f"{'ours':>13} {'LangGraph':>15} {'faster by':>10} {'at least':>10} {'in CPU':>10}"
    print(f"{'a step of':42} {heads}")
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for row in rows(Path(folder), options.entries, quick=options.quick):
            if options.only in row.name:
                figures[row.name] = measured(row)
    branches = MANY_BRANCHES // 5 if options.quick else MANY_BRANCHES
    if options.only in f"map of {branches:,}, peak":
        figures["map, peak memory"] = memory(branches, 1 if options.quick else 3)
    print(json.dumps({"benchmark": "engine_vs_langgraph", "quick": options.quick, "rows": figures}))


if __name__ == "__main__":
    main()
