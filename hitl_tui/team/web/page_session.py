"""A session: a process of the app for one page, and the packets between them.

The packets are those of Textual's web driver: a letter, four bytes of length, and the payload.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from hitl_tui.errors import HitlError
from hitl_tui.view.sanitise import sanitise

log = logging.getLogger(__name__)
_DRIVER: Final = "textual.drivers.web_driver:WebDriver"
_PRELUDE: Final = b"__GANGLION__\n"
_LONGEST_PACKET: Final = 64 * 1024 * 1024
_LAST_WORDS: Final = 8 * 1024
"""Bytes of a process's other output that are shown when it exits."""
_LARGEST_FILE: Final = 16 * 1024 * 1024
_CHUNK: Final = 64 * 1024
_GRACE: Final = 8.0
"""Seconds that a process has to exit by itself after its page was closed."""
_HURRY: Final = 3.0
"""Seconds between the first signal and the kill."""


class SessionFailed(HitlError):
    """The app could not be started, or broke the protocol."""

    title = "The session failed"


class Download(msgspec.Struct, frozen=True):
    """A file that the app sends to the person at the page."""

    name: str
    mime_type: str
    data: bytes


class PageSession:
    """One process of the app.

    Args:
        argv: the program and its arguments, run without a shell.
        env: its environment variables.
        paint: sends terminal output to the page.
        open_url: asks the page to open a URL.
        deliver: sends a whole file to the page.
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        paint: Callable[[bytes], Awaitable[object]],
        open_url: Callable[[str], Awaitable[object]],
        deliver: Callable[[Download], Awaitable[object]],
    ) -> None:
        self._argv = argv
        self._env = env
        self._paint = paint
        self._open_url = open_url
        self._deliver = deliver
        self._process: asyncio.subprocess.Process | None = None
        self._errors = bytearray()
        self._exited = False
        self._file: tuple[str, dict[str, Any], bytearray] | None = None

    async def start(self, width: int, height: int) -> None:
        """Start the process.

        Raises:
            SessionFailed: it can't be started.
        """
        size = {"COLUMNS": str(width), "ROWS": str(height)}
        driver = {"TEXTUAL_DRIVER": _DRIVER, "TEXTUAL_COLOR_SYSTEM": "truecolor"}
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._argv, stdin=PIPE, stdout=PIPE, stderr=PIPE,
                env={**self._env, **size, **driver}, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise SessionFailed(f"the app can't be started: {error.strerror}") from None

    async def run(self) -> str:
        """Forward the app's screen until it exits; return its other output, sanitised."""
        process = self._started
        assert process.stdout is not None
        errors = asyncio.create_task(self._read_errors())
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._forward(process.stdout)
        output = await process.stdout.read(_LAST_WORDS) if self._exited else b""
        with suppress(TimeoutError):
            await asyncio.wait_for(errors, _HURRY)
        return sanitise((output + bytes(self._errors)).decode(errors="replace")).strip()

    async def _forward(self, out: asyncio.StreamReader) -> None:
        if await out.readuntil(b"\n") != _PRELUDE:
            raise asyncio.IncompleteReadError(b"", None)
        while not self._exited:
            head = await out.readexactly(5)
            size = int.from_bytes(head[1:], "big")
            if size > _LONGEST_PACKET:
                raise SessionFailed(f"a packet of {size:,} bytes")
            payload = await out.readexactly(size)
            if head[:1] == b"D":
                await self._paint(payload)
            elif head[:1] == b"M":
                await self._meta(json.loads(payload))
            elif head[:1] == b"P":
                await self._packed(payload)
            else:
                raise SessionFailed(f"a packet of kind {head[:1]!r}")

    async def _meta(self, meta: dict[str, Any]) -> None:
        kind = meta.get("type")
        if kind == "exit":
            self._exited = True
        elif kind == "open_url":
            await self._open_url(str(meta["url"]))
        elif kind == "deliver_file_start":
            self._file = (str(meta["key"]), meta, bytearray())
            await self._ask_chunk(str(meta["key"]))

    async def _packed(self, payload: bytes) -> None:
        """Add a chunk to the file; an empty chunk ends it."""
        from textual_serve._binary_encode import load

        packet: Any = load(payload)
        what, key, chunk = packet
        if what != "deliver_chunk" or self._file is None or self._file[0] != key:
            return
        _, meta, data = self._file
        data += chunk.encode() if isinstance(chunk, str) else chunk
        if len(data) > _LARGEST_FILE:
            self._file = None
        elif chunk:
            await self._ask_chunk(key)
        else:
            self._file = None
            name = os.path.basename(str(meta["path"]))
            await self._deliver(Download(name, str(meta.get("mime_type") or ""), bytes(data)))

    async def _ask_chunk(self, key: str) -> None:
        await self._send_meta({"type": "deliver_chunk_request", "key": key, "size": _CHUNK})

    async def _read_errors(self) -> None:
        errors = self._started.stderr
        assert errors is not None
        while data := await errors.read(_LAST_WORDS):
            self._errors += data
            del self._errors[:-_LAST_WORDS]

    @property
    def _started(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    async def type(self, text: str) -> None:
        """Send text as key presses."""
        await self._send(b"D", text.encode(errors="replace"))

    async def resize(self, width: int, height: int) -> None:
        """Report the new size of the page."""
        await self._send_meta({"type": "resize", "width": width, "height": height})

    async def focus(self, *, has: bool) -> None:
        """Report whether the page has the focus."""
        await self._send_meta({"type": "focus" if has else "blur"})

    async def _send_meta(self, data: Mapping[str, object]) -> None:
        await self._send(b"M", json.dumps(data).encode())

    async def _send(self, kind: bytes, payload: bytes) -> None:
        stdin = self._started.stdin
        assert stdin is not None
        with suppress(ConnectionError, RuntimeError):
            stdin.write(kind + len(payload).to_bytes(4, "big") + payload)
            await stdin.drain()

    async def end(self) -> None:
        """Close the app after its page was closed: let it save its state, then kill it and its children."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        for patience, number in ((_GRACE, signal.SIGTERM), (_HURRY, signal.SIGKILL)):
            try:
                await asyncio.wait_for(self._drained(process), patience)
                break
            except TimeoutError:
                log.warning("process %d of a session did not exit: sending signal %d", process.pid, number)
                _signal(process.pid, number)
        await process.wait()
        _signal(process.pid, signal.SIGKILL)  # its remaining children

    async def _drained(self, process: asyncio.subprocess.Process) -> None:
        """Wait for the exit; read and drop the output, or a full pipe would block the app for ever."""
        assert process.stdout is not None
        with suppress(RuntimeError):  # another task reads it
            while await process.stdout.read(_CHUNK):
                pass
        await process.wait()


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
