"""Steps a second with the screen open and without it, both seen from outside, in the store.

    python -m tests.benchmarks.continue_rate [STEPS]

The issue wants at least half as many with the screen.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path

from hitl_tui import SQLiteCheckpointer
from tests.benchmarks.long_thread import graph_file
from tests.benchmarks.terminals import APP, Program, homes

WARM = 200


def head(store: SQLiteCheckpointer) -> int:
    """The newest step of the thread, -1 before there is one."""
    cursor = store.cursor("t")
    return cursor.head if cursor else -1


def rate(path: Path, program: Program, steps: int) -> float:
    """Steps a second between two looks at the store, while the terminal is read all the time."""
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            program.quiet(0.05)

    reader = threading.Thread(target=read)
    reader.start()
    store = SQLiteCheckpointer(path)
    try:
        while (first := head(store)) < WARM:
            time.sleep(0.01)
        begun = time.perf_counter()
        while (last := head(store)) < steps - 1:
            time.sleep(0.02)
        return (last - first) / (time.perf_counter() - begun)
    finally:
        over.set()
        reader.join()
        store.close()


def measure(steps: int, *, screen: bool) -> float:
    """One run in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        store = folder / "runs.db"
        argv = [APP, "run", str(graph_file(folder)), "--store", str(store), "--thread", "t"]
        argv += [] if screen else ["--headless"]
        with Program(argv, {**homes(folder), "STEPS": str(steps)}) as program:
            if screen:
                program.until("READY")
                program.quiet(1.0)
                program.press("c")
            while not store.exists():
                time.sleep(0.01)
            return rate(store, program, steps)


def main() -> None:
    """Print both rates and their ratio."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    pairs = [(measure(steps, screen=True), measure(steps, screen=False)) for _ in range(3)]
    for with_screen, without in pairs:
        print(f"screen {with_screen:8,.0f} steps/s   headless {without:8,.0f} steps/s")
    print(f"ratio, median of {len(pairs)}: {sorted(a / b for a, b in pairs)[len(pairs) // 2]:.2f}")


if __name__ == "__main__":
    main()
