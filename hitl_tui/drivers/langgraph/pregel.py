"""Runs and reads a compiled LangGraph graph, with one interface for sync and async graphs.

A graph runs by its sync methods in its own OS thread, so that blocking nodes block nothing else.  If a node
or the checkpointer is async only, it runs by its async methods, on the engine's loop.
"""

from __future__ import annotations

import asyncio
import copy
import ctypes
import inspect
import threading
import time
from collections import deque
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import partial
from importlib import import_module
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar, cast

from langchain_core.runnables.config import ContextThreadPoolExecutor
from langgraph import types
from langgraph.checkpoint.base import BaseCheckpointSaver

from hitl_tui.drivers.langgraph.continuing import Leg, LiveChannels
from hitl_tui.drivers.langgraph.replaced_functions import EXECUTOR, replace_function
from hitl_tui.drivers.langgraph.retries import RETRY, FailedAttempt, reporting_retries
from hitl_tui.drivers.langgraph.subgraphs import InnerStops, scopes, stop_inside, within

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.types import Send

R = TypeVar("R")
Graph: TypeAlias = Any
"""Their compiled graph (`langgraph.pregel.Pregel`), of whatever version is installed."""
Snapshot: TypeAlias = Any
"""Their `StateSnapshot`."""
Goto: TypeAlias = "str | Send"
"""What a `Command` goes to: a node, or a node with an input of its own."""
Config = dict[str, Any]
Part = tuple[tuple[str, ...], str, Any]
"""The namespace that it comes from, its mode and its data."""

OnPart = Callable[[Part], None]
_CHECKS: Final = 10
"""Turns of a loop within which the interpreter raises what another thread has asked it to."""
_QUICK: Final = 0.01
_PATIENCE: Final = 3.0
"""Seconds."""
_HEAD: Final = (
    "SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? "
    "ORDER BY checkpoint_id DESC LIMIT 1"
)
_PUSHED: Final = "__pregel_push"
_TASKS: Final = "__pregel_tasks"
_RESUME: Final = "__resume__"
_IDS_COUNT_ANSWERS: Final = hasattr(types, "_interrupt_id")
"""Whether the id of an interrupt tells which question of its task it is; not in the oldest LangGraph."""
OUTPUT: Final = "output"
"""The channel of a graph whose state is one value in place of named ones."""
MODES: Final = ("checkpoints", "tasks", "messages", "custom")


class TaskRun(NamedTuple):
    """One task of a superstep: a checkpoint holds those that come next.

    `pushed` says that a `Send` made it; `result` are its writes by channel, None while there are none;
    `state` is the config or the snapshot of the subgraph that it runs; `answers` counts its answers, if its
    interrupts share one id.
    """

    id: str
    name: str
    pushed: bool
    result: Any = None
    error: Any = None
    interrupts: tuple[Any, ...] = ()
    state: Any = None
    answers: int = 0

    @property
    def is_unfinished(self) -> bool:
        """Whether the task has not finished."""
        return self.result is None


class Saved(NamedTuple):
    """One LangGraph checkpoint.

    Args:
        id, parent: checkpoint ids; `parent` is "" for the first one.
        values: the state by channel; for a graph whose state is one value, `OUTPUT` alone.
        source: "input", "loop", "update" or "fork".
        at: microseconds since the epoch.
        step: LangGraph's number for it, -1 for the first input.
    """

    id: str
    parent: str
    values: Mapping[str, Any]
    source: str
    tasks: tuple[TaskRun, ...]
    at: int
    step: int

    @property
    def next(self) -> tuple[str, ...]:
        """The names of the next nodes, each once."""
        return tuple(dict.fromkeys(task.name for task in self.tasks))


def config_of(thread: str, checkpoint: str = "", ns: str = "") -> Config:
    """Return the config of a LangGraph thread, at its newest checkpoint or pinned to one."""
    configurable = {"thread_id": thread, "checkpoint_ns": ns}
    if checkpoint:
        configurable["checkpoint_id"] = checkpoint
    return {"configurable": configurable}


