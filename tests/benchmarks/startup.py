"""How long the command line takes to start, beside what any Python program takes.

    python tests/benchmarks/startup.py

Every round runs all programs once, so that a busy machine slows them alike; the median counts.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

HELP_LIMIT = 6.0
"""`hitl-tui --help` may take this many times as long as `python -c pass`."""

PROGRAMS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import click": [sys.executable, "-c", "import click"],
    "hitl-tui --help": [str(Path(sys.executable).with_name("hitl-tui")), "--help"],
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


def help_ratio(rounds: int = 15) -> float:
    """How many times `python -c pass` the help takes."""
    seconds = medians(PROGRAMS, rounds)
    return seconds["hitl-tui --help"] / seconds["python -c pass"]


def main() -> None:
    """Print the figures."""
    seconds = medians(PROGRAMS, rounds=31)
    base = seconds["python -c pass"]
    for name, value in seconds.items():
        print(f"{name:16} {value * 1000:6.1f} ms  {value / base:4.1f}x")


if __name__ == "__main__":
    main()
