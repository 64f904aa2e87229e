"""Time until the demo has painted something, beside an empty Textual app, in one run.

    python -m tests.benchmarks.first_paint [ROUNDS]

Both are started in a pseudo-terminal of 120x40, in turns; what counts is the first time the screen
holds something that isn't blank.  The issue wants a ratio of at most 1.4.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from fcntl import ioctl
from pathlib import Path

EMPTY = """
from textual.app import App
from textual.widgets import Footer, Header, Static
class Empty(App):
    def compose(self):
        yield Header(); yield Static("hello"); yield Footer()
Empty().run()
"""
_CONTROL = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]P][^\x07\x1b]*(?:\x07|\x1b\\)|.)|[\x00-\x20]")


def first_paint(argv: list[str], seconds: float = 20.0) -> float:
    """Seconds from the start of a program to its first visible character."""
    size = struct.pack("HHHH", 40, 120, 0, 0)
    started = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        ioctl(0, termios.TIOCSWINSZ, size)
        os.execvpe(argv[0], argv, dict(os.environ, TERM="xterm-256color", COLORTERM="truecolor"))
    seen = b""
    try:
        while time.perf_counter() - started < seconds:
            if not select.select([terminal], [], [], 0.2)[0]:
                continue
            seen += os.read(terminal, 65536)
            if _CONTROL.sub(b"", seen):
                return time.perf_counter() - started
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    raise SystemExit(f"{argv} painted nothing in {seconds} s")


def main() -> None:
    """Print both times and their ratio."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    found = shutil.which("hitl-tui", path=str(Path(sys.executable).parent))
    demo = [found, "demo"] if found else [sys.executable, "-m", "tests.ui.show"]
    empty = [sys.executable, "-c", EMPTY]
    times: dict[str, list[float]] = {"empty": [], "demo": []}
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_DATA_HOME"] = os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"] = home
        for argv in (empty, demo):
            first_paint(argv)
        for _ in range(rounds):
            times["empty"].append(first_paint(empty))
            times["demo"].append(first_paint(demo))
    for name, taken in times.items():
        print(f"{name:6} median {statistics.median(taken):.3f} s, best {min(taken):.3f} s")
    ratios = [demo / empty for demo, empty in zip(times["demo"], times["empty"], strict=True)]
    print(f"ratio of medians {statistics.median(times['demo']) / statistics.median(times['empty']):.2f}")
    print(f"median of ratios {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
