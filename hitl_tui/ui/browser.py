"""Terminal of a page in a browser: Textual's driver for it, adapted to our app."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from hitl_tui.drivers.node_streams import own_err, own_out
from hitl_tui.ui.terminal import listen
from hitl_tui.ui.textual_private.browser import HookedWebDriver

_PIECE: Final = 16 * 1024
_ESCAPE_PATIENCE: Final = 0.1
"""Seconds after which an escape without a following character is a key of its own."""
_LOOKS_AFTER_INPUT: Final = 5


class _PageInput:
    """Input from the page; it blocks until there is some, while Textual looks ten times a second.

    Args:
        gone: called on the reading thread when the page, or the process that serves it, has gone.
    """

    def __init__(self, gone: Callable[[], object]) -> None:
        self._gone = gone
        self._closed = False
        self._woken, self._wake = os.pipe()

    def close(self) -> None:
        """Stop reading, from any thread."""
        if not self._closed:
            self._closed = True
            os.write(self._wake, b"!")

    def __iter__(self) -> Iterator[bytes]:
        looks = 0
        while not self._closed:
            ready, _, _ = select.select([0, self._woken], (), (), _ESCAPE_PATIENCE if looks else None)
            looks = max(looks - 1, 0)
            if 0 in ready:
                looks = _LOOKS_AFTER_INPUT
                data = os.read(0, _PIECE)
                if not data:
                    self._gone()
                    return
                yield data
            yield b""


class PageDriver(HookedWebDriver):
    """Paints on a page, which may close at any moment; then the app ends as when a terminal is closed."""

    def __init__(self, *args: Any, **options: Any) -> None:
        # The standard streams belong to the nodes.
        streams: Any = sys
        before = (streams.__stdout__, streams.__stderr__)
        streams.__stdout__, streams.__stderr__ = own_out(), own_err()
        try:
            super().__init__(*args, **options)
        finally:
            streams.__stdout__, streams.__stderr__ = before
        self._gone = False
        self._writing = threading.Lock()
        self.use(_PageInput(self._page_gone), self._write_whole)

    def _write_whole(self, packet: bytes) -> int:
        """Write a packet without interruption by another thread; to a page that has gone, write nothing."""
        left = memoryview(packet)
        with self._writing, suppress(OSError):
            while left:
                left = left[os.write(self.fileno, left) :]
        return len(packet)

    def start_application_mode(self) -> None:
        """Start; keep our own signal handlers, where Textual would end the app without saving anything."""
        super().start_application_mode()
        listen(self._on_stop_signal)

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """Handle packets other than keys; `quit` counts as closing the page."""
        if packet_type == "quit":
            self._page_gone()
        else:
            super().on_meta(packet_type, payload)

    def _page_gone(self) -> None:
        if not self._gone:
            self._gone = True
            self.call_soon(self._on_stop_signal, signal.SIGHUP)

    def _on_stop_signal(self, number: int) -> None:
        self.app.on_stop_signal(number)
