"""Asking the history of a thread of 100,000 steps: the first result of a search, the whole of it, `when`.

    python -m tests.benchmarks.ask_history [--quick] [STEPS]

The text that is looked for stands at the newest step, at the oldest one, or nowhere.  Wanted is a first
result within a second.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hitl_tui.drivers.history import SearchHit, ask, bisect, search, series
from hitl_tui.drivers.reading import RecordedThread
from hitl_tui.engine.log.store import Store
from tests.benchmarks.long_thread import many_steps

STEPS, QUICK = 100_000, 10_000


class _Enough(Exception):
    """The first result is there."""


def seconds(work: Callable[[], object], times: int) -> float:
    """What it takes at best."""
    best = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best


def first_hit(store: Store, thread: RecordedThread, text: str) -> Callable[[], None]:
    """A search that ends with its first result."""

    def on_progress(hits: tuple[SearchHit, ...], _looked: int, _of: int) -> None:
        if hits:
            raise _Enough

    def work() -> None:
        try:
            search(thread.logged, store, text, on_progress)
        except _Enough:
            return
        raise AssertionError(f"{text!r} was not found")

    return work


def main() -> None:
    """Print what each question takes and one line of JSON."""
    quick = "--quick" in sys.argv
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    steps = numbers[0] if numbers else QUICK if quick else STEPS
    times = 1 if quick else 3
    with tempfile.TemporaryDirectory() as place:
        _, store = many_steps(Path(place), "long", steps)
        thread = RecordedThread(store, "long")
        questions: dict[str, Callable[[], object]] = {
            "first result, newest": first_hit(store, thread, f"step {steps} "),
            "first result, oldest": first_hit(store, thread, "step 1 step 1 "),
            "whole search, nothing": lambda: search(thread.logged, store, "nowhere", lambda *_: None),
            "whole search, 500 hits": lambda: search(thread.logged, store, "step", lambda *_: None),
            "when, all": lambda: ask(thread.logged, store, "n % 1000 == 0", lambda *_: None),
            "when, first at the end": lambda: ask(
                thread.logged, store, f"n >= {steps - 1}", lambda *_: None, first=True
            ),
            "when, monotone": lambda: bisect(thread.logged, store, f"n >= {steps - 1}"),
            "a strip of 40": lambda: series(thread.logged, store, ["n", "len(text)"], steps - 1, 40),
        }
        taken = {name: seconds(work, times) for name, work in questions.items()}
        store.close()
    for name, took in taken.items():
        print(f"{name:<24}{took * 1e3:9.1f} ms")
    print(json.dumps({"script": "ask_history", "steps": steps, **{k: round(v, 4) for k, v in taken.items()}}))


if __name__ == "__main__":
    main()
