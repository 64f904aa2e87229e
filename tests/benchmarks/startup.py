"""How long the command line takes to start, beside what any Python program takes.

    python -m tests.benchmarks.startup

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

from tests.support.terminal import Terminal

HELP_LIMIT = 6.0
"""`hitl-tui --help` may take this many times as long as `python -c pass`."""

PAINT_LIMIT = 1.4
"""The first paint of `hitl-tui demo` may take this many times as long as that of an empty app."""

_APP = str(Path(sys.executable).with_name("hitl-tui"))
_EMPTY = """
from textual.app import App
from textual.widgets import Footer, Header, Static

class Empty(App):
    def compose(self):
        yield Header()
        yield Static("empty")
        yield Footer()

Empty().run()
"""
PROGRAMS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import click": [sys.executable, "-c", "import click"],
    "hitl-tui --help": [_APP, "--help"],
}
SCREENS = {
    "empty Textual app": [sys.executable, "-P", "-c", _EMPTY],
    "hitl-tui demo": [_APP, "demo", "--store", "memory:"],
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


def first_paint(argv: Sequence[str]) -> float:
    """Seconds until a program has something on its screen."""
    begin = time.perf_counter()
    with Terminal(argv) as terminal:
        while not terminal.text().strip():
            time.sleep(0.001)
        return time.perf_counter() - begin


def paints(rounds: int) -> dict[str, float]:
    """Median seconds to the first paint, side by side."""
    taken: dict[str, list[float]] = {name: [] for name in SCREENS}
    for _ in range(rounds):
        for name, argv in SCREENS.items():
            taken[name].append(first_paint(argv))
    return {name: statistics.median(values) for name, values in taken.items()}


def paint_ratio(rounds: int = 5) -> float:
    """How many times an empty app's first paint that of the demo takes."""
    seconds = paints(rounds)
    return seconds["hitl-tui demo"] / seconds["empty Textual app"]


def main() -> None:
    """Print the figures."""
    for seconds in (medians(PROGRAMS, rounds=31), paints(rounds=11)):
        base = next(iter(seconds.values()))
        for name, value in seconds.items():
            print(f"{name:18} {value * 1000:6.1f} ms  {value / base:4.2f}x")


if __name__ == "__main__":
    main()