def checkpoint_of(config: Mapping[str, Any] | None) -> str:
    """Return the checkpoint id in a config, "" if it has none."""
    return str((config or {}).get("configurable", {}).get("checkpoint_id") or "")


def saved_of(snapshot: Snapshot, *, single: bool = False) -> Saved | None:
    """Convert a snapshot from `get_state` or the history; None if there is no checkpoint.

    Args:
        single: its state is one value (see `App.single`).
    """
    identity = checkpoint_of(snapshot.config)
    if not identity or snapshot.metadata is None:
        return None
    tasks = tuple(
        TaskRun(
            task.id,
            task.name,
            bool(task.path) and task.path[0] == _PUSHED,
            _by_channel(task.result) if single else task.result,
            task.error,
            tuple(task.interrupts),
            task.state,
        )
        for task in snapshot.tasks
    )
    at = microseconds(snapshot.created_at)
    source = str(snapshot.metadata.get("source", "loop"))
    values = _by_channel(snapshot.values) or {} if single else snapshot.values
    step = int(snapshot.metadata.get("step", 0))
    return Saved(identity, checkpoint_of(snapshot.parent_config), values, source, tasks, at, step)


def given_to(graph: Graph, update: Mapping[str, Any]) -> Any:
    """Return the argument for `update_state`: the values by channel, or the one value that is the state."""
    return update[OUTPUT] if isinstance(graph.stream_channels_asis, str) else dict(update)


def _default_recursion_limit() -> int:
    """Return how many supersteps one run may take if the graph sets no limit."""
    try:
        return int(import_module("langgraph._internal._config").DEFAULT_RECURSION_LIMIT)
    except (ImportError, AttributeError):
        return 25


def going_to(values: Any, goto: Sequence[Goto]) -> Any:
    """Return the argument for `update_state` after a node that chose its route by a `Command`."""
    from langgraph.types import Command

    return Command(update=values, goto=list(goto)) if goto else values


def _by_channel(value: Any) -> dict[str, Any] | None:
    return None if value is None else {OUTPUT: value}


def saved_of_event(data: Mapping[str, Any], at: int, *, single: bool = False) -> Saved:
    """Convert a streamed checkpoint, before any of its tasks has run.

    Args:
        single: as for `saved_of`.
        at: when it was streamed, in microseconds since the epoch.
    """
    tasks = tuple(TaskRun(task["id"], task["name"], False, state=task.get("state")) for task in data["tasks"])
    metadata = data["metadata"] or {}
    source, step = str(metadata.get("source", "loop")), int(metadata.get("step", 0))
    parent = checkpoint_of(data["parent_config"])
    values = _by_channel(data["values"]) or {} if single else data["values"]
    return Saved(checkpoint_of(data["config"]), parent, values, source, tasks, at, step)


def result_of_event(result: Any, *, single: bool = False) -> Any:
    """Return a streamed task's writes by channel, None if it wrote nothing.

    Args:
        single: as for `saved_of`.
    """
    if not single:
        return result
    written = [value for value in (result or {}).values() if value is not None]
    return _by_channel(written[0] if written else None)


def microseconds(stamp: str | None) -> int:
    """Convert an ISO time to microseconds since the epoch; 0 if it is invalid."""
    try:
        return round(datetime.fromisoformat(stamp or "").timestamp() * 1_000_000)
    except ValueError:
        return 0


def is_async_only(app: Graph) -> bool:
    """Whether a node of the graph or of a subgraph is async only."""
    if any(_awaits(node.bound) for node in app.nodes.values()):
        return True
    return any(is_async_only(inner) for _, inner in app.get_subgraphs())


def _awaits(bound: Any) -> bool:
    steps = getattr(bound, "steps", None)
    if isinstance(steps, (list, tuple)):
        return any(_awaits(step) for step in steps)
    return getattr(bound, "afunc", None) is not None and getattr(bound, "func", _AwaitedAlone) is None


class _AwaitedAlone:
    """A placeholder for objects without `func`, such as a subgraph."""


class Dropped(BaseException):
    """Ends a dropped run; LangGraph does not catch it."""


def _run_control() -> Callable[[], Any]:
    """Return the class by which a run is asked to stop, in LangGraph 1.2 and newer."""
    from langgraph.runtime import RunControl

    return RunControl


