"""Opening a thread of 100,000 checkpoints beside one of 10, in a pseudo-terminal, in turns.

    python -m tests.benchmarks.open_long_thread [STEPS] [ROUNDS]

Prints the time until anything is painted and until the newest step is, and the memory beside the demo's.
The issue wants a ratio of first paints of at most 1.3, and at most twice the demo's memory.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.long_thread import opened
from tests.benchmarks.terminals import APP, Program, homes


def fill(folder: Path, steps: int, thread: str) -> None:
    """A thread of so many steps."""
    (folder / thread).mkdir()
    os.environ["STEPS"] = str(steps)
    runner, store = opened(folder / thread)
    started = time.perf_counter()
    runner.invoke({}, thread_id=thread)
    print(f"{thread}: {steps:,} steps made in {time.perf_counter() - started:.1f} s", flush=True)
    store.close()


def look(argv: list[str], env: dict[str, str], newest: str) -> tuple[float, float, float]:
    """Seconds to the first paint and to the newest step, and MB once it is quiet."""
    with Program(argv, env) as program:
        first = program.until("")
        content = first + program.until(newest)
        program.quiet(0.5)
        return first, content, program.memory


def main() -> None:
    """Print figures of both threads and of the demo."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    lengths = {"short": 10, "long": steps}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for thread, length in lengths.items():
            fill(folder, length, thread)
        found: dict[str, list[tuple[float, float, float]]] = {"short": [], "long": [], "demo": []}
        for _ in range(rounds):
            for thread, length in lengths.items():
                argv = [APP, "resume", thread, "--store", str(folder / thread / "runs.db")]
                found[thread].append(look(argv, homes(folder), f"step {length}"))
            found["demo"].append(look([APP, "demo"], homes(folder), "worker is next"))
    middle = {
        name: [statistics.median(column) for column in zip(*rows, strict=True)]
        for name, rows in found.items()
    }
    for name, (first, content, memory) in middle.items():
        print(f"{name:6} first paint {first:.3f} s   content {content:.3f} s   memory {memory:.0f} MB")
    long, short, demo = middle["long"], middle["short"], middle["demo"]
    print(f"long to short: first paint {long[0] / short[0]:.2f}, content {long[1] / short[1]:.2f}")
    print(f"memory of the long one to the demo's: {long[2] / demo[2]:.2f}")


if __name__ == "__main__":
    main()
