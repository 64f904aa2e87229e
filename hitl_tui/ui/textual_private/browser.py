"""Private names of Textual for a page in a browser; see the package."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from textual.drivers.web_driver import WebDriver


class HookedWebDriver(WebDriver):
    """Driver of a page whose reading and writing can be replaced, and that can call its app."""

    @property
    def app(self) -> Any:
        """App that it belongs to."""
        return self._app

    def call_soon(self, callback: Callable[..., object], *arguments: object) -> None:
        """Call a function on the app's loop, from any thread."""
        self._loop.call_soon_threadsafe(callback, *arguments)

    def use(self, read: Any, write: Callable[[bytes], int]) -> None:
        """Read from and write to these: Textual looks for input ten times a second, and mixes packets."""
        self._loop = asyncio.get_running_loop()
        self._write = write  # type: ignore[assignment]  # theirs is a partial of `os.write`
        self._input_reader = read
