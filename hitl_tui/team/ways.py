"""The ways in which a notice reaches a person: their terminal, a command, services by URL."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from hitl_tui.errors import HitlError, UsageError
from hitl_tui.view.notices import TerminalWay, terminal_bytes

COMMAND_SECONDS = 10.0
"""How long a command may take for a notice; then it is ended."""
RINGS_APART = 2.0
"""Seconds between two bells at least: what ends or waits together rings once."""


class NotificationFailed(HitlError):
    """A notice could not be sent by one channel."""

    title = "A notice was not sent"


class Way(Protocol):
    """One way to tell a notice."""

    name: str

    def tell(self, text: str, document: bytes) -> None:
        """Send the notification.

        Args:
            text: the notice as a sentence, sanitised.
            document: as `--json` has it.

        Raises:
            NotificationFailed: says why; contains no secret.
        """


class TerminalNotice:
    """A bell, or what makes a terminal raise a notice of the desktop."""

    name = "terminal"

    def __init__(
        self,
        ways: Sequence[TerminalWay],
        write: Callable[[str], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ways = ways
        self._write = write
        self._clock = clock
        self._rung_at = -RINGS_APART

    def tell(self, text: str, document: bytes) -> None:
        """Write what makes the terminal tell it; notices that come close together ring once."""
        now = self._clock()
        rings = now - self._rung_at >= RINGS_APART
        ways = [way for way in self._ways if rings or way != "bell"]
        if rings and "bell" in ways:
            self._rung_at = now
        if ways:
            self._write(terminal_bytes(ways, text))


class CommandHook:
    """A command that gets the document on its standard input.

    Args:
        command: the program and its arguments; one text is a line for the shell.
    """

    name = "command"

    def __init__(self, command: Sequence[str] | str, seconds: float = COMMAND_SECONDS) -> None:
        self._command = command
        self._seconds = seconds

    def tell(self, text: str, document: bytes) -> None:
        """Run it, for a bounded time, away from the terminal."""
        try:
            running = subprocess.Popen(
                self._command,
                shell=isinstance(self._command, str),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise NotificationFailed(
                f"the command for notices can't be run: {error}", "see [notify]"
            ) from None
        try:
            with suppress(BrokenPipeError):
                running.communicate(document, timeout=self._seconds)
        except subprocess.TimeoutExpired:
            raise NotificationFailed(
                f"the command for notices took longer than {self._seconds:g} s and was ended"
            ) from None
        finally:
            if running.poll() is None:
                # It and whatever it has begun.
                with suppress(OSError):
                    os.killpg(running.pid, signal.SIGKILL)
                running.wait()
        if running.returncode:
            raise NotificationFailed(f"the command for notices ended with {running.returncode}")


class Services:
    """Mail, chats, telephones: whatever Apprise has a URL for.  URLs hold passwords, and are never shown.

    Raises:
        UsageError: Apprise is not installed, or a URL is none of its own.
    """

    name = "services"

    def __init__(self, urls: Sequence[str]) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what it imports
                import apprise
        except ImportError:
            raise UsageError(
                "notify.urls needs Apprise, which is not installed", 'pip install "hitl-tui[notify]"'
            ) from None
        logging.getLogger("apprise").disabled = True  # it quotes URLs
        self._services = apprise.Apprise()
        for number, url in enumerate(urls, 1):
            if not self._services.add(url):
                raise UsageError(f"notify.urls: Apprise does not know URL {number}", "see Apprise's wiki")

    def tell(self, text: str, document: bytes) -> None:
        """Send it to all of them."""
        failed = "a service of notify.urls did not take the notice"
        try:
            sent = self._services.notify(body=text, title="hitl-tui")
        except Exception as error:
            raise NotificationFailed(f"{failed}: {type(error).__name__}") from None
        if not sent:
            raise NotificationFailed(failed)
