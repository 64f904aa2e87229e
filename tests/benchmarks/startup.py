"""How long the command line takes to answer, beside what any Python program takes.

    python -m tests.benchmarks.startup [--quick]

Every round runs all programs once, so that a busy machine slows them alike; the whole command counts, from
its start to its end.  Wanted are 6 times `python -c pass` for `--help`, and 8 times for the others.  See
`first_paint` for the screen.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.benchmarks.long_thread import opened
from tests.benchmarks.terminals import APP, figures, homes

ROUNDS, QUICK = 41, 9


def programs() -> dict[str, list[str]]:
    """What is run, the floor first."""
    commands = {"--help": [], "threads": [], "show": ["thread-07", "--json"], "log": ["thread-07"]}
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import click": [sys.executable, "-c", "import click"],
        **{" ".join([name, *rest[1:]]): [APP, name, *rest] for name, rest in commands.items()},
    }


def timed(argv: Sequence[str], env: Mapping[str, str]) -> tuple[float, float]:
    """Seconds of one run, and seconds of CPU."""
    begin = time.perf_counter()
    program = subprocess.Popen(argv, stdout=subprocess.DEVNULL, cwd=os.path.expanduser("~"), env=env)
    _, status, usage = os.wait4(program.pid, 0)
    taken = time.perf_counter() - begin
    program.returncode = os.waitstatus_to_exitcode(status)
    if program.returncode:
        raise SystemExit(f"{argv} ended with {program.returncode}")
    return taken, usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print the figures and one line of JSON."""
    rounds = QUICK if "--quick" in sys.argv else ROUNDS
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        runner, store = opened(folder)
        for number in range(20):
            runner.invoke({"n": number}, thread_id=f"thread-{number:02}")
        store.close()
        env = {**os.environ, **homes(folder), "HITL_TUI_STORE": str(folder / "runs.db")}
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in programs()}
        for _ in range(rounds):
            for name, argv in programs().items():
                taken[name].append(timed(argv, env))
    result: dict[str, float] = {}
    floor = next(iter(taken.values()))
    for name, runs in taken.items():
        walls, cpus = zip(*runs, strict=True)
        ratio = statistics.median(wall / base for wall, (base, _) in zip(walls, floor, strict=True))
        least = min(walls) / min(floor)[0]
        cpu = min(cpus) / min(cpu for _, cpu in floor)
        result |= {name: ratio, f"{name} least": least, f"{name} cpu": cpu}
        print(
            f"{name:16} least {min(walls) * 1e3:6.1f} ms, CPU {min(cpus) * 1e3:6.1f} ms; "
            f"to `python -c pass`: median {ratio:5.2f}, least {least:5.2f}, CPU {cpu:5.2f}"
        )
    figures("startup", result)


if __name__ == "__main__":
    main()