def is_drained(error: BaseException) -> bool:
    """Whether a run ended because it was asked to stop."""
    return type(error).__name__ == "GraphDrained"


class App:
    """Runs and reads a compiled graph that has a checkpointer.

    Args:
        graph: the compiled graph.
        streams: True lets all its models stream, False reports nothing of what they write; None leaves it to
            the graph. On a LangGraph server they stream unless it is False.

    Attributes:
        graph: the graph, or the subgraph that is viewed.
        root: the outermost graph, which is what runs even if a subgraph is viewed.
        ns: the namespace of the subgraph's checkpoints, "" for the graph itself.
        carried: values that the newest superstep left for the next one.
        newest: the newest checkpoint read after a superstep; no node has had access to its values.
    """

    def __init__(self, graph: Graph, *, streams: bool | None = None) -> None:
        saver = graph.checkpointer
        self.is_async = is_async_only(graph) or is_async_saver(saver)
        if self.is_async and isinstance(saver, BaseCheckpointSaver) and not is_async_saver(saver):
            graph = graph.copy({"checkpointer": AwaitedSaver(saver)})
        self.graph = self.root = graph
        self.ns = ""
        self.runs_through: bool = getattr(graph, "runs_through", False)
        """Whether a run stops nowhere but where the graph asks or ends, whatever it is told."""
        self.is_on_server = hasattr(graph, "make_room")
        self.single = isinstance(graph.stream_channels_asis, str)
        """Whether its state is one value, as of the functional API; it is that of the channel `OUTPUT`."""
        self._worker = _Worker()
        self._tap = _tap_of(graph, streams)
        parameters = inspect.signature(type(graph).stream).parameters
        self._options: dict[str, Any] = {"stream_mode": []}
        if self._tap is None:
            modes = [mode for mode in MODES if mode != "messages" or streams is not False]
            self._options = {"stream_mode": modes, "subgraphs": True}
            if "version" in parameters:
                self._options["version"] = "v2"
        self._new_control = _run_control() if "control" in parameters else None
        stop_inside(graph)
        self.was_quick = False
        """Whether the last run took so little that it may hold its caller up."""
        self._reads_quickly = False
        self._forget_run()

    def _forget_run(self) -> None:
        """Reset the state of the current run, which copies must not share."""
        self._threads = _KeptThreads()
        self._control: Any = None
        self._stops: InnerStops | None = None
        self._lock = threading.Lock()
        self._at_work: int | None = None
        self._thread = ""
        self._dropped = False
        self.carried: LiveChannels | None = None
        self.newest: Saved | None = None

    def copy_for_run(self) -> App:
        """Return a copy that can run at the same time as this one."""
        other = copy.copy(self)
        other._forget_run()
        return other

    def inside(self, node: str, ns: str) -> App:
        """Return an `App` for the subgraph that a node's task runs.

        Args:
            ns: the namespace of the task's checkpoints.
        """
        inner = self.copy_for_run()
        inner.graph = dict(self.graph.get_subgraphs())[node]
        inner.ns = ns
        inner.single = isinstance(inner.graph.stream_channels_asis, str)
        return inner

    def _at(self, config: Config) -> Config:
        """Return a config of the thread, in the viewed namespace."""
        return {"configurable": {**config["configurable"], "checkpoint_ns": self.ns}} if self.ns else config

    @property
    def has_stops(self) -> bool:
        """Whether the graph was compiled to stop before or after nodes."""
        return bool(self.graph.interrupt_before_nodes or self.graph.interrupt_after_nodes)

    async def state(self, config: Config, *, subgraphs: bool = False) -> Saved | None:
        """Return the newest checkpoint, or the one that the config names; None if there is none."""
        snapshot = await self.snapshot(config, subgraphs=subgraphs)
        saved = saved_of(snapshot, single=self.single)
        known = _IDS_COUNT_ANSWERS or not isinstance(self.root.checkpointer, BaseCheckpointSaver)
        if saved is None or known or not any(task.interrupts for task in saved.tasks):
            return saved
        writes = await self._writes(snapshot.config)
        return saved._replace(tasks=tuple(as_written(task, writes) for task in saved.tasks))

    async def head(self, thread: str) -> str:
        """Return the id of a thread's newest checkpoint, "" if it has none."""
        saver = self.root.checkpointer
        if not isinstance(saver, BaseCheckpointSaver):  # it is on a LangGraph server
            saved = await self.state(config_of(thread))
            return saved.id if saved else ""
        kinds = {kind.__name__ for kind in type(saver).__mro__}
        started = time.perf_counter()
        if "InMemorySaver" in kinds:
            spaces = cast("Any", saver).storage.get(thread) or {}
            return str(max(spaces.get(self.ns) or ("",)))
        config = cast("RunnableConfig", config_of(thread, ns=self.ns))
        if self.is_async:
            return _id_of(await on_loop_of(saver, saver.aget_tuple(config)))

        def read() -> str:
            if "SqliteSaver" in kinds:
                return _head_in_sqlite(saver, thread, self.ns)
            return _id_of(saver.get_tuple(config))

        newest = read() if self._reads_quickly else await self.call(read)
        self._reads_quickly = time.perf_counter() - started < _QUICK
        return newest

    async def saved(self, thread: str, checkpoint: str) -> Saved | None:
        """Return a stored checkpoint; its tasks' writes may be missing."""
        config = config_of(thread, checkpoint)
        if self.is_async:
            return saved_of(await self.snapshot(config), single=self.single)

        def read() -> Saved | None:
            return saved_of(self.root.get_state(self._at(config)), single=self.single)

        started = time.perf_counter()
        saved = read() if self._reads_quickly else await self.call(read)
        self._reads_quickly = time.perf_counter() - started < _QUICK
        return saved

    async def _writes(self, config: Config) -> list[tuple[str, str, Any]]:
        """Return what the tasks of a checkpoint have written."""
        saver = self.root.checkpointer
        if self.is_async:
            saved = await on_loop_of(saver, saver.aget_tuple(config))
        else:
            saved = await self.call(lambda: saver.get_tuple(config))
        return list(saved.pending_writes or ()) if saved else []

    async def snapshot(self, config: Config, *, subgraphs: bool = False) -> Snapshot:
        """Return a snapshot, as `get_state` does."""
        config = self._at(config)
        if self.is_async:
            return await self._there(self.root.aget_state(config, subgraphs=subgraphs))
        return await self.call(lambda: self.root.get_state(config, subgraphs=subgraphs))

    async def history(self, thread: str, *, before: str = "", limit: int | None = None) -> list[Saved]:
        """Return the checkpoints of a thread, newest first."""
        config = config_of(thread, ns=self.ns)
        bound: Any = config_of(thread, before, self.ns) if before else None
        if self.is_async:
            history = self.root.aget_state_history(config, before=bound, limit=limit)
            snapshots = await self._there(_listed(history))
        else:
            snapshots = await self.call(
                lambda: list(self.root.get_state_history(config, before=bound, limit=limit))
            )
        return [saved for snapshot in snapshots if (saved := saved_of(snapshot, single=self.single))]

    @property
    def recursion_limit(self) -> int:
        """The number of supersteps that one run may take."""
        limit = (getattr(self.root, "config", None) or {}).get("recursion_limit")
        return limit if isinstance(limit, int) else _default_recursion_limit()

    async def sends(self, config: Config) -> tuple[Send, ...]:
        """Return the `Send`s that made a checkpoint's tasks; () if they can't be read, as on a server."""
        saver, config = self.root.checkpointer, self._at(config)
        if not hasattr(saver, "get_tuple"):
            return ()
        if self.is_async:
            kept = await self._there(saver.aget_tuple(config))
        else:
            kept = await self.call(lambda: saver.get_tuple(config))
        return tuple(kept.checkpoint["channel_values"].get(_TASKS) or ()) if kept else ()

    async def update(
        self,
        config: Config,
        update: Mapping[str, Any],
        as_node: str | None = None,
        goto: Sequence[Goto] = (),
    ) -> str:
        """Do what `update_state` does, by channel; returns the id of the new checkpoint.

        Args:
            goto: next nodes, in addition to those that `as_node` leads to.
        """
        config, values = self._at(config), going_to(given_to(self.graph, update), goto)
        if self.is_async:
            return checkpoint_of(await self._there(self.root.aupdate_state(config, values, as_node)))
        return checkpoint_of(await self.call(lambda: self.root.update_state(config, values, as_node)))

    async def run_async(
        self, given: Any, config: Config, on_part: OnPart, *, leg: Leg, into: bool = False, **options: Any
    ) -> None:
        """Do what `run` does, for an async graph."""

        async def run() -> None:
            with self._stopping(into), leg.running(), reporting_retries(partial(_report_attempt, on_part)):
                own_config, on_own_part, own_options = self._adapted(config, on_part, options)
                parts: Any = self.root.astream(given, own_config, **own_options)
                try:
                    async for part in parts:
                        on_own_part(_part(part))
                finally:
                    await parts.aclose()

        await self._there(run())

    async def _there(self, work: Coroutine[Any, Any, R]) -> R:
        return await on_loop_of(self.root.checkpointer, work)

    def run(
        self, given: Any, config: Config, on_part: OnPart, *, leg: Leg, into: bool = False, **options: Any
    ) -> None:
        """Run the graph in this OS thread until it stops; run at most one superstep of a subgraph.

        Args:
            given: the input, a `Command`, or None to continue.
            on_part: called with parts of the run, in its OS threads; an error that it raises stops the run.
            leg: the part of a longer run.
            into: stop in each subgraph before its first node.
            options: of `Pregel.stream`, as `interrupt_after`.
        """
        started = time.perf_counter()
        self._thread = str(config["configurable"]["thread_id"])
        self._at_work = threading.get_ident()
        try:
            reporting = reporting_retries(partial(_report_attempt, on_part))
            with self._stopping(into), self._threads.lent(), leg.running(), reporting:
                config, on_part, options = self._adapted(config, on_part, options)
                parts: Any = self.root.stream(given, config, **options)
                try:
                    for part in parts:
                        on_part(_part(part))
                finally:
                    parts.close()
        finally:
            try:
                self._finish()
            except Dropped:  # it came before the run started
                self._finish()
            self.was_quick = time.perf_counter() - started < _QUICK

    @contextmanager
    def _stopping(self, into: bool) -> Iterator[None]:
        self._control = self._new_control() if self._new_control else None
        self._stops = InnerStops(self.ns, into)
        try:
            with self._stops:
                yield
        finally:
            self._control = self._stops = None

    def _adapted(
        self, config: Config, on_part: OnPart, options: dict[str, Any]
    ) -> tuple[Config, OnPart, dict[str, Any]]:
        options = {**self._options, **options}
        if self._control is not None:
            options["control"] = self._control
        on_part = within(scopes(self.ns), on_part) if self.ns else on_part
        return (config if self._tap is None else self._tap(config, on_part)), on_part, options

    def drain(self) -> None:
        """Stop the run at the end of the current superstep, also inside a subgraph."""
        if self._stops is not None:
            self._stops.all = True
        if self._control is not None:
            self._control.request_drain("paused")

    def drop(self) -> None:
        """Drop the run: it ends as soon as it runs Python code, before it saves anything more.

        A run on a LangGraph server is cancelled there.
        """
        if self._at_work is not None and self._thread and hasattr(self.root, "cancel"):
            self._worker.submit(partial(self.root.cancel, self._thread))
            return
        with self._lock:
            if self._at_work is not None:
                self._dropped = True
                _raise_in(self._at_work, Dropped)

    def _finish(self) -> None:
        """Note that nothing runs any more; a drop that came too late is raised and handled here.

        It can't be revoked: the interpreter's flag for it would stay set, and Python 3.11 would never get
        past the first line of a profiled function.
        """
        while True:
            try:
                with self._lock:
                    self._at_work, self._dropped = None, False
                for _ in range(_CHECKS):
                    pass
                return
            except Dropped:
                continue

    async def call(self, work: Callable[[], R]) -> R:
        """Call a function in the graph's OS thread."""
        return await asyncio.wrap_future(self._worker.submit(work))

    def close(self) -> None:
        """Let its OS threads end after their current task, and the thread that all its copies share."""
        self._worker.close()
        self.end_threads()

    def end_threads(self) -> None:
        """Let the OS threads of its runs end after their current task."""
        self._threads.close()


