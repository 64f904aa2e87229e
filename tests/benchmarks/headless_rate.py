"""`run --headless`, in words and with --json, to its last line, beside the same graph's `invoke` on SQLite.

    python -m tests.benchmarks.headless_rate [--quick] [STEPS ...]

Time and processor time of a run are those of the process without what a run of no step takes.  The issue
wants 1.5 times those of `invoke`.  Each round runs all, and the best of each counts.  The last line is JSON.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.benchmarks.long_thread import Spent, compared, graph_file, invoked, rounds
from tests.benchmarks.terminals import APP, homes


def process(steps: int, options: tuple[str, ...]) -> Spent:
    """A whole process that runs a thread, its output in a pipe."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        argv = [APP, "run", str(graph_file(folder)), "--store", str(folder / "runs.db"), "--headless"]
        env = {**os.environ, **homes(folder), "STEPS": str(steps)}
        used, started = os.times(), time.perf_counter()
        subprocess.run([*argv, *options], env=env, check=True, capture_output=True)
        wall, now = time.perf_counter() - started, os.times()
        cpu = now.children_user + now.children_system - used.children_user - used.children_system
        return Spent(wall, cpu)


def headless(steps: int, options: tuple[str, ...] = ()) -> Spent:
    """What the steps of a run take, without the start of its process."""
    nothing, run = process(1, options), process(steps, options)
    return Spent(run.wall - nothing.wall, run.cpu - nothing.cpu)


def main() -> None:
    """Print all, and their ratios, for each length."""
    times, given = rounds(sys.argv[1:])
    lengths = given or ([2_000] if times == 1 else [10_000])
    programs = {"invoke": invoked, "words": headless, "json": partial(headless, options=("--json",))}
    compared("headless_rate", lengths, times, programs)


if __name__ == "__main__":
    main()
