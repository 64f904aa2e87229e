"""What the code of nodes prints and reads, kept away from the terminal, from documents and from keys.

After `keep_output`, `sys.stdout`, `sys.stderr` and the descriptors 1 and 2 belong to the code of nodes, to
the processes it starts and to the libraries it uses. Their output becomes text of the running node, or
goes to the caller that asked for the rest. The app itself writes to `own_out` and `own_err`, copies of the
descriptors that nobody else gets.
"""

from __future__ import annotations

import atexit
import codecs
import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

from hitl_tui.errors import HitlError

if TYPE_CHECKING:
    from hitl_tui.drivers.debugger import Lend
    from hitl_tui.engine.nodes.activity import Activity

LinesCallback = Callable[[list[str]], None]

_AT_ONCE = 1 << 20
"""Most bytes that a pipe holds, unless a privileged process has raised that."""
_DESCRIPTORS = (1, 2)
_SIZE_STANDS: Final = 1 / 50
"""Seconds for which a terminal's size is cached."""
_NOTHING = bytes(4)
"""An int of C that is 0."""


def _engine() -> Any:
    """The engine's module of attempts; it is not loaded just to find that no node runs."""
    return sys.modules.get("hitl_tui.engine.nodes.activity")


def _own_activity() -> Activity | None:
    """The attempt of a node that this code belongs to."""
    return module.current_activity.get() if (module := _engine()) is not None else None