def _id_of(saved: Any) -> str:
    return checkpoint_of(saved.config) if saved else ""


def _head_in_sqlite(saver: Any, thread: str, ns: str) -> str:
    """Return the id of a thread's newest checkpoint without reading its values."""
    with saver.cursor(transaction=False) as cursor:
        row = cursor.execute(_HEAD, (thread, ns)).fetchone()
    return str(row[0]) if row else ""


def as_written(task: TaskRun, writes: Iterable[tuple[str, str, Any]]) -> TaskRun:
    """Correct a task by its writes: in LangGraph 1.0 an answered task that asks again counts as finished."""
    own = [(channel, value) for task_id, channel, value in writes if task_id == task.id]
    given = [len(value) if isinstance(value, list) else 1 for channel, value in own if channel == _RESUME]
    finished = any(channel not in (_RESUME, "__interrupt__", "__error__") for channel, _ in own)
    return task._replace(answers=max(given, default=0), result=task.result if finished else None)


def _report_attempt(on_part: OnPart, attempt: FailedAttempt) -> None:
    on_part(((), RETRY, attempt))


def _part(part: Any) -> Part:
    if isinstance(part, dict):
        return tuple(part["ns"]), part["type"], part["data"]
    ns, mode, data = part
    return tuple(ns), mode, data


