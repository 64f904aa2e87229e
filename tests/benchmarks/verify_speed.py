"""How long a check of a long log takes, and how many records a second `verify --strict` and `replay` do.

    python -m tests.benchmarks.verify_speed [--quick] [STEPS]

`verify` is run on one core and on all of them, in turns, and from an anchor ten steps back.  Wanted are 15 s
for 1,000,000 steps, and 20,000 records a second of `verify --strict`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hitl_tui import END, START, Channel, SQLiteCheckpointer, StateGraph
from hitl_tui.engine.audit import processes
from hitl_tui.engine.log.records import Limits
from hitl_tui.engine.runner import GraphRunner
from tests.benchmarks.long_thread import many_steps
from tests.benchmarks.terminals import figures

STEPS, QUICK = 1_000_000, 40_000
STRICT, STRICT_QUICK = 20_000, 2_000


def make_runner(store: SQLiteCheckpointer, steps: int) -> GraphRunner:
    """A loop whose node writes five channels of different reducers."""

    def work(state: Any, config: Any) -> dict[str, Any]:
        n = state["n"]
        return {
            "n": n + 1,
            "log": f"line {n} of the log",
            "total": 2,
            "facts": {f"k{n % 20}": n},
            "recent": n,
        }

    return (
        StateGraph(
            {
                "n": Channel(0),
                "log": Channel([], reducer="append"),
                "total": Channel(0, reducer="sum"),
                "facts": Channel({}, reducer="merge"),
                "recent": Channel([], reducer="last_n(8)"),
            }
        )
        .add_node("work", work)
        .add_edge(START, "work")
        .add_conditional_edge(
            "work", lambda s: "end" if s["n"] >= steps else "on", {"end": END, "on": "work"}
        )
        .compile(checkpointer=store, limits=Limits(max_iterations=None))
    )


def measured(name: str, work: Callable[[], Any]) -> tuple[float, float]:
    """Run once and print the rate; seconds, and records a second."""
    started = time.perf_counter()
    report = work()
    seconds = time.perf_counter() - started
    assert report.ok, report.mismatches[:3]
    rate = report.records / seconds
    print(f"{name:<20}{report.records:>10,} records  {seconds:7.2f} s  {rate:>10,.0f} a second", flush=True)
    return seconds, rate


def on_one_core(work: Callable[[], Any]) -> Any:
    """Run without processes beside this one."""
    cores = processes.cores
    processes.cores = lambda: 1
    try:
        return work()
    finally:
        processes.cores = cores


def main() -> None:
    """Make the threads, then check them in each way."""
    quick = "--quick" in sys.argv
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    steps = numbers[0] if numbers else QUICK if quick else STEPS
    strict = STRICT_QUICK if quick else STRICT
    values: dict[str, float] = {"steps": steps}
    with tempfile.TemporaryDirectory() as folder:
        runner, store = many_steps(Path(folder), "long", steps)
        values["one core"] = measured("verify, one core", lambda: on_one_core(lambda: runner.verify("long")))[
            0
        ]
        values["all cores"] = measured("verify", lambda: runner.verify("long"))[0]
        known = runner.anchor("long")
        values["since"] = measured(
            "verify --since", lambda: runner.verify("long", anchor=known, since=known.step)
        )[0]
        store.close()
        store = SQLiteCheckpointer(Path(folder) / "strict.db", durability="none")
        runner = make_runner(store, strict)
        runner.invoke(thread_id="t")
        for name, work in (
            ("verify --strict", lambda: runner.verify("t", strict=True)),
            ("replay", lambda: runner.replay("t")),
        ):
            values[f"{name}, records a second"] = measured(name, work)[1]
        store.close()
    figures("verify_speed", values)


if __name__ == "__main__":
    main()
