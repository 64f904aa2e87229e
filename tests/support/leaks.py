"""Finds what a test leaves behind in its process: each test must leave it as it was.

`Snapshot` is cheap enough to be taken before every test. `Snapshot.leaks()` compares it with the process as
it is now, and looks closer only at what differs. `Attributes` costs more, and is taken once a test module.
pytest itself restores the filters of warnings after every test.
"""

from __future__ import annotations

import _signal
import asyncio
import contextvars
import gc
import locale
import logging
import os
import signal
import site
import socket
import sqlite3
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.support.places import ROOT

PATIENCE = 5.0
"""Seconds that a thread which is about to end has for it; no test that leaves none waits."""

PROCESS_WIDE_THREADS = (
    "hitl-tui-agents",  # the loop that all agents of a process share (hitl_tui/agents/agent.py)
    "litellm-import",  # litellm is imported once, in the background
    "execnet",  # pytest-xdist
)
"""Beginnings of the names of threads that a process has once, and keeps."""

PROCESS_WIDE_CHILDREN = ("multiprocessing.resource_tracker", "postgres")
"""Parts of the command lines of child processes that a test session keeps."""

PROCESS_WIDE_VARIABLES = (
    b"PYTEST_CURRENT_TEST",
    b"LITELLM_LOCAL_MODEL_COST_MAP",
    b"LITELLM_MODE",
    b"TIKTOKEN_CACHE_DIR",
)
"""Variables that pytest sets, and those that are set where litellm is imported."""

PROCESS_WIDE_CONTEXT = ("session_id", "trace_id")
"""Context variables that litellm's log sets to their defaults in whatever thread it first writes."""

_SIGNALS = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})

_LIBRARIES = tuple(
    {
        str(Path(path).resolve())
        for path in (
            *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
            *site.getsitepackages(),
            ROOT / "hitl_tui",
            ROOT / "tests",
            ROOT / ".ci",
        )
        if path
    }
)
_TOP_LEVEL = frozenset({"hitl_tui", "tests", *sys.stdlib_module_names})


class Snapshot:
    """The state of this process at one moment."""

    def __init__(self) -> None:
        self.values = _values()
        self.environment = _environment()
        self.modules = _modules()
        self.threads = set(threading.enumerate())
        self.loggers = _loggers()
        self.children = _children()
        self.sizes = _sizes()
        self.descriptors = _descriptors()

    def leaks(self) -> list[str]:
        """Return a sentence for each thing that differs now."""
        return [
            *_changes("", self.values, _values()),
            *_changes("the environment variable ", self.environment, _environment()),
            *self._threads(),
            *self._modules(),
            *_changes("the logger ", self.loggers, _loggers(), new=False),
            *self._children(),
            *self._sizes(),
            *self._descriptors(),
        ]

    def new_modules(self) -> set[str]:
        """Return the names of the modules that have been loaded since."""
        return _modules().keys() - self.modules.keys() if _modules() is not self.modules else set()

    def _threads(self) -> Iterator[str]:
        end = time.monotonic() + PATIENCE
        known = self.threads.union(*(_threads_of(executor) for executor in _process_wide_executors()))
        for thread in threading.enumerate():
            if thread in known or thread.name.startswith(PROCESS_WIDE_THREADS):
                continue
            if isinstance(thread, threading._DummyThread):
                continue  # a thread of a library in C, which Python cannot wait for
            thread.join(max(0, end - time.monotonic()))
            if thread.is_alive():
                yield f"the thread {thread.name!r} is still running{_place(thread)}"

    def _modules(self) -> Iterator[str]:
        now = _modules()
        if now is self.modules:
            return
        for name, module in now.items():
            if name not in self.modules and (where := _user_file(name, module)):
                yield f"sys.modules has {name!r}, {where}"
        for name, module in self.modules.items():
            # A graph of a fixture of wider scope may go: after each test all graphs are forgotten.
            if name not in now and not is_user_code(name, module):
                yield f"sys.modules has lost {name!r}"
            elif now.get(name, module) is not module:
                yield f"sys.modules has another {name!r} than before"

    def _children(self) -> Iterator[str]:
        for child in _children() - self.children:
            command = _read(f"/proc/{child}/cmdline").replace("\0", " ").strip()
            if not any(part in command for part in PROCESS_WIDE_CHILDREN):
                yield f"the child process {child} ({command or 'ended, but not waited for'}) is still there"

    def _sizes(self) -> Iterator[str]:
        now = _sizes()
        for name, before in self.sizes.items():
            if now.get(name, before) > before:
                yield f"{name} has {now[name]} entries, and had {before}"

    def _descriptors(self) -> Iterator[str]:
        if len(_descriptors()) <= len(self.descriptors):
            return
        for number in _descriptors() - self.descriptors - _process_wide_descriptors():
            try:
                target = os.readlink(f"/proc/self/fd/{number}")
            except OSError:
                continue  # closed by another thread meanwhile
            yield f"the file descriptor {number} is open: {target}"