class _NodeStream(io.TextIOWrapper):
    """A standard stream of nodes: passes text on at once, and bytes through the descriptor, as C does."""

    def __init__(self, descriptor: int, keeper: _Keeper) -> None:
        raw = cast("Any", io.FileIO(descriptor, "w", closefd=False))
        super().__init__(raw, encoding="utf-8", errors="backslashreplace", newline="\n", write_through=True)
        self._keeper = keeper

    def write(self, text: str, /) -> int:
        """Pass on a piece of text."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self._keeper.forked:
            return super().write(text)
        self._keeper.wrote(text)
        return len(text)

    def close(self) -> None:
        """Do nothing: others write there, too."""


class _Keeper:
    """Holds the standard streams for the code of nodes.

    Args:
        on_lines: gets lines that can't be assigned to a running node; called from any thread, one at a time.
    """

    def __init__(self, on_lines: LinesCallback) -> None:
        self.on_lines = on_lines
        self.forked = False
        # An object that is garbage-collected meanwhile may print, too.
        self._lock = threading.RLock()
        self._lines = LineSplitter()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._real: list[int] = []
        self._pipe = -1
        # Each step of a run asks how much is in the pipe, so what that needs is looked up once.
        self._ioctl: Callable[[int, int, bytearray], object]
        self._how_much = 0
        self._ended, self._reading = False, False
        self._before = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
        self.out = self._own(sys.stdout, 1)
        self.err = self._own(sys.stderr, 2)
        self._streams = (_NodeStream(1, self), _NodeStream(2, self))
        if os.name == "posix":
            self._take_descriptors()
        atexit.register(self.finish)
        self.put()

    @property
    def descriptors_kept(self) -> bool:
        """Whether what is written without Python is kept, too."""
        return self._pipe >= 0

    def put(self) -> None:
        """Replace Python's names for the standard streams by those of nodes."""
        sys.stdout, sys.stderr = self._streams
        sys.__stdout__, sys.__stderr__ = self._streams  # type: ignore[misc]  # whoever kept it from us

    def wrote(self, text: str) -> None:
        """Pass on a text, after what was written to the descriptors before it."""
        with self._lock:
            self.pump()
            self._deliver(text, _own_activity())

    def pump(self) -> None:
        """Pass on what is in the pipe."""
        if self._pipe < 0 or self.forked:
            return
        # Asking is cheaper than a read that fails; any thread may ask.
        self._ioctl(self._pipe, self._how_much, waiting := bytearray(4))
        if waiting == _NOTHING:
            return
        with self._lock:
            try:
                data = os.read(self._pipe, _AT_ONCE)
            except BlockingIOError:
                return
            self._deliver(self._decoder.decode(data))

    def wait_for_others(self) -> None:
        """Return once no other thread is passing anything on."""
        with self._lock:
            pass

    def finish(self) -> None:
        """Pass on what is left, including a line without an end."""
        self.pump()
        with self._lock:
            if not self.forked and (lines := self._lines.rest()):
                self.on_lines(lines)

    def end(self) -> None:
        """Restore the streams, and pass on the rest."""
        atexit.unregister(self.finish)
        sys.stdout, sys.stderr = self._before[:2]
        sys.__stdout__, sys.__stderr__ = self._before[2:]  # type: ignore[misc]
        for number, real in zip(_DESCRIPTORS, self._real, strict=False):
            os.dup2(real, number)
            os.close(real)
        self.finish()
        self._ended = True
        self._close_pipe()
        for stream in {self.out, self.err} - set(self._before):
            with suppress(OSError):
                stream.close()

    def _own(self, stream: TextIO, descriptor: int) -> TextIO:
        """Return a stream to the same place, to which only we write."""
        try:
            ours = stream.fileno() == descriptor and os.name == "posix"
        except (OSError, ValueError):
            ours = False
        if not ours:
            return stream
        stream.flush()
        return open(
            os.dup(descriptor),
            "w",
            encoding=stream.encoding,
            errors=stream.errors,
            buffering=1 if stream.isatty() else -1,
        )

    def _take_descriptors(self) -> None:
        """Put a pipe in place of the descriptors, with a thread that reads it."""
        from fcntl import ioctl
        from termios import FIONREAD

        self._real = [os.dup(number) for number in _DESCRIPTORS]
        self._pipe, writing = os.pipe()
        os.set_blocking(self._pipe, False)
        self._ioctl, self._how_much = ioctl, FIONREAD
        for number in _DESCRIPTORS:
            os.dup2(writing, number)
        os.close(writing)
        self._reading = True
        threading.Thread(target=self._read, name="hitl-tui node output", daemon=True).start()

    def _read(self) -> None:
        """Keep the pipe from filling up, which would block its writers."""
        import select

        ready = select.poll()
        ready.register(self._pipe, select.POLLIN)
        writers = True
        while writers:
            for _, event in ready.poll():
                self.pump()
                writers = bool(event & select.POLLIN or not event & select.POLLHUP)
        self._reading = False
        self._close_pipe()

    def _close_pipe(self) -> None:
        """Close the pipe once nobody needs it: a process that a node left running may still write there."""
        with self._lock:
            if self._pipe >= 0 and self._ended and not self._reading:
                os.close(self._pipe)
                self._pipe = -1

    def fork(self) -> None:
        """In a child process nobody reads the output of nodes: it goes through the pipe."""
        self.forked = True
        self._lock = threading.RLock()

    def _deliver(self, text: str, activity: Activity | None = None) -> None:
        """Pass on a text as output of an attempt; None means the running one, if that is known."""
        if not text:
            return
        if activity is None and (module := _engine()) is not None:
            activity = module.running_activity()
        if activity is None:
            if lines := self._lines.add(text):
                self.on_lines(lines)
        else:
            activity.text(text)


_keeper: _Keeper | None = None
_files: dict[tuple[int, int], tuple[Any, Any]] = {}
"""C's own streams over descriptors of ours; they live as long as the process."""


def _forked() -> None:
    if _keeper is not None:
        _keeper.fork()


if os.name == "posix":  # registered once, since that can't be undone
    os.register_at_fork(after_in_child=_forked)


def keep_output(on_lines: LinesCallback) -> None:
    """Keep all output of nodes away from the terminal, until the process ends.

    Args:
        on_lines: gets lines that no running node has written, as while a graph is built; called from any
            thread. A later call replaces it.
    """
    global _keeper  # noqa: PLW0603  (the process has these streams once)
    if _keeper is None:
        _keeper = _Keeper(on_lines)
    _keeper.on_lines = on_lines


def keep_python_streams() -> None:
    """Take `sys.stdout` and `sys.stderr` again from a library that has replaced them."""
    if _keeper is not None:
        _keeper.put()