async def _listed(items: AsyncIterable[R]) -> list[R]:
    return [item async for item in items]


def is_async_saver(saver: Any) -> bool:
    """Whether a checkpointer is async only."""
    kind = type(saver)
    return kind.__name__.startswith("Async") or (
        isinstance(saver, BaseCheckpointSaver) and kind.get_tuple is BaseCheckpointSaver.get_tuple
    )


async def on_loop_of(saver: Any, work: Coroutine[Any, Any, R]) -> R:
    """Await something on the event loop to which the checkpointer's locks and connections belong."""
    loop = getattr(saver, "loop", None)
    if loop is None or loop is asyncio.get_running_loop() or not loop.is_running():
        return await work
    ended = threading.Event()

    async def there() -> R:
        try:
            return await work
        finally:
            ended.set()

    try:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(there(), loop))
    except asyncio.CancelledError:
        await asyncio.to_thread(ended.wait, _PATIENCE)  # a dropped run may still write
        raise


class AwaitedSaver(BaseCheckpointSaver[Any]):
    """Wraps a sync-only checkpointer for a graph that must run async.

    Args:
        saver: the checkpointer; its calls run in other OS threads.
    """

    def __init__(self, saver: Any) -> None:
        super().__init__(serde=saver.serde)
        self._saver = saver

    @property
    def config_specs(self) -> list[Any]:
        """As the checkpointer's."""
        return list(self._saver.config_specs)

    def get_next_version(self, current: Any, channel: Any) -> Any:
        """As the checkpointer's."""
        return self._saver.get_next_version(current, channel)

    def get_tuple(self, config: Any) -> Any:
        """As the checkpointer's."""
        return self._saver.get_tuple(config)

    def list(self, config: Any, **options: Any) -> Iterator[Any]:
        """As the checkpointer's."""
        return iter(self._saver.list(config, **options))

    def put(self, *given: Any) -> Any:
        """As the checkpointer's."""
        return self._saver.put(*given)

    def put_writes(self, *given: Any, **options: Any) -> None:
        """As the checkpointer's."""
        self._saver.put_writes(*given, **options)

    async def aget_tuple(self, config: Any) -> Any:
        """As `get_tuple`."""
        return await asyncio.to_thread(self._saver.get_tuple, config)

    async def alist(self, config: Any, **options: Any) -> AsyncIterator[Any]:
        """As `list`."""
        for found in await asyncio.to_thread(lambda: [*self._saver.list(config, **options)]):
            yield found

    async def aput(self, *given: Any) -> Any:
        """As `put`."""
        return await asyncio.to_thread(self._saver.put, *given)

    async def aput_writes(self, *given: Any, **options: Any) -> None:
        """As `put_writes`."""
        await asyncio.to_thread(lambda: self._saver.put_writes(*given, **options))