class Attributes:
    """The modules, and the values of the names in those of hitl_tui, at one moment."""

    def __init__(self) -> None:
        self._modules = dict(sys.modules)
        self._attributes = {name: dict(vars(module)) for name, module in _ours()}

    def leaks(self) -> list[str]:
        """Return a sentence for each name that stands for something else now."""
        found = [
            f"sys.modules has another {name!r} than before"
            for name, module in self._modules.items()
            if sys.modules.get(name, module) is not module
        ]
        for module, before in self._attributes.items():
            now = vars(sys.modules[module]) if module in sys.modules else before
            for name, value in before.items() if now != before else ():
                if f"{module}.{name}" not in _PROCESS_WIDE and now.get(name) is not value:
                    found.append(f"{module}.{name} is {now.get(name)!r:.100}, and was {value!r:.100}")
        return found


def _values() -> dict[str, Any]:
    """What a process has one of."""
    return {
        "the working directory": _working_directory(),
        "sys.path": list(sys.path),
        "sys.path_hooks": list(sys.path_hooks),
        "sys.argv": list(sys.argv),
        "sys.excepthook": sys.excepthook,
        "sys.displayhook": sys.displayhook,
        "sys.breakpointhook": sys.breakpointhook,
        "sys.getrecursionlimit()": sys.getrecursionlimit(),
        "sys.getswitchinterval()": sys.getswitchinterval(),
        "sys.dont_write_bytecode": sys.dont_write_bytecode,
        "sys.getprofile()": sys.getprofile(),
        "gc.isenabled()": gc.isenabled(),
        "gc.get_threshold()": gc.get_threshold(),
        "the handlers of signals": [_signal.getsignal(number) for number in _SIGNALS],
        "the blocked signals": _signal.pthread_sigmask(_signal.SIG_BLOCK, ()),
        "the umask": _umask(),
        "the locale": locale.setlocale(locale.LC_ALL),
        "the time zone": time.tzname,
        "socket.getdefaulttimeout()": socket.getdefaulttimeout(),
        "the policy of event loops": asyncio.events._event_loop_policy,  # type: ignore[attr-defined]
        "the running event loop": asyncio._get_running_loop(),
        "the current event loop": _current_loop(),
        "the context": {
            variable: value
            for variable, value in contextvars.copy_context().items()
            if variable.name not in PROCESS_WIDE_CONTEXT
        },
        "logging.root.manager.disable": logging.root.manager.disable,
        "logging.getLoggerClass()": logging.getLoggerClass(),
    }


def _changes(
    kind: str, before: Mapping[str, Any], now: Mapping[str, Any], *, new: bool = True
) -> Iterator[str]:
    if before == now:
        return
    for name in before.keys() | now.keys() if new else before.keys():
        if before.get(name) != now.get(name):
            yield f"{kind}{name} is {now.get(name)!r:.300}, and was {before.get(name)!r:.300}"


def _environment() -> dict[bytes, bytes]:
    found = os.environ._data.copy()  # type: ignore[attr-defined]
    for name in PROCESS_WIDE_VARIABLES:
        found.pop(name, None)
    return found


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        return f"gone: {error}"


def _umask() -> int:
    before = os.umask(0o077)
    os.umask(before)
    return before


def _current_loop() -> asyncio.AbstractEventLoop | None:
    policy = asyncio.events._event_loop_policy  # type: ignore[attr-defined]
    loop: asyncio.AbstractEventLoop | None = getattr(getattr(policy, "_local", None), "_loop", None)
    return None if loop is None or loop.is_closed() or loop in _process_wide_loops() else loop


def _process_wide_loops() -> list[asyncio.AbstractEventLoop]:
    """The two event loops that a process keeps: the agents', and that of this thread's sync runs."""
    agent = sys.modules.get("hitl_tui.agents.agent")
    sync = sys.modules.get("hitl_tui.engine.run.sync")
    kept = getattr(getattr(sync, "_of_thread", None), "loop", None)
    loops = (getattr(agent, "_loop", None), getattr(getattr(kept, "_runner", None), "_loop", None))
    return [loop for loop in loops if loop is not None and not loop.is_closed()]


def _loggers() -> dict[str, Any]:
    """Level, handlers and switches of the root logger and of ours; libraries set theirs up when imported."""
    found: dict[str, Any] = {
        name: (logger.level, logger.handlers[:], logger.propagate, logger.disabled, logger.filters[:])
        for name, logger in list(logging.root.manager.loggerDict.items())
        if name.startswith("hitl_tui") and isinstance(logger, logging.Logger)
    }
    handlers = [one for one in logging.root.handlers if not type(one).__module__.startswith("_pytest")]
    return {**found, "root": (logging.root.level, handlers, logging.root.filters[:])}


