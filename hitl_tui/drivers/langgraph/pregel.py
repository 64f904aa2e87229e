"""A compiled LangGraph graph as the driver runs and reads it: in one way, whether it is sync or async.

A graph runs by its sync methods in a thread of its own, so that nodes that block hold nobody up; one that
has nodes or a checkpointer that are async alone runs by its async ones, on the engine's loop.
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
    """What a superstep runs, or ran: of a checkpoint the tasks that come next.

    `pushed` says that a `Send` made it; `result` are its writes by channel, None while there are none;
    `state` is the config or the snapshot of the subgraph that it runs; `answers` how many it was given, where
    the ids of its interrupts don't tell them apart.
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
        """Whether it has yet to run to its end."""
        return self.result is None


class Saved(NamedTuple):
    """One checkpoint of theirs.

    Args:
        id, parent: checkpoint ids; `parent` is "" for the first.
        values: the state by channels; of a graph whose state is one value, that of `OUTPUT`.
        source: "input", "loop", "update" or "fork".
        at: microseconds since the epoch.
        step: its number as LangGraph counts, -1 for the first input.
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
        """The names of the nodes that run next, each once."""
        return tuple(dict.fromkeys(task.name for task in self.tasks))


def config_of(thread: str, checkpoint: str = "", ns: str = "") -> Config:
    """The config of a thread of theirs, at its newest checkpoint or pinned to one."""
    configurable = {"thread_id": thread, "checkpoint_ns": ns}
    if checkpoint:
        configurable["checkpoint_id"] = checkpoint
    return {"configurable": configurable}


def checkpoint_of(config: Mapping[str, Any] | None) -> str:
    """The checkpoint id in a config, "" where it has none."""
    return str((config or {}).get("configurable", {}).get("checkpoint_id") or "")


def saved_of(snapshot: Snapshot, *, single: bool = False) -> Saved | None:
    """A checkpoint as `get_state` and the history give it; None where there is none.

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
    """What `update_state` is given for values by channel: of a graph whose state is one value, that."""
    return update[OUTPUT] if isinstance(graph.stream_channels_asis, str) else dict(update)


def _default_recursion_limit() -> int:
    """Supersteps of one run of a graph that says nothing else."""
    try:
        return int(import_module("langgraph._internal._config").DEFAULT_RECURSION_LIMIT)
    except (ImportError, AttributeError):
        return 25


def going_to(values: Any, goto: Sequence[Goto]) -> Any:
    """What `update_state` gets for values after a node that chose its route by a `Command`."""
    from langgraph.types import Command

    return Command(update=values, goto=list(goto)) if goto else values


def _by_channel(value: Any) -> dict[str, Any] | None:
    return None if value is None else {OUTPUT: value}


def saved_of_event(data: Mapping[str, Any], at: int, *, single: bool = False) -> Saved:
    """A checkpoint as the stream tells it, before any of its tasks has run.

    Args:
        single: as for `saved_of`.
        at: when it was told, in microseconds since the epoch.
    """
    tasks = tuple(TaskRun(task["id"], task["name"], False, state=task.get("state")) for task in data["tasks"])
    metadata = data["metadata"] or {}
    source, step = str(metadata.get("source", "loop")), int(metadata.get("step", 0))
    parent = checkpoint_of(data["parent_config"])
    values = _by_channel(data["values"]) or {} if single else data["values"]
    return Saved(checkpoint_of(data["config"]), parent, values, source, tasks, at, step)


def result_of_event(result: Any, *, single: bool = False) -> Any:
    """What a task has written, by channels, as the stream tells it; None where it wrote nothing.

    Args:
        single: as for `saved_of`.
    """
    if not single:
        return result
    written = [value for value in (result or {}).values() if value is not None]
    return _by_channel(written[0] if written else None)


def microseconds(stamp: str | None) -> int:
    """An ISO time as microseconds since the epoch; 0 where it is none."""
    try:
        return round(datetime.fromisoformat(stamp or "").timestamp() * 1_000_000)
    except ValueError:
        return 0


def is_async_only(app: Graph) -> bool:
    """Whether some node, or a node of a graph inside, can only be awaited."""
    if any(_awaits(node.bound) for node in app.nodes.values()):
        return True
    return any(is_async_only(inner) for _, inner in app.get_subgraphs())


def _awaits(bound: Any) -> bool:
    steps = getattr(bound, "steps", None)
    if isinstance(steps, (list, tuple)):
        return any(_awaits(step) for step in steps)
    return getattr(bound, "afunc", None) is not None and getattr(bound, "func", _AwaitedAlone) is None


class _AwaitedAlone:
    """Stands where something has no `func` of its own, as a graph inside."""


class Dropped(BaseException):
    """What runs is given up; nothing of theirs catches it."""


def _run_control() -> Callable[[], Any]:
    """What makes that by which a run is told to stop, of LangGraph 1.2 and newer."""
    from langgraph.runtime import RunControl

    return RunControl


def is_drained(error: BaseException) -> bool:
    """Whether a run ended since it was asked to stop."""
    return type(error).__name__ == "GraphDrained"


