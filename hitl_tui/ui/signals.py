"""Being told to end from outside: by a signal, or because the terminal has gone."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from hitl_tui.drivers.node_streams import own_descriptors, own_err, own_out, terminal_size

if TYPE_CHECKING:
    from textual.driver import Driver

_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


def listen(told: Callable[[int], None]) -> None:
    """Call `told` on the running loop with each signal that asks us to end.

    One that whoever started us wants ignored, as nohup does, stays ignored.
    """
    loop = asyncio.get_running_loop()

    def arrived(number: int) -> None:
        _let_go_of_a_lost_terminal()
        told(number)

    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            # Off the main thread, as in some tests, signals can't be listened to.
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, arrived, number)


def _let_go_of_a_lost_terminal() -> None:
    """Send what is painted nowhere once the terminal has gone: a writer that fails would hang the app."""
    try:
        import termios
    except ImportError:
        return
    try:
        termios.tcgetattr(sys.__stdin__.fileno() if sys.__stdin__ else 0)
    except (termios.error, ValueError, OSError):
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in own_descriptors():
            os.dup2(nowhere, descriptor)
        os.close(nowhere)


class _Enduring:
    """A terminal to write to that may go away: what it does not take is lost, and nothing fails."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def on_our_terminal(driver: type[Driver]) -> type[Driver]:
    """A driver of Textual's that paints on the terminal though the standard streams belong to nodes.

    It is kept alive when the terminal goes away before its signal has come: its writer's queue has an
    end, and once nobody empties it, the app would wait for it for ever.
    """

    class OnOurTerminal(driver):  # type: ignore[valid-type,misc]  # whichever this platform has
        def __init__(self, *args: Any, **options: Any) -> None:
            streams: Any = sys
            before = (streams.__stdout__, streams.__stderr__)
            streams.__stdout__, streams.__stderr__ = _Enduring(own_out()), _Enduring(own_err())
            try:
                super().__init__(*args, **options)
            finally:
                streams.__stdout__, streams.__stderr__ = before

        def _get_terminal_size(self) -> tuple[int, int]:
            size = terminal_size((80, 25))
            return size.columns, size.lines

    return OnOurTerminal


def continue_as_one(driver: Driver | None) -> None:
    """Make SIGCONT start the screen again, not a second time.

    Textual's driver answers it as if it had always stopped by itself.  After a stop that nobody can
    catch, or none at all, two threads would read the keys and one of them for ever.
    """
    if driver is None or not hasattr(signal, "SIGCONT"):
        return
    screen: Any = driver
    before = signal.getsignal(signal.SIGCONT)
    if not callable(before) or getattr(before, "__self__", None) is not driver:
        return

    def continued(number: int, frame: FrameType | None) -> None:
        if not screen._auto_restart or screen._must_signal_resume:
            before(number, frame)
            return
        # What was typed since stays in the terminal for the new reader: the driver throws it away where
        # it ends its reader itself, and a terminal back in line mode would change it.
        screen.exit_event.set()
        screen._key_thread.join()
        modes, screen.attrs_before = screen.attrs_before, None
        screen.suspend_application_mode()
        screen.exit_event.clear()
        screen._must_signal_resume = True
        before(number, frame)
        screen.attrs_before = modes

    signal.signal(signal.SIGCONT, continued)


def keep_text(text: str, what: str) -> str:
    """Put a text that nobody has applied into a file of its own; says where, or that it is lost."""
    import tempfile

    import platformdirs

    folder = Path(platformdirs.user_state_dir("hitl-tui", appauthor=False))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix="unapplied-", suffix=".txt", dir=folder)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        return f"{what} was not applied, and could not be kept: {error.strerror or error}"
    return f"{what} was not applied; it is kept in {name}"
