"""The first screen on which graph and channels can be read, beside the content of an empty Textual app.

    python -m tests.benchmarks.first_paint [--quick] [NAME...]

All are started in a pseudo-terminal of 120x40, in turns, so that a busy machine slows them alike.  What
counts is the first screen that holds the names of the nodes and the values of the channels (for the list of
threads their names); a frame without them does not count.  Wanted are ratios of 1.5 for `demo` and 1.4 for
the others.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.long_thread import graph_file, opened
from tests.benchmarks.terminals import APP, Program, figures, homes

EMPTY = """
from textual.app import App
from textual.widgets import Footer, Header, Static
class Empty(App):
    def compose(self):
        yield Header(); yield Static("hello"); yield Footer()
Empty().run()
"""
ROUNDS, QUICK = 15, 5


class Start(NamedTuple):
    """A program, and what stands on its first screen that is of use."""

    argv: Sequence[str]
    wanted: Sequence[str]


def starts(folder: Path) -> dict[str, Start]:
    """The programs to be measured, the empty app first."""
    runner, store = opened(folder)
    for number in range(20):
        runner.invoke({"n": number}, thread_id=f"thread-{number:02}")
    store.close()
    at, new = (["--store", str(folder / name)] for name in ("runs.db", "new.db"))
    return {
        "empty": Start([sys.executable, "-c", EMPTY], ["hello"]),
        "demo": Start(
            [APP, "demo", *new], ["advisor", "latest_draft", "Explain what a closure is", "step 0"]
        ),
        "run": Start([APP, "run", str(graph_file(folder)), *new], ["count", "overwrite 0", "READY"]),
        "resume": Start([APP, "resume", "thread-07", *at, "--trust"], ["count", "overwrite 8", "END"]),
        "list of threads": Start([APP], ["thread-19", "thread-10"]),
    }


def main() -> None:
    """Print the times, their ratios and one line of JSON."""
    names = [name for name in sys.argv[1:] if name != "--quick"]
    rounds = QUICK if "--quick" in sys.argv else ROUNDS
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        env = {**homes(folder), "HITL_TUI_STORE": str(folder / "runs.db")}
        programs = starts(folder)
        programs = {name: programs[name] for name in ("empty", *(names or list(programs)[1:]))}
        walls: dict[str, list[float]] = {name: [] for name in programs}
        cpus: dict[str, list[float]] = {name: [] for name in programs}
        for turn in range(rounds + 1):
            for name, (argv, wanted) in programs.items():
                with Program(argv, env) as program:
                    wall, cpu = program.readable(*wanted)
                if turn:
                    walls[name].append(wall)
                    cpus[name].append(cpu)
    result: dict[str, float] = {}
    for name in programs:
        ratio = statistics.median(a / b for a, b in zip(walls[name], walls["empty"], strict=True))
        least, cpu = min(walls[name]), min(cpus[name])
        result |= {name: ratio, f"{name} least": least / min(walls["empty"])}
        result |= {f"{name} cpu": cpu / min(cpus["empty"])}
        print(
            f"{name:16} least {least * 1e3:6.0f} ms, CPU {cpu * 1e3:6.0f} ms; to the empty app's: median "
            f"{ratio:.2f}, least {result[f'{name} least']:.2f}, CPU {result[f'{name} cpu']:.2f}"
        )
    figures("first_paint", result)


if __name__ == "__main__":
    main()
