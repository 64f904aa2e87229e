"""Notifiers, which send a notice to a person: by their terminal, a command, or services with URLs."""

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
from hitl_tui.view.notices import TerminalSignal, terminal_bytes

COMMAND_SECONDS = 10.0
"""How long a command may take for a notice; then it is killed."""
RINGS_APART = 2.0
"""Seconds without a notice after which the next one rings: notices that come together ring once."""
_RINGS_ANYWAY = 30.0
"""Seconds after which a notice rings although others came just before it."""


class NotificationFailed(HitlError):
    """A notifier could not send a notice."""

    title = "A notice was not sent"


class Notifier(Protocol):
    """Sends notices to a person in one way; one that `gathers` gets those of one moment as one."""

    name: str
    gathers: bool

    def send(self, text: str, document: bytes) -> None:
        """Send a notice.

        Args:
            text: the notice as a sentence, sanitised.
            document: the notice as `--json` prints it.

        Raises:
            NotificationFailed: says why; contains no secret.
        """


class TerminalNotice:
    """Rings the terminal's bell, or makes it show a desktop notification."""

    name = "terminal"
    gathers = True

    def __init__(
        self,
        signals: Sequence[TerminalSignal],
        write: Callable[[str], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._signals = signals
        self._write = write
        self._clock = clock
        self._rung_at = self._last_at = -RINGS_APART

    def send(self, text: str, document: bytes) -> None:
        """Write the bytes that notify; notices that follow each other closely ring once, or now and then."""
        now = self._clock()
        rings = now - self._last_at >= RINGS_APART or now - self._rung_at >= _RINGS_ANYWAY
        self._last_at = now
        signals = [signal for signal in self._signals if rings or signal != "bell"]
        if rings and "bell" in signals:
            self._rung_at = now
        if signals:
            self._write(terminal_bytes(signals, text))


class CommandHook:
    """Runs a command with the document on its standard input.

    Args:
        command: the program and its arguments, or a line for the shell.
    """

    name = "command"
    gathers = False

    def __init__(self, command: Sequence[str] | str, seconds: float = COMMAND_SECONDS) -> None:
        self._command = command
        self._seconds = seconds

    def send(self, text: str, document: bytes) -> None:
        """Run the command, without a terminal; kill it after `seconds`."""
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
                f"the command for notices took longer than {self._seconds:g} s and was killed"
            ) from None
        finally:
            if running.poll() is None:
                # The command and the processes that it started.
                with suppress(OSError):
                    os.killpg(running.pid, signal.SIGKILL)
                running.wait()
        if running.returncode:
            raise NotificationFailed(f"the command for notices failed with exit code {running.returncode}")


class Services:
    """Sends by mail, chat or telephone, by URLs of Apprise. URLs hold passwords and are never shown.

    Raises:
        UsageError: Apprise is not installed, or does not know a URL.
    """

    name = "services"
    gathers = False

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

    def send(self, text: str, document: bytes) -> None:
        """Send a notice to all services."""
        failed = "a service of notify.urls did not accept the notice"
        try:
            sent = self._services.notify(body=text, title="hitl-tui")
        except Exception as error:
            raise NotificationFailed(f"{failed}: {type(error).__name__}") from None
        if not sent:
            raise NotificationFailed(failed)
