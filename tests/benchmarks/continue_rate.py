"""A run on and on with the screen open, to its end on screen, beside the same graph's `invoke` on SQLite.

    python -m tests.benchmarks.continue_rate [--quick] [STEPS ...]

Wall time goes from the key to the painted end of the run; processor time is that of the whole process
meanwhile, the painting included.  The issue wants 1.15 times the wall time of `invoke` and 1.3 times its
processor time.  Each round runs both, and the best of each counts.  The last line is JSON.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.long_thread import Spent, compared, graph_file, invoked, rounds
from tests.benchmarks.terminals import APP, Program, homes


def on_screen(steps: int) -> Spent:
    """One run with the screen open, in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        argv = [APP, "run", str(graph_file(folder)), "--store", str(folder / "runs.db"), "--thread", "t"]
        with Program(argv, {**homes(folder), "STEPS": str(steps)}) as program:
            program.until("READY")
            program.quiet(1.0)
            cpu = program.cpu
            started = time.perf_counter()
            program.press("c")
            program.until("DONE", 600)
            return Spent(time.perf_counter() - started, program.cpu - cpu)


def main() -> None:
    """Print both, and their ratios, for each length."""
    times, given = rounds(sys.argv[1:])
    lengths = given or ([2_000] if times == 1 else [10_000, 20_000])
    compared("continue_rate", lengths, times, {"invoke": invoked, "screen": on_screen})


if __name__ == "__main__":
    main()