def _descriptors() -> set[int]:
    """The open ones, without that by which they are listed: the next one to be opened gets its number."""
    found = {int(name) for name in os.listdir("/proc/self/fd")}
    listed_by = os.open("/", os.O_RDONLY)
    os.close(listed_by)
    return found - {listed_by}


def _process_wide_executors() -> list[object]:
    """Those of the loops that a process keeps, and Apprise's, which all its services share."""
    apprise = sys.modules.get("apprise.apprise")
    loops = (getattr(loop, "_default_executor", None) for loop in _process_wide_loops())
    return [
        *loops,
        getattr(apprise, "_shared_executor", None),
        getattr(apprise, "_coordinator_executor", None),
    ]


def _threads_of(executor: object) -> set[threading.Thread]:
    return set(getattr(executor, "_threads", ()))


def _process_wide_descriptors() -> set[int]:
    found: set[int] = set()
    for loop in _process_wide_loops():
        found |= {loop._selector.fileno(), loop._ssock.fileno(), loop._csock.fileno()}  # type: ignore[attr-defined]
    return found


_modules_known: dict[str, ModuleType] = {}


def _modules() -> dict[str, ModuleType]:
    """The loaded modules; the same object as before where none has come or gone.

    A copy for every test would cost more than most tests: it touches thousands of objects. Only `Attributes`
    notices that a module was replaced in its place.
    """
    global _modules_known  # noqa: PLW0603
    known, now = _modules_known, sys.modules
    if len(known) != len(now) or next(reversed(known)) != next(reversed(now)):
        _modules_known = dict(now)
    return _modules_known


def _children() -> set[int]:
    """Processes that this one has started and not waited for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return set()
    found: set[int] = set()
    for thread in os.listdir("/proc/self/task"):
        found.update(map(int, _read(f"/proc/self/task/{thread}/children").split()))
    return found


def _place(thread: threading.Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and "/threading.py" in frame.f_code.co_filename:
        frame = frame.f_back
    return f", in {frame.f_code.co_qualname} ({frame.f_code.co_filename}:{frame.f_lineno})" if frame else ""


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def is_user_code(name: str, module: ModuleType) -> bool:
    """Whether a module belongs to a graph that a test has loaded."""
    return bool(_user_file(name, module))


def close_connections(module: ModuleType) -> None:
    """Close the databases that a file with graphs of LangGraph has opened as it was loaded."""
    for value in list(vars(module).values()):
        connection = getattr(getattr(value, "checkpointer", None), "conn", None)
        if isinstance(connection, sqlite3.Connection):
            connection.close()


def _user_file(name: str, module: ModuleType) -> str:
    """Where a module comes from that belongs to no library, "" for all others."""
    if not isinstance(module, ModuleType):
        return ""
    places = [str(getattr(module, "__file__", None) or ""), *map(str, getattr(module, "__path__", ()))]
    places = [place for place in places if place]
    if any(os.path.realpath(place).startswith(_LIBRARIES) for place in places):
        return ""
    if not places:
        spec = getattr(module, "__spec__", None)
        origin = getattr(spec, "origin", None)
        if origin in ("built-in", "frozen") or name.partition(".")[0] in _TOP_LEVEL or spec is None:
            return ""
    return places[0] if places else "without a file"


# What the modules of hitl_tui hold.

_PROCESS_WIDE = frozenset(
    {
        "hitl_tui.agents.agent._loop",
        "hitl_tui.agents.litellm_backend._importing",
        "hitl_tui.agents.litellm_backend._callers",
    }
)
"""Attributes that a process sets once."""

_PROCESS_WIDE_COLLECTIONS = frozenset(
    {"hitl_tui.engine.nodes.activity.before_end", "hitl_tui.loading.modules._switches"}
)
"""Collections that a process fills once, with functions of its own."""

_collections: dict[str, list[tuple[str, Any]]] = {}
"""Those of each module, as they were when it was first seen."""
_modules_seen = 0


def _ours() -> Iterator[tuple[str, ModuleType]]:
    for name in [name for name in sys.modules if name.startswith("hitl_tui")]:
        module = sys.modules.get(name)
        if isinstance(module, ModuleType):
            yield name, module


def _sizes() -> dict[str, int]:
    """The number of entries of each module-level collection of hitl_tui that is not a constant."""
    global _modules_seen  # noqa: PLW0603
    if _modules_seen != len(sys.modules):
        _modules_seen = len(sys.modules)
        for name, module in _ours():
            if name not in _collections:
                _collections[name] = [
                    (f"{name}.{attribute}", value)
                    for attribute, value in list(vars(module).items())
                    if isinstance(value, (dict, list, set)) and attribute.islower() and attribute[:2] != "__"
                ]
    return {
        place: len(value)
        for found in _collections.values()
        for place, value in found
        if place not in _PROCESS_WIDE_COLLECTIONS
    }
