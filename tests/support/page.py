"""What a page in a browser shows of the app: the packets of Textual's driver on an emulated terminal."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.support.emulator import Emulator
from tests.support.terminal import PATIENCE, readable

WEB = {"TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver", "TEXTUAL_COLOR_SYSTEM": "truecolor"}


class Page:
    """A program below a server of pages, as textual-serve starts it: pipes, no terminal."""

    def __init__(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> None:
        self._screen = Emulator(120, 40)
        self._unread = b""
        self.metas: list[dict[str, Any]] = []
        self.packed: list[bytes] = []
        size = {"COLUMNS": "120", "ROWS": "40"}
        self.program = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **WEB, **size, "TERM": "dumb", **(env or {})},
        )  # fmt: skip
        assert self.program.stdout is not None
        self.prelude = self.program.stdout.readline()

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        if self.program.poll() is None:
            self.program.kill()
        self.program.wait()
        for pipe in (self.program.stdin, self.program.stdout, self.program.stderr):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()

    def send(self, kind: bytes, data: bytes) -> None:
        """Send a packet."""
        assert self.program.stdin is not None
        self.program.stdin.write(kind + len(data).to_bytes(4, "big") + data)
        self.program.stdin.flush()

    def press(self, keys: str) -> None:
        """Type."""
        self.send(b"D", keys.encode())

    def meta(self, **data: Any) -> None:
        """Tell what is no key."""
        self.send(b"M", json.dumps(data).encode())

    def text(self) -> str:
        """The screen."""
        return self._screen.text()

    def wait_for(self, wanted: str) -> str:
        """Wait until a text is on the screen."""
        return self.wait_until(lambda: wanted in self.text(), wanted)

    def wait_until(self, done: Callable[[], bool], what: str) -> str:
        """Wait until something is so; returns the screen."""
        end = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < end, f"waited for {what}; the screen:\n{self.text()}"
            self._pump()
        return self.text()

    def resize(self, width: int, height: int) -> None:
        """The page has another size."""
        self._screen.resize(width, height)
        self.meta(type="resize", width=width, height=height)

    def _pump(self) -> None:
        assert self.program.stdout is not None
        out = self.program.stdout.fileno()
        if not readable(out, 0.05):
            return
        data = os.read(out, 65536)
        assert data, f"the program has ended:\n{self.text()}"
        self._unread += data
        while len(self._unread) >= 5:
            size = int.from_bytes(self._unread[1:5], "big")
            if len(self._unread) < 5 + size:
                return
            kind, packet = self._unread[:1], self._unread[5 : 5 + size]
            self._unread = self._unread[5 + size :]
            if kind == b"D":
                self._screen.feed(packet)
            elif kind == b"M":
                self.metas.append(json.loads(packet))
            else:
                self.packed.append(packet)