class App:
    """A compiled graph with its checkpointer attached, run and read in the one way that fits both.

    Args:
        graph: the compiled graph.
        streams: True lets all its models stream, False tells nothing of what they write; None leaves it to
            the graph. On a server they stream unless it is False.

    Attributes:
        graph: it, or the subgraph of it that is looked into.
        root: the graph itself: what runs, also where a subgraph is looked into.
        ns: the namespace of the subgraph's checkpoints, "" for the graph itself.
        carried: what the newest superstep has left for the next one.
        newest: the newest checkpoint that was read after a superstep; no node has seen its values.
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
        self.single = isinstance(graph.stream_channels_asis, str)
        """Whether its state is one value, as of the functional API; it is that of the channel `OUTPUT`."""
        self._worker = _Worker()
        self._tap = _tap_of(graph, streams)
        self.is_local = self._tap is not None
        """Whether its nodes run here, so that they hold the very objects that a run tells."""
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
        """Begin with no run: nothing of it is shared with another one of the graph."""
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
        """The same graph, to be run beside this one."""
        other = copy.copy(self)
        other._forget_run()
        return other

    def inside(self, node: str, ns: str) -> App:
        """The subgraph of a node, as one of its tasks runs it.

        Args:
            ns: the namespace of the task's checkpoints.
        """
        inner = self.copy_for_run()
        inner.graph = dict(self.graph.get_subgraphs())[node]
        inner.ns = ns
        inner.single = isinstance(inner.graph.stream_channels_asis, str)
        return inner

    def _at(self, config: Config) -> Config:
        """A config of the thread, in the namespace that is looked into."""
        return {"configurable": {**config["configurable"], "checkpoint_ns": self.ns}} if self.ns else config

    @property
    def has_stops(self) -> bool:
        """Whether the graph was compiled to stop before or after nodes."""
        return bool(self.graph.interrupt_before_nodes or self.graph.interrupt_after_nodes)

    async def state(self, config: Config, *, subgraphs: bool = False) -> Saved | None:
        """The newest checkpoint, or the one that the config names; None where there is none."""
        snapshot = await self.snapshot(config, subgraphs=subgraphs)
        saved = saved_of(snapshot, single=self.single)
        told = _IDS_COUNT_ANSWERS or not isinstance(self.root.checkpointer, BaseCheckpointSaver)
        if saved is None or told or not any(task.interrupts for task in saved.tasks):
            return saved
        writes = await self._writes(snapshot.config)
        return saved._replace(tasks=tuple(as_written(task, writes) for task in saved.tasks))

    async def head(self, thread: str) -> str:
        """The id of a thread's newest checkpoint, "" where it has none."""
        saver = self.root.checkpointer
        if not isinstance(saver, BaseCheckpointSaver):  # it is on a server
            saved = await self.state(config_of(thread))
            return saved.id if saved else ""
        kinds = {kind.__name__ for kind in type(saver).__mro__}
        begun = time.perf_counter()
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
        self._reads_quickly = time.perf_counter() - begun < _QUICK
        return newest

    async def saved(self, thread: str, checkpoint: str) -> Saved | None:
        """A checkpoint as the checkpointer keeps it; what its tasks have written may be missing."""
        config = config_of(thread, checkpoint)
        if self.is_async:
            return saved_of(await self.snapshot(config), single=self.single)

        def read() -> Saved | None:
            return saved_of(self.root.get_state(self._at(config)), single=self.single)

        begun = time.perf_counter()
        saved = read() if self._reads_quickly else await self.call(read)
        self._reads_quickly = time.perf_counter() - begun < _QUICK
        return saved

    async def _writes(self, config: Config) -> list[tuple[str, str, Any]]:
        """What tasks of a checkpoint have written since."""
        saver = self.root.checkpointer
        if self.is_async:
            saved = await on_loop_of(saver, saver.aget_tuple(config))
        else:
            saved = await self.call(lambda: saver.get_tuple(config))
        return list(saved.pending_writes or ()) if saved else []

    async def snapshot(self, config: Config, *, subgraphs: bool = False) -> Snapshot:
        """As `get_state`."""
        config = self._at(config)
        if self.is_async:
            return await self._there(self.root.aget_state(config, subgraphs=subgraphs))
        return await self.call(lambda: self.root.get_state(config, subgraphs=subgraphs))

    async def history(self, thread: str, *, before: str = "", limit: int | None = None) -> list[Saved]:
        """Checkpoints of a thread, newest first."""
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
        """How many supersteps one run of the graph may take."""
        limit = (getattr(self.root, "config", None) or {}).get("recursion_limit")
        return limit if isinstance(limit, int) else _default_recursion_limit()

    async def sends(self, config: Config) -> tuple[Send, ...]:
        """The `Send`s that made tasks of a checkpoint; () where these can't be read, as on a server."""
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
        """As `update_state`, by channel; gives the id of the new checkpoint.

        Args:
            goto: what comes next besides the nodes that `as_node` leads to.
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
        """Run the graph until it stops, in this thread; of a subgraph at most one superstep.

        Args:
            given: the input, a `Command`, or None to go on.
            on_part: gets the parts of the run, in its threads; an error that it raises stops the run.
            leg: which part of a longer run it is.
            into: stop in each subgraph before its first node.
            options: of `Pregel.stream`, as `interrupt_after`.
        """
        begun = time.perf_counter()
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
            except Dropped:  # it came before that could begin
                self._finish()
            self.was_quick = time.perf_counter() - begun < _QUICK

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
        """Let what runs stop at the end of the superstep that a graph inside is at, too."""
        if self._stops is not None:
            self._stops.all = True
        if self._control is not None:
            self._control.request_drain("paused")

    def drop(self) -> None:
        """Give up what runs: it ends once it is back in Python, before it saves anything more.

        What runs on a server is cancelled there.
        """
        if self._at_work is not None and self._thread and hasattr(self.root, "cancel"):
            self._worker.submit(partial(self.root.cancel, self._thread))
            return
        with self._lock:
            if self._at_work is not None:
                self._dropped = True
                _raise_in(self._at_work, Dropped)

    def _finish(self) -> None:
        """Say that nothing runs any more; an end that was asked for too late is raised here, and is over.

        It can't be taken back: the flag that the interpreter sets for it would stay, and Python 3.11 then
        never gets beyond the first line of a function that is profiled.
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
        """Do something in the thread of the graph."""
        return await asyncio.wrap_future(self._worker.submit(work))

    def close(self) -> None:
        """Let its threads end once they have done what they do, and that which all apart from it share."""
        self._worker.close()
        self.end_threads()

    def end_threads(self) -> None:
        """Let the threads of its runs end once they have done what they do."""
        self._threads.close()