def give_output_back() -> None:
    """Let everybody write to the standard streams again, as tests want it between two commands."""
    global _keeper
    keeper, _keeper = _keeper, None
    if keeper is not None:
        keeper.end()


def flush_output() -> None:
    """Return once everything written so far has been passed on, by whichever thread has read it."""
    if _keeper is not None:
        _keeper.pump()
        _keeper.wait_for_others()


def output_kept() -> bool:
    """Whether the standard streams belong to the code of nodes."""
    return _keeper is not None


def own_out() -> TextIO:
    """Return the standard output to which only the app writes."""
    return _keeper.out if _keeper is not None else sys.stdout


def own_err() -> TextIO:
    """Return the standard error to which only the app writes."""
    return _keeper.err if _keeper is not None else sys.stderr


def own_descriptors() -> tuple[int, int]:
    """Return the descriptors of the terminal, for programs that may write to it freely, such as an editor."""
    return (1, 2) if _keeper is None else (_keeper.out.fileno(), _keeper.err.fileno())


def terminal_size(fallback: tuple[int, int]) -> os.terminal_size:
    """Return columns and rows of the terminal, as `shutil.get_terminal_size` has them.

    That takes longer to import than printing a list of threads.
    """
    size = _own_size()
    columns = _wished("COLUMNS") or size.columns or fallback[0]
    return os.terminal_size((columns, _wished("LINES") or size.lines or fallback[1]))


def terminal_columns(fallback: int) -> int:
    """Return the columns of `terminal_size`; printed lines ask for them again and again."""
    return _wished("COLUMNS") or _own_size().columns or fallback


def _wished(name: str) -> int:
    wished = os.environ.get(name, "")
    return int(wished) if wished.isascii() and wished.isdigit() else 0


def _own_size() -> os.terminal_size:
    """Return the terminal's size; nothing if there is no terminal."""
    # Lines printed in a batch ask once: a system call for each would take a tenth of a fast run.
    return _size_of(sys.__stdout__ if _keeper is None else _keeper.out, int(time.monotonic() / _SIZE_STANDS))


@lru_cache(maxsize=1)
def _size_of(stream: TextIO | None, _moment: int) -> os.terminal_size:
    with suppress(OSError, ValueError):
        if stream is not None and stream.isatty():
            return os.get_terminal_size(stream.fileno())
    return os.terminal_size((0, 0))


def in_browser() -> bool:
    """Whether the screen is a page in a browser, by `hitl-tui serve` or textual-serve."""
    return os.environ.get("TEXTUAL_DRIVER", "") == "textual.drivers.web_driver:WebDriver"


def has_screen() -> bool:
    """Whether there is a terminal, or a page in a browser, that can show a screen."""
    if in_browser():
        return True
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def own_input(prompt: str) -> str:
    """Ask for a line as `input` does, with its line editing, at our own terminal.

    Raises:
        EOFError, KeyboardInterrupt: as `input`.
    """
    if _keeper is None:
        return input(prompt)
    if _keeper.descriptors_kept and sys.stdin.isatty() and _keeper.out.isatty():
        with suppress(_NoLineEditing):
            return _edited_line(prompt, _keeper.out)
    _keeper.out.write(prompt)
    _keeper.out.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.removesuffix("\n")


