"""What types of channels cost: an append channel of typed items beside an untyped one, and one check alone.

    python -m tests.benchmarks.typed [ENTRIES]

The targets: appending 5,000 typed items at most twice the untyped; a check of a flat value at most 2 µs.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import BaseModel

from hitl_tui import END, START, Channel, MemoryCheckpointer, SQLiteCheckpointer, StateGraph
from hitl_tui.engine.log.records import Limits
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.state.channel import bind

ROUNDS = 3
CHECKS = 20_000


class Item(BaseModel):
    """A flat item."""

    name: str
    points: int


FLAT = {
    "text": (str, "a text"),
    "integer": (int, 7),
    "number with bounds": ({"type": "number", "minimum": 0, "maximum": 9}, 7.5),
    "enum": ({"enum": ["approved", "revise"]}, "revise"),
    "flat model": (Item, {"name": "a", "points": 7}),
    "untyped": (None, "a text"),
}


def appending(store: Any, entries: int, schema: Any) -> GraphRunner:
    """A loop that appends one item a step."""
    channels = {"n": Channel(0), "log": Channel([], reducer="append", schema=schema)}
    return (
        StateGraph(channels)
        .add_node("add", lambda state: {"n": state["n"] + 1, "log": {"name": "a", "points": state["n"]}})
        .add_edge(START, "add")
        .add_conditional_edge("add", lambda s: s["n"] < entries, {"true": "add", "false": END})
        .compile(checkpointer=store, limits=Limits(max_iterations=None))
    )


def seconds(run: Callable[[], Any]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def appends(entries: int, open_store: Callable[[str], Any], name: str) -> None:
    """Typed and untyped in turn; the ratio is the median of the rounds."""
    pairs = []
    for round_ in range(ROUNDS):
        took = []
        for label, schema in (("untyped", None), ("typed", list[Item])):
            runner = appending(open_store(f"{label}{round_}"), entries, schema)
            took.append(seconds(lambda runner=runner: runner.invoke({}, thread_id="t")))  # type: ignore[misc]
        pairs.append(took)
    plain, typed = (min(column) / entries * 1e6 for column in zip(*pairs, strict=True))
    ratio = median(pair[1] / pair[0] for pair in pairs)
    print(f"append, {name:<7} untyped {plain:7.1f} µs   typed {typed:7.1f} µs a step   {ratio:5.2f} x")


def checks() -> None:
    """One check of one value, without a step around it."""
    for name, (schema, value) in FLAT.items():
        bound = bind({"c": Channel(schema=schema, reducer="overwrite")})["c"]
        check, given = bound.schema.check_update, bound.accept(value)
        took = min(seconds(lambda: [check(given) for _ in range(CHECKS)]) for _ in range(5))  # noqa: B023
        print(f"check of {name:<20} {took / CHECKS * 1e6:6.2f} µs")


def main() -> None:
    """Print the checks, then the appends."""
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    checks()
    appends(entries, lambda _: MemoryCheckpointer(), "memory")
    with tempfile.TemporaryDirectory() as folder:
        appends(entries, lambda name: SQLiteCheckpointer(Path(folder) / f"{name}.db"), "SQLite")


if __name__ == "__main__":
    main()