def _id_of(saved: Any) -> str:
    return checkpoint_of(saved.config) if saved else ""


def _head_in_sqlite(saver: Any, thread: str, ns: str) -> str:
    """The id of a thread's newest checkpoint, without its values."""
    with saver.cursor(transaction=False) as cursor:
        row = cursor.execute(_HEAD, (thread, ns)).fetchone()
    return str(row[0]) if row else ""


def as_written(task: TaskRun, writes: Iterable[tuple[str, str, Any]]) -> TaskRun:
    """A task by its writes: LangGraph 1.0 takes one that was answered for finished, though it asks again."""
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
    """Whether a checkpointer can only be awaited."""
    kind = type(saver)
    return kind.__name__.startswith("Async") or (
        isinstance(saver, BaseCheckpointSaver) and kind.get_tuple is BaseCheckpointSaver.get_tuple
    )


async def on_loop_of(saver: Any, work: Coroutine[Any, Any, R]) -> R:
    """Await something on the event loop that a checkpointer belongs to: its locks and connections do."""
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
        await asyncio.to_thread(ended.wait, _PATIENCE)  # what was given up may still write
        raise


class AwaitedSaver(BaseCheckpointSaver[Any]):
    """A checkpointer that can't be awaited, for a graph that can't be run otherwise.

    Args:
        saver: it; what it does is done in other threads.
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
    """Raise an error in a thread once it runs Python code again."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(error))


def _tap_of(graph: Graph, streams: bool | None) -> Callable[[Config, OnPart], Config] | None:
    """Return a function that makes a run report its parts at once, as to a graph around it; or None.

    Modes of `stream` would do the same, but for messages and custom text they hand each superstep to another
    thread, which takes a quick one half as long again.

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
    if not isinstance(graph, Pregel):  # it runs on a server
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
    """Threads for one run of a graph after the other; they begin with the first one that needs any.

    LangGraph begins two of its own for each run, which take a fifth of a quick superstep.
    """

    def __init__(self) -> None:
        self._idle: deque[Executor] = deque()
        """Those that no run has now; a run that was given up may still have its own when the next begins."""

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let the run that begins in this context take them, and no other one meanwhile."""
        _take_lent_threads()
        try:
            executor = self._idle.pop()
        except IndexError:
            executor = ContextThreadPoolExecutor()
        token = _LENT.set(executor)
        try:
            yield
        except BaseException:
            executor.shutdown(wait=False)  # what was given up may hold some of them for good
            raise
        else:
            self._idle.append(executor)
        finally:
            _LENT.reset(token)

    def close(self) -> None:
        """Let them end once they have done what they do."""
        while self._idle:
            self._idle.pop().shutdown(wait=False)


def _take_lent_threads() -> None:
    """Replace the function by which a LangGraph run starts threads: it takes those that are lent to it.

    Elsewhere, and in a graph inside the run, LangGraph starts its own.
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
        _LENT.set(None)  # a graph inside would wait for threads that wait for it
        yield lent

    return executor_of


class _Worker:
    """A thread that does one thing after the other; it begins with the first and keeps no process alive."""

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
            except BaseException as error:  # whatever it is, it is for whoever waits
                future.set_exception(error)
            else:
                future.set_result(result)

    def close(self) -> None:
        if self._thread is not None:
            self._queue.put(None)
