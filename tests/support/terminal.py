"""A real pseudo-terminal around a program: its screen as text, keys to press, a size to change."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support.emulator import Emulator

KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "shift+tab": "\x1b[Z",
    "space": " ",
    "backspace": "\x7f",
    "delete": "\x1b[3~",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
}

PATIENCE = 60.0
"""Seconds; no test gets slower by it, and a busy machine may need them."""

UNREAD = 2.0
"""Seconds that a program may leave a key unread before the next one is sent: it may be stopped."""


def readable(descriptor: int, seconds: float) -> bool:
    """Whether there is something to read within that long; `select` takes no descriptor above 1,023."""
    ready = select.poll()
    ready.register(descriptor, select.POLLIN)
    return bool(ready.poll(seconds * 1000))


class Terminal:
    """A program in a terminal of its own; use it as a context manager, so that it never outlives a test."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        size: tuple[int, int] = (120, 40),
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.raw = bytearray()
        self._closed = False
        self._screen = Emulator(*size)
        self._master, slave = os.openpty()
        self._name = os.ttyname(slave)
        self._set_size(*size)
        self._program = subprocess.Popen(
            list(argv),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  one call, no locks
        )
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        with contextlib.suppress(OSError):
            os.close(self._master)

    @property
    def pid(self) -> int:
        """The program's process id."""
        return self._program.pid

    def text(self) -> str:
        """The screen as it is now, without blanks at the ends of lines."""
        self._pump(0)
        return self._screen.text()

    def words(self) -> str:
        """The screen as one line, with a single blank between words."""
        return " ".join(self.text().split())

    def find(self, wanted: str) -> tuple[int, int] | None:
        """Column and row of a text on the screen, both from 0."""
        for row, line in enumerate(self._screen.rows()):
            if (column := line.find(wanted)) >= 0:
                return column, row
        return None

    def wait_for(self, wanted: str, timeout: float = PATIENCE) -> str:
        """Wait until a text is on the screen; returns the screen."""
        return self._wait(lambda: wanted in self.text(), f"{wanted!r} to come up", timeout)

    def wait_for_words(self, *wanted: str, timeout: float = PATIENCE) -> str:
        """Wait until all these texts are on the screen, wherever its lines break; returns its words.

        What belongs together may be painted one after the other, so each text is waited for.
        """

        def missing() -> list[str]:
            words = self.words()
            return [text for text in wanted if text not in words]

        self._wait(lambda: not missing(), f"all of {wanted} to be there", timeout)
        return self.words()

    def wait_until(self, condition: Callable[[], bool], what: str, timeout: float = PATIENCE) -> str:
        """Wait until something is true of the screen; returns the screen."""
        return self._wait(condition, what, timeout)

    def wait_gone(self, unwanted: str, timeout: float = PATIENCE) -> str:
        """Wait until a text is no longer on the screen; returns the screen."""
        return self._wait(lambda: unwanted not in self.text(), f"{unwanted!r} to go away", timeout)

    def settle(self, quiet: float = 0.25, timeout: float = 10) -> str:
        """Wait until nothing was painted for a while; returns the screen."""
        end = time.monotonic() + timeout
        while self._pump(quiet) and time.monotonic() < end:
            pass
        return self.text()

    def press(self, *keys: str) -> None:
        """Press keys by name (`enter`, `ctrl+x`, `a`); other texts are typed letter by letter."""
        for key in keys:
            if key.startswith("ctrl+") and len(key) == 6:
                data = chr(ord(key[5].upper()) - 64)
            else:
                data = KEYS.get(key, key)
            self.send(data.encode())

    def press_until(self, key: str, wanted: str) -> None:
        """Press a key until it takes: a fresh review card ignores keys for half a second."""
        self.settle(0.6)
        for patience in (4, 8, 16, 32):
            self.press(key)
            with contextlib.suppress(AssertionError):
                self.wait_for(wanted, timeout=patience)
                return
        raise AssertionError(f"{key} never brought up {wanted!r}; the screen:\n{self.text()}")

    def send(self, data: bytes) -> None:
        """Send bytes as they are, and let the program read them: what comes next is another key to it.

        Letters within a hundredth of a second of each other count as text that was pasted.
        """
        os.write(self._master, data)
        end = time.monotonic() + UNREAD
        while self._unread() and time.monotonic() < end:
            self._pump(0.005)
        self._pump(0.03)

    def click(self, wanted: str) -> None:
        """Click with the left button on a text that is on the screen."""
        self.wait_for(wanted)
        found = self.find(wanted)
        assert found is not None
        column, row = found[0] + len(wanted) // 2 + 1, found[1] + 1
        self.send(f"\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m".encode())

    def resize(self, columns: int, rows: int) -> None:
        """Change the size; the program gets SIGWINCH."""
        self._screen.resize(columns, rows)
        self._set_size(columns, rows)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program and all it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def hang_up(self) -> None:
        """Take the terminal away, as closing its window does; the program gets SIGHUP."""
        os.close(self._master)
        self._closed = True

    def kill(self) -> None:
        """End the program at once, as a power cut would (SIGKILL)."""
        if self._program.poll() is None:
            self.signal(signal.SIGKILL)
            self._program.wait()

    def wait_exit(self, timeout: float = PATIENCE) -> int:
        """Wait until the program has ended; returns its exit code."""
        self._wait(lambda: self._program.poll() is not None, "the program to end", timeout)
        self._pump(0)
        return self._program.wait()

    def _wait(self, done: Callable[[], bool], what: str, timeout: float) -> str:
        end = time.monotonic() + timeout
        while not done():
            code = self._program.poll()
            over = f"the program has ended with {code}" if code is not None else ""
            if not over and time.monotonic() > end:
                over = f"{timeout} s are over"
            self._pump(0.03)
            if over and not done():
                raise AssertionError(f"waited for {what}, but {over}; the screen:\n{self.text()}")
        return self.text()

    def _unread(self) -> int:
        """How many bytes of input the program has not read."""
        try:
            slave = os.open(self._name, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError:  # the terminal has been taken away
            return 0
        try:
            count = fcntl.ioctl(slave, termios.FIONREAD, b"\0" * 4)
        finally:
            os.close(slave)
        return int.from_bytes(count, sys.byteorder)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _pump(self, seconds: float) -> bool:
        """Feed the emulator for that long; says whether the program painted anything."""
        end = time.monotonic() + seconds
        painted = False
        while True:
            left = max(0.0, end - time.monotonic())
            if self._closed:
                time.sleep(left)
                return painted
            if not readable(self._master, left):
                return painted
            try:
                data = os.read(self._master, 65536)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                self._closed = True
                continue
            painted = True
            self.raw += data
            if b"\x1b[c" in data:
                os.write(self._master, b"\x1b[?62;22c")
            self._screen.feed(data)
