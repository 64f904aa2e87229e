"""Processor time and wake-ups a second of a screen on which nothing happens.

    python -m tests.benchmarks.idle [--quick]

A run screen of a new thread, one on which the card waits for a decision, the list of threads and the queue;
nobody types.  The issue wants 0.3 % of a processor and 5 wake-ups a second.  The last line is JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.long_thread import graph_file
from tests.benchmarks.terminals import APP, Program, homes

SCREENS = {
    "run screen": (("run", "{graph}", "--thread", "t"), "READY", ""),
    "a decision waits": (("demo",), "worker is next", "c"),
    "list of threads": (("run", "{graph}", "--thread", "t"), "READY", "t"),
    "queue": (("run", "{graph}", "--thread", "t"), "READY", "Q"),
}
_SETTLES = 15.0
"""Seconds after which nothing that was started goes on any more: a run up to its question takes some,
and others are told a while later that somebody looks at it."""


def idle(arguments: tuple[str, ...], ready: str, keys: str, seconds: float) -> dict[str, float]:
    """What a screen takes while nothing happens on it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        argv = [APP, *(part.format(graph=graph_file(folder)) for part in arguments)]
        argv += ["--store", str(folder / "runs.db")]
        with Program(argv, {**homes(folder), "STEPS": "3"}) as program:
            program.until(ready)
            program.quiet(1.0)
            if keys:
                program.press(keys)
            program.listen(_SETTLES)
            cpu, wakes = program.cpu, program.wakes
            program.listen(seconds)
            percent = (program.cpu - cpu) / seconds * 100
            return {"cpu_percent": round(percent, 2), "wakes": round((program.wakes - wakes) / seconds, 1)}


def main() -> None:
    """Print the figures of each screen."""
    seconds = 4.0 if "--quick" in sys.argv else 10.0
    figures: dict[str, object] = {"script": "idle"}
    for name, screen in SCREENS.items():
        found = idle(*screen, seconds)
        figures[name] = found
        print(
            f"{name:18} {found['cpu_percent']:5.2f} %   {found['wakes']:6.1f} wake-ups a second", flush=True
        )
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
