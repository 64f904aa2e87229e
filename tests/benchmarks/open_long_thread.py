"""Looking at a thread of 1,000,000 steps beside one of 100, where their graph can't be built any more.

    python -m tests.benchmarks.open_long_thread [--quick] [STEPS]

`show`, `log --limit 50` and `resume` on screen, in turns; the file of the graph has gone, so all goes by the
log alone.  Both threads were started by `save`.  Wanted is a ratio of 1.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.terminals import APP, Program, figures, homes

STEPS, QUICK = 1_000_000, 20_000
SHORT = 100
ROUNDS, QUICK_ROUNDS = 9, 3


def fill(folder: Path, thread: str, steps: int) -> Path:
    """A store with a thread of so many steps, whose graph's file has gone."""
    script = "import sys; from pathlib import Path; from tests.benchmarks.long_thread import many_steps; "
    script += "many_steps(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), saved=True)[1].close()"
    subprocess.run([sys.executable, "-c", script, str(folder), thread, str(steps)], check=True)
    (folder / thread / "long.py").unlink()
    return folder / thread / "runs.db"


def ran(argv: list[str]) -> float:
    """Seconds that a command took."""
    started = time.perf_counter()
    subprocess.run(argv, check=True, capture_output=True)
    return time.perf_counter() - started


def painted(argv: list[str], env: dict[str, str], newest: str) -> float:
    """Seconds until the newest step is on screen."""
    with Program(argv, env) as program:
        return program.until(newest)


def main() -> None:
    """Print the times of both threads, their ratios and one line of JSON."""
    quick = "--quick" in sys.argv
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    lengths = {"short": SHORT, "long": numbers[0] if numbers else QUICK if quick else STEPS}
    ways = ("show", "log", "screen")
    seconds: dict[tuple[str, str], list[float]] = {(way, name): [] for way in ways for name in lengths}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        stores = {thread: fill(folder, thread, steps) for thread, steps in lengths.items()}
        for _ in range(QUICK_ROUNDS if quick else ROUNDS):
            for thread, store in stores.items():
                at = ["--store", str(store)]
                seconds["show", thread].append(ran([APP, "show", thread, *at]))
                seconds["log", thread].append(ran([APP, "log", thread, "--limit", "50", *at]))
                newest = f"step {lengths[thread] + 1}"  # what was saved and the input came before
                screen = painted([APP, "resume", thread, *at], homes(folder), newest)
                seconds["screen", thread].append(screen)
    values: dict[str, float] = {"steps": lengths["long"]}
    for way in ways:
        long, short = seconds[way, "long"], seconds[way, "short"]
        values[way] = statistics.median(a / b for a, b in zip(long, short, strict=True))
        least = f"least {min(long):.3f} s, {SHORT} steps {min(short):.3f} s"
        print(f"{way:<8}{values[way]:5.2f} times that of {SHORT} steps ({least})")
    figures("open_long_thread", values)


if __name__ == "__main__":
    main()