@contextmanager
def interruptible() -> Iterator[None]:
    """Let ctrl+c end a prompt inside an event loop, which would otherwise delay it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    import signal

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _NoLineEditing(Exception):
    """Raised if this interpreter offers no line editing."""


def _edited_line(prompt: str, out: TextIO) -> str:
    """Do what `input` does if the standard streams are a terminal, on another descriptor.

    `input` itself uses C's own stdout, which is not the terminal while the output of nodes is kept.
    """
    import ctypes

    library: Any = ctypes.CDLL(None)
    python: Any = ctypes.pythonapi
    if not hasattr(library, "fdopen") or not hasattr(python, "PyOS_Readline"):
        raise _NoLineEditing
    library.fdopen.restype = ctypes.c_void_p
    library.fdopen.argtypes = [ctypes.c_int, ctypes.c_char_p]
    python.PyOS_Readline.restype = ctypes.c_void_p
    python.PyOS_Readline.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p]
    python.PyMem_Free.argtypes = [ctypes.c_void_p]
    numbers = (sys.stdin.fileno(), out.fileno())
    if numbers not in _files:
        _files[numbers] = (library.fdopen(numbers[0], b"r"), library.fdopen(numbers[1], b"w"))
    line = python.PyOS_Readline(*_files[numbers], prompt.encode(out.encoding, "replace"))
    if line is None:
        raise KeyboardInterrupt
    try:
        typed = ctypes.string_at(line)
    finally:
        python.PyMem_Free(line)
    if not typed:
        raise EOFError
    return typed.decode(sys.stdin.encoding, "strict").removesuffix("\n")


class LineSplitter:
    """Splits pieces of text into lines; a line without an end is passed on once it is long."""

    LONGEST = 64 * 1024

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0

    def add(self, text: str) -> list[str]:
        """Return the lines that a piece completes."""
        *lines, rest = text.split("\n")
        if lines:
            lines[0] = "".join((*self._pieces, lines[0]))
            self._pieces, self._length = [], 0
        self._pieces.append(rest)
        self._length += len(rest)
        return [*lines, *self.rest()] if self._length > self.LONGEST else lines

    def rest(self) -> list[str]:
        """Return the rest that has no end yet."""
        rest = "".join(self._pieces)
        self._pieces, self._length = [], 0
        return [rest] if rest else []


class _Keyboard:
    """A stdin that a node can't read: it would take keys away from the person, and wait for ever."""

    def __init__(self, real: TextIO, from_all: bool) -> None:
        self._real = real
        self._from_all = from_all

    def fileno(self) -> int:
        """Return the real stdin's descriptor; inside a node none, so that `input` calls `readline` here."""
        if self._kept:
            raise io.UnsupportedOperation("the keyboard is not for this")
        return self._real.fileno()

    def readline(self, *size: int) -> str:
        """One line."""
        return self._allowed().readline(*size)

    def read(self, *size: int) -> str:
        """The rest."""
        return self._allowed().read(*size)

    def readlines(self, *hint: int) -> list[str]:
        """All lines that are left."""
        return self._allowed().readlines(*hint)

    def __iter__(self) -> Iterator[str]:
        return iter(self._allowed())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    @property
    def _kept(self) -> bool:
        return self._from_all or _own_activity() is not None

    def check(self) -> None:
        """Refuse to read if the keyboard belongs to the app."""
        self._allowed()

    def _allowed(self) -> TextIO:
        if self._kept:
            raise HitlError(
                "it tries to read the keyboard (input(), pdb); the app owns it",
                "ask a person in the node: config.interrupt({'kind': 'ask', 'title': …}); instead of a "
                "breakpoint() stop before the node: b, or --break NODE",
            )
        return self._real


@contextmanager
def keyboard_kept(*, from_all: bool = False, lend: Lend | None = None) -> Iterator[None]:
    """Keep running nodes from reading stdin.

    Args:
        lend: lends the terminal to the debugger that `breakpoint()` opens in another thread; None refuses it.
        from_all: also code outside nodes, such as a graph that is built while a screen is shown.
    """
    real = sys.stdin
    if real is None:
        yield
        return
    keyboard, hook = _Keyboard(real, from_all), sys.breakpointhook

    def check_first(*args: Any, **options: Any) -> Any:
        from hitl_tui.drivers.debugger import debug, is_wanted

        is_ours = hook is sys.__breakpointhook__ and threading.current_thread() is not threading.main_thread()
        if lend is not None and is_ours and is_wanted():
            terminal = own_out() if own_out().isatty() else own_err()
            return debug(sys._getframe(1), real, terminal, lend)
        # A debugger would read the keyboard only at the next line, or after the last one.
        if hook is sys.__breakpointhook__ and os.environ.get("PYTHONBREAKPOINT") != "0":
            keyboard.check()
        return hook(*args, **options)

    sys.stdin, sys.breakpointhook = keyboard, check_first
    try:
        yield
    finally:
        sys.stdin, sys.breakpointhook = real, hook