def _raise_in(ident: int, error: type[BaseException]) -> None:
    """Raise an error in an OS thread as soon as it runs Python code again."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(error))


def _tap_of(graph: Graph, streams: bool | None) -> Callable[[Config, OnPart], Config] | None:
    """Return a function that makes a run report its parts at once, as to a parent graph; or None.

    The modes of `stream` would do the same.  But for messages and custom text they run each superstep in
    another OS thread, which makes a quick one take half as long again.

    Args:
        streams: as for `App`.
    """
    try:
        from langgraph._internal._constants import CONFIG_KEY_RUNTIME, CONFIG_KEY_STREAM
        from langgraph.config import get_config
        from langgraph.pregel import Pregel
        from langgraph.pregel.protocol import StreamProtocol
        from langgraph.runtime import Runtime

        from hitl_tui.drivers.langgraph.model_streams import message_handlers
    except ImportError:
        return None
    if not isinstance(graph, Pregel):  # it runs on a LangGraph server
        return None

    def tap(config: Config, on_part: OnPart) -> Config:
        def write(data: Any) -> None:
            scope = str(get_config()["configurable"].get("checkpoint_ns", ""))
            on_part((tuple(scope.split("|")), "custom", data))

        protocol = StreamProtocol(on_part, set(MODES))
        runtime = Runtime(stream_writer=write, store=graph.store)
        keys = {CONFIG_KEY_STREAM: protocol, CONFIG_KEY_RUNTIME: runtime}
        handlers = message_handlers(on_part, streams=streams)
        return {"configurable": {**config["configurable"], **keys}, "callbacks": handlers}

    return tap


_LENT: ContextVar[Executor | None] = ContextVar("threads that are lent to a run", default=None)


class _KeptThreads:
    """OS threads that the runs of a graph use one after the other; they start when one is first needed.

    LangGraph starts two for each run, which takes a fifth of a quick superstep.
    """

    def __init__(self) -> None:
        self._idle: deque[Executor] = deque()
        """Those that no run has now; a run that was given up may still have its own when the next begins."""

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Lend the threads to the run that starts in this context, and to no other."""
        _take_lent_threads()
        try:
            executor = self._idle.pop()
        except IndexError:
            executor = ContextThreadPoolExecutor()
        token = _LENT.set(executor)
        try:
            yield
        except BaseException:
            executor.shutdown(wait=False)  # a dropped run may occupy some of them for good
            raise
        else:
            self._idle.append(executor)
        finally:
            _LENT.reset(token)

    def close(self) -> None:
        """Let the threads end after their current task."""
        while self._idle:
            self._idle.pop().shutdown(wait=False)


def _take_lent_threads() -> None:
    """Replace the function by which a LangGraph run starts OS threads, so that it takes those lent to it.

    Other runs, and subgraphs, still start their own.
    """
    replace_function(EXECUTOR, _lent_or)


def _lent_or(begin: Any) -> Any:
    @contextmanager
    def executor_of(config: Any) -> Iterator[Executor]:
        lent = _LENT.get()
        if lent is None or (config or {}).get("max_concurrency"):
            with begin(config) as executor:
                yield executor
            return
        _LENT.set(None)  # a subgraph would wait for threads that wait for it
        yield lent

    return executor_of


class _Worker:
    """An OS thread that runs tasks one by one; it starts with the first and keeps no process alive."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, work: Callable[[], R]) -> Future[R]:
        future: Future[R] = Future()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="hitl-tui langgraph", daemon=True)
            self._thread.start()
        self._queue.put((work, future))
        return future

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            work, future = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = work()
            except BaseException as error:  # any error goes to the caller, who waits for it
                future.set_exception(error)
            else:
                future.set_result(result)

    def close(self) -> None:
        if self._thread is not None:
            self._queue.put(None)
