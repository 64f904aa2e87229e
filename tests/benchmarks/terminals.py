"""A program in a pseudo-terminal, fast enough to time it: nothing is emulated, bytes are only looked at."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from pathlib import Path

import pyte

APP = str(Path(sys.executable).with_name("hitl-tui"))
_CONTROL = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]P][^\x07\x1b]*(?:\x07|\x1b\\)|.)")


class Program:
    """A program in a terminal of 120x40; use it as a context manager, so that it ends."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self.started = time.perf_counter()
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
            plain = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
            # Whoever starts an app has its modules compiled since the start before.
            kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
            os.execvpe(argv[0], list(argv), {**kept, **plain, **env})

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)

    def press(self, keys: str) -> None:
        """Send keys."""
        os.write(self._terminal, keys.encode())

    def until(self, wanted: str, seconds: float = 60.0) -> float:
        """Wait until a text is painted from now on ("" for anything visible); seconds it took."""
        started, seen = time.perf_counter(), b""
        while (taken := time.perf_counter() - started) < seconds:
            seen += self.read(0.2)
            words = _CONTROL.sub(b"", seen)
            if wanted.encode() in words if wanted else words.strip():
                return time.perf_counter() - started
            seen = seen[-20_000:]
        raise SystemExit(f"{wanted!r} was not painted in {taken:.0f} s")

    def text(self, seconds: float) -> str:
        """What is painted next, without its colours and places; "" where nothing comes in time."""
        return _CONTROL.sub(b"", self.read(seconds)).decode(errors="replace")

    def readable(self, *wanted: str, seconds: float = 60.0) -> tuple[float, float]:
        """From its start to the first screen on which all these texts stand: seconds, and seconds of CPU.

        What came is emulated afterwards, so that the program is not slowed by it.
        """
        parts: list[tuple[float, float, bytes]] = []
        seen = b""
        while (taken := time.perf_counter() - self.started) < seconds:
            seen += (data := self.read(0.2))
            if data:
                parts.append((time.perf_counter() - self.started, self.cpu, data))
            words = _CONTROL.sub(b"", seen)
            if data and all(text.encode() in words for text in wanted) and (first := _first(parts, wanted)):
                return first
        raise SystemExit(f"{wanted} were not on the screen after {taken:.0f} s")

    @property
    def cpu(self) -> float:
        """Seconds of CPU it has taken in all its threads, in ticks of 10 ms or better."""
        ran = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(path.read_text().split()[0]) for path in ran) / 1e9

    def quiet(self, seconds: float) -> None:
        """Let it paint until that long nothing came, or five times that long has passed."""
        end = time.perf_counter() + 5 * seconds
        while self.read(seconds) and time.perf_counter() < end:
            pass

    def listen(self, seconds: float) -> None:
        """Let it paint for so long; a terminal that isn't read makes its program wait."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.read(left)

    @property
    def memory(self) -> float:
        """Resident memory in MB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    @property
    def wakes(self) -> int:
        """How often its threads were woken so far: each has waited before."""
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        status = [(task / "status").read_text() for task in tasks]
        return sum(int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0]) for text in status)

    def read(self, seconds: float) -> bytes:
        """What comes within some time, at once when something does."""
        if not select.select([self._terminal], [], [], seconds)[0]:
            return b""
        data = os.read(self._terminal, 65536)
        if b"\x1b[c" in data:
            os.write(self._terminal, b"\x1b[?62;22c")
        return data


def _first(parts: Sequence[tuple[float, float, bytes]], wanted: Sequence[str]) -> tuple[float, float] | None:
    """When the screen first held all of it, None where it does not yet."""
    screen = pyte.Screen(120, 40)
    stream = pyte.ByteStream(screen)
    for moment, cpu, data in parts:
        stream.feed(data)
        shown = "\n".join(screen.display)
        if all(text in shown for text in wanted):
            return moment, cpu
    return None


def homes(folder: Path) -> dict[str, str]:
    """An environment whose settings, store and logs are below a folder."""
    kinds = ("CONFIG", "DATA", "STATE", "CACHE")
    return {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in kinds}


def figures(benchmark: str, values: Mapping[str, float]) -> None:
    """One line of JSON, for a script that compares two commits."""
    rounded = {name: round(value, 4) for name, value in values.items()}
    print(json.dumps({"benchmark": benchmark, **rounded}), flush=True)
