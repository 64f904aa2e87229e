"""How long the command line takes to answer, beside what any Python program takes.

    python -m tests.benchmarks.startup

Every round runs all programs once, so that a busy machine slows them alike; the median counts.
The issues want `hitl-tui --help` within 6 times `python -c pass`.  See `first_paint` for the screen.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_APP = str(Path(sys.executable).with_name("hitl-tui"))
PROGRAMS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import click": [sys.executable, "-c", "import click"],
    "hitl-tui --help": [_APP, "--help"],
}


def medians(programs: Mapping[str, Sequence[str]], rounds: int) -> dict[str, float]:
    """Seconds each program takes, run side by side."""
    taken: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, argv in programs.items():
            begin = time.perf_counter()
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, cwd=os.path.expanduser("~"))
            taken[name].append(time.perf_counter() - begin)
    return {name: statistics.median(values) for name, values in taken.items()}


def main() -> None:
    """Print the figures."""
    seconds = medians(PROGRAMS, rounds=31)
    base = next(iter(seconds.values()))
    for name, value in seconds.items():
        print(f"{name:18} {value * 1000:6.1f} ms  {value / base:4.2f}x")


if __name__ == "__main__":
    main()
