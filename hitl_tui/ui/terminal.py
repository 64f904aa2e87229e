"""The terminal: what it can show and sends, signals, and programs of the user's that run on it."""

from __future__ import annotations

import asyncio
import codecs
import os
import select
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from hitl_tui.drivers.node_streams import in_browser, own_descriptors, own_err, own_out, terminal_size
from hitl_tui.ui.textual_private import stoppable

if TYPE_CHECKING:
    from textual.driver import Driver


_C: Final = frozenset({"C", "POSIX"})


def shown_encoding(environ: Mapping[str, str]) -> str:
    """Return the terminal's encoding by the locale: "utf-8", "ascii" or another codec; a page has UTF-8.

    PYTHONIOENCODING is what can be written, whatever the locale says.
    """
    if in_browser():
        return "utf-8"
    with suppress(LookupError):
        written = environ.get("PYTHONIOENCODING", "").partition(":")[0]
        if written and (name := codecs.lookup(written).name) != "utf-8":
            return name
    everywhere, characters, language = (environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    if not everywhere and language in _C and characters == "C.UTF-8":
        # Python itself writes this LC_CTYPE over a plain C locale.
        return "ascii"
    locale = everywhere or characters or language
    if locale in _C:
        return "ascii"
    name = locale.partition("@")[0].partition(".")[2]
    try:
        return codecs.lookup(name).name if name else "utf-8"
    except LookupError:
        return "utf-8"


_TURN: Final = 0.001


@contextmanager
def short_turns() -> Iterator[None]:
    """Make a computing thread give way after a millisecond, not after Python's five.

    From a key to its paint the screen asks for the interpreter several times, and waits for a whole turn
    each time while another thread computes.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _TURN))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def take_any_bytes() -> None:
    """Read invalid bytes as "�"; Textual's driver would end the app over them."""
    if sys.platform == "win32":
        return
    from textual.drivers import linux_driver

    def tolerant(encoding: str) -> Any:
        return partial(codecs.getincrementaldecoder(encoding), errors="replace")

    vars(linux_driver)["getincrementaldecoder"] = tolerant


class _Ending(threading.Event):
    """Textual's event for the end of its reader of keys; wakes a reader that waits for keys.

    Args:
        lost: called once nobody is at the other end of the terminal any more.
    """

    def __init__(self, lost: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self.lost = lost
        self.woken, self._wake = os.pipe()
        os.set_blocking(self.woken, False)

    def set(self) -> None:
        super().set()
        os.write(self._wake, b"!")

    def clear(self) -> None:
        with suppress(BlockingIOError):
            os.read(self.woken, 64)
        super().clear()


_FOLLOWING_LOOKS: Final = 5


class _KeySelector(selectors.SelectSelector):
    """Waits for keys for as long as there are none; Textual's reader looks ten times a second.

    After a key it must look: an escape without a following character is a key of its own.
    """

    ending: _Ending | None = None

    def __init__(self) -> None:
        super().__init__()
        self._looks = 0
        if self.ending is not None:
            self.register(self.ending.woken, selectors.EVENT_READ)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(timeout if self._looks or self.ending is None else None)
        self._looks = _FOLLOWING_LOOKS if ready else max(self._looks - 1, 0)
        if self.ending is None:
            return ready
        keys = [(key, mask) for key, mask in ready if key.fd != self.ending.woken]
        if any(_has_gone(key.fd) for key, _ in keys):
            # Under nohup that is not the end, but it could be read for ever.
            self.ending.lost()
            select.select([self.ending.woken], (), ())
            return []
        return keys


def _has_gone(terminal: int) -> bool:
    """Whether nobody is at the other end of a terminal any more."""
    poll = select.poll()
    poll.register(terminal, select.POLLHUP)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def wait_for_keys() -> None:
    """Let Textual's driver wake up for keys alone."""
    if sys.platform == "win32":
        return
    from textual.drivers import linux_driver

    ours = SimpleNamespace(SelectSelector=_KeySelector, EVENT_READ=selectors.EVENT_READ)
    vars(linux_driver)["selectors"] = ours


_LOOK: Final = 0.2
"""Seconds between checks for a signal: it may be delivered to another thread and so interrupt no wait."""
_GRACE: Final = 1.0
"""Seconds; a shell or a terminal that ends sends the program a signal, too, and it may have to save."""


def run_on_the_terminal(command: Sequence[str]) -> int:
    """Run a command until it ends; return its exit code, or the negative number of the signal that ended it.

    Its ctrl+c does not affect the app. A signal that ends the app ends the program, too, since the app's
    own loop handles it only afterwards; this is no failure of the program, and the code is 0.

    Raises:
        OSError: it can't be started.
    """
    with _ctrl_c_ignored(), _stop_signals() as received:
        out, err = own_descriptors()
        child = subprocess.Popen(list(command), stdout=out, stderr=err, preexec_fn=_ctrl_c_as_usual)  # noqa: PLW1509  one call, no locks
        for before, end in enumerate((child.terminate, child.kill)):
            while len(received) <= before:
                with suppress(subprocess.TimeoutExpired):
                    code = child.wait(_LOOK)
                    return 0 if received else code
            with suppress(subprocess.TimeoutExpired):
                child.wait(_GRACE)
                return 0
            end()
        child.wait()
        return 0


@contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """Collect the signals that ask the app to end."""
    received: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        received.append(number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    handled = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, hear) for number in handled}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ctrl_c_as_usual() -> None:
    """Restore ctrl+c in the child before it becomes that program: an ignored signal would stay ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


def listen(on_signal: Callable[[int], None]) -> None:
    """Call `on_signal` on the running loop with each signal that asks the app to end.

    A signal that the parent process wants ignored, as nohup does, stays ignored.
    """
    loop = asyncio.get_running_loop()

    def arrived(number: int) -> None:
        let_go_of_a_lost_terminal()
        on_signal(number)

    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            # Off the main thread, as in some tests, signals can't be listened to.
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, arrived, number)


def let_go_of_a_lost_terminal() -> None:
    """Discard output once the terminal has gone: a writer that fails would hang the app."""
    if in_browser():
        return
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
    """Terminal output that survives the loss of its terminal: what can't be written is dropped."""

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
    """Return a driver of Textual's that paints on the terminal though the standard streams belong to nodes.

    It survives when the terminal goes away before its signal has come: its writer's queue is bounded, and
    once nobody empties it, the app would wait for it for ever.
    """

    class OnOurTerminal(stoppable(driver)):  # type: ignore[misc]  # whichever this platform has
        def __init__(self, *args: Any, **options: Any) -> None:
            streams: Any = sys
            before = (streams.__stdout__, streams.__stderr__)
            streams.__stdout__, streams.__stderr__ = _Enduring(own_out()), _Enduring(own_err())
            try:
                super().__init__(*args, **options)
            finally:
                streams.__stdout__, streams.__stderr__ = before
            if sys.platform != "win32":
                self.exit_event = _KeySelector.ending = _Ending(self._lose_terminal)

        def _lose_terminal(self) -> None:
            with suppress(RuntimeError):  # the loop has ended
                self.call_soon(self.app.terminal_lost)

        def terminal_size(self) -> tuple[int, int]:
            size = terminal_size((80, 25))
            return size.columns, size.lines

    return OnOurTerminal


def keep_text(text: str, what: str) -> str:
    """Save a text that nobody has applied in a file of its own; return where, or that it is lost."""
    import tempfile

    from hitl_tui.config import user_folder

    folder = user_folder("state")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix="unapplied-", suffix=".txt", dir=folder)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        return f"{what} was not applied, and could not be kept: {error.strerror or error}"
    return f"{what} was not applied; it is kept in {name}"
