"""From a key to what it paints, in a pseudo-terminal: idle, with a run, with tokens, while litellm loads.

    python -m tests.benchmarks.key_to_paint [TIMES]

The keys are 1 and 3 (text and JSON); what counts is when the name of the mode is painted.  The issue wants
a median of 30 ms and a worst of 120 ms; while litellm is imported 30, a 95th percentile of 60, worst 300.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.long_thread import graph_file
from tests.benchmarks.terminals import APP, Program, homes

KEYS = (("3", "‹json›"), ("1", "‹text›"))


def pressed(program: Program, times: int) -> list[float]:
    """Milliseconds from keys to their paints, at moments that don't keep step with the app's frames."""
    choose, taken = random.Random(1), []
    for number in range(times):
        program.listen(choose.uniform(0.02, 0.07))
        key, shown = KEYS[number % 2]
        program.press(key)
        taken.append(program.until(shown, 10) * 1e3)
    return taken


def measure(name: str, times: int, *, go: bool, **env: str) -> None:
    """Print the figures of one situation."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        argv = [APP, "run", str(graph_file(folder)), "--store", str(folder / "runs.db")]
        with Program(argv, {**homes(folder), "STEPS": "1000000", **env}) as program:
            program.until("READY")
            program.quiet(1.0)
            if go:
                program.press("c")
                program.until("RUNNING")
            taken = sorted(pressed(program, times))
    place95 = taken[int(len(taken) * 0.95)]
    print(
        f"{name:24} median {statistics.median(taken):6.1f} ms   95 % {place95:6.1f} ms   "
        f"worst of {len(taken)} {taken[-1]:6.1f} ms",
        flush=True,
    )


def main() -> None:
    """Measure all four."""
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    measure("idle", times, go=False)
    measure("a run, 20 steps a second", times, go=True, PACE="0.05")
    measure("tokens at 200 a second", times, go=True, TOKENS="200")
    measure("litellm being imported", times // 2, go=True, LITELLM="1")


if __name__ == "__main__":
    main()
