"""Calls user code inline, or in threads that never block the caller's event loop.

A thread can't be killed. So a sync node that was stopped continues in a daemon thread whose result is
ignored; daemon threads never keep the process alive.
"""

from __future__ import annotations

import asyncio
import inspect
import queue
import sys
import threading
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextvars import Context, copy_context
from time import perf_counter
from traceback import walk_stack
from types import FrameType
from typing import Any, Final, Protocol
from weakref import WeakSet

from hitl_tui.engine.graph.functions import code_behind
from hitl_tui.errors import HitlError

_QUICK: Final = 0.001
"""Seconds; a function that took less is called quick."""


class Job:
    """A call of a function with the context variables of its caller.

    The code that runs the event loop may let it be awaited. Then it runs while the loop is blocked, which
    costs less than handing it to another thread and back.

    Args:
        quick: gets the id of the function after a quick call.
    """

    __slots__ = ("_args", "_context", "_error", "_function", "_quick", "_result", "is_running")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], quick: set[int]) -> None:
        self._function = function
        self._args = args
        self._quick = quick
        self._context: Context = copy_context()
        self._error: BaseException | None = None
        self.is_running = False
        """Whether a thread runs it."""

    def run(self) -> float:
        """Call it in this thread; return the time at its end, by `perf_counter`."""
        started = perf_counter()
        self.is_running = True
        try:
            self._result = self._context.run(self._function, *self._args)
        except (StopIteration, *_ENDS_A_LOOP) as raised:
            self._error = _acceptable_error(raised)
            self._error.__cause__ = raised
        except BaseException as raised:
            self._error = raised
        finally:
            self.is_running = False
        ended = perf_counter()
        if ended - started < _QUICK:
            self._quick.add(id(self._function))
        return ended

    def result(self) -> Any:
        """Return its result, or raise its error; to be called once."""
        if self._error is None:
            return self._result
        error, self._error = self._error, None
        try:
            raise error
        finally:
            del error

    def discard(self) -> None:
        """Close the coroutine that the function has returned: nobody awaits it, and Python would warn."""
        returned = getattr(self, "_result", None)
        if inspect.iscoroutine(returned) and inspect.getcoroutinestate(returned) == inspect.CORO_CREATED:
            returned.close()

    def __await__(self) -> Generator[Job, None, Any]:
        yield self
        return self.result()


class SyncCaller:
    """Runs user code for an event loop, in daemon threads that are kept for the next call.

    Async functions also get their own loop: one that blocks instead of awaiting blocks only itself.

    Args:
        takes_jobs: tells whether the calling code may await a job. A function that was quick the last time is
            then called as a job, and its runner must make sure that a slow one does not block others.
    """

    def __init__(self, takes_jobs: Callable[[], bool] | None = None) -> None:
        self._idle: list[queue.SimpleQueue[_Handed | None]] = []
        self._loop: _NodeLoop | None = None
        self._takes_jobs = takes_jobs
        self._quick: set[int] = set()

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function with the caller's context variables, without blocking the loop."""
        return await self.begin(function, args)[1]

    def begin(self, function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Job, Awaitable[Any]]:
        """Return a job for a call, and what to await for its result."""
        if quick := self.quick(function, args):
            return quick, quick
        job = Job(function, args, self._quick)
        return job, self._in_thread(job)

    def quick(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Job | None:
        """Return a job to await, for a function that was quick the last time; None if it needs a thread."""
        if self._takes_jobs is None or id(function) not in self._quick or not self._takes_jobs():
            return None
        self._quick.discard(id(function))  # removed until it has been quick again
        return Job(function, args, self._quick)

    def job(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Job | None:
        """Return a job to await if the calling code may do so, however long it takes; otherwise None."""
        takes = self._takes_jobs is not None and self._takes_jobs()
        return Job(function, args, self._quick) if takes else None

    async def _in_thread(self, job: Job) -> Any:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        jobs = self._idle.pop() if self._idle else self._start_thread()
        job.is_running = True
        jobs.put((job, done))
        try:
            await done
            return job.result()
        except asyncio.CancelledError:
            job.discard()
            raise
        finally:
            if done.done() and not done.cancelled():
                self._idle.append(jobs)
            else:
                jobs.put(None)

    async def finish(self, awaitable: Awaitable[Any], tasks: list[asyncio.Task[Any]]) -> Any:
        """Await what an async function returned, on the loop of another thread.

        Args:
            tasks: gets the task there, which may still run after the caller was cancelled.
        """
        if self._loop is None or self._loop.busy:
            # A node that was stopped still blocks its loop.
            self._retire()
            self._loop = _NodeLoop()
        return await asyncio.wrap_future(self._loop.submit(awaitable, tasks))

    def close(self) -> None:
        """Let idle threads end."""
        while self._idle:
            self._idle.pop().put(None)
        self._retire()

    def _retire(self) -> None:
        if self._loop:
            self._loop.retire()
            self._loop = None

    @staticmethod
    def _start_thread() -> queue.SimpleQueue[_Handed | None]:
        jobs: queue.SimpleQueue[_Handed | None] = queue.SimpleQueue()
        threading.Thread(target=_work, args=(jobs,), name="hitl-tui node", daemon=True).start()
        return jobs


class BranchCaller(SyncCaller):
    """Runs the branches of a step in parallel: sync ones each in a thread, async ones all on one loop.

    Args:
        on_this_loop: async functions run on the caller's own loop, not on another thread's.
    """

    def __init__(self, *, on_this_loop: bool) -> None:
        super().__init__()
        self._on_this_loop = on_this_loop

    async def finish(self, awaitable: Awaitable[Any], tasks: list[asyncio.Task[Any]]) -> Any:
        if self._on_this_loop:
            return await awaitable
        if self._loop is None:
            self._loop = _NodeLoop()
        return await asyncio.wrap_future(self._loop.submit(awaitable, tasks))


class _NodeLoop:
    """A daemon thread with an event loop, for one async node at a time."""

    def __init__(self) -> None:
        self.busy = False
        self._retired = False
        self._loop = asyncio.new_event_loop()
        _node_loops.add(self)
        threading.Thread(target=self._run, name="hitl-tui async node", daemon=True).start()

    def tasks(self) -> set[asyncio.Task[Any]]:
        """The tasks on this loop."""
        return asyncio.all_tasks(self._loop)

    def submit(self, awaitable: Awaitable[Any], tasks: list[asyncio.Task[Any]]) -> Future[Any]:
        """Await something on this loop, in the caller's context; cancelling the future cancels it."""
        self.busy = True
        return asyncio.run_coroutine_threadsafe(self._finish(awaitable, tasks), self._loop)

    def retire(self) -> None:
        """End the thread once the loop has nothing left to do."""
        self._loop.call_soon_threadsafe(self._retire)

    async def _finish(self, awaitable: Awaitable[Any], tasks: list[asyncio.Task[Any]]) -> Any:
        task = asyncio.current_task()
        if task:
            tasks.append(task)
            task.add_done_callback(_ignore_error)
        try:
            return await awaitable
        except _ENDS_A_LOOP as raised:
            raise _acceptable_error(raised) from raised
        finally:
            self.busy = False
            if self._retired:
                self._loop.call_soon(self._loop.stop)

    def _retire(self) -> None:
        self._retired = True
        if not asyncio.all_tasks(self._loop):
            self._loop.stop()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()


_node_loops: WeakSet[_NodeLoop] = WeakSet()


def _ignore_error(task: asyncio.Task[Any]) -> None:
    """Ignore the error of a task: the caller gets it already, or the node was stopped."""
    if not task.cancelled():
        task.exception()


_ENDS_A_LOOP = (SystemExit, KeyboardInterrupt, GeneratorExit)
_INSTEAD = {
    SystemExit: "a node can't end the program: return from it, or raise an error that says why",
    StopIteration: "next() found nothing: give it a default, as in next(items, None)",
}


def _acceptable_error(raised: BaseException) -> HitlError:
    """Replace an exception that would end a loop, or that a future does not accept."""
    what = f"{type(raised).__name__}: {raised}" if str(raised) else type(raised).__name__
    instead = _INSTEAD.get(type(raised), "raise an Exception instead")
    return HitlError(what, instead).with_traceback(raised.__traceback__)


_Handed = tuple[Job, "asyncio.Future[None]"]


def _work(jobs: queue.SimpleQueue[_Handed | None]) -> None:
    while handed := jobs.get():
        job, done = handed
        job.run()
        try:
            done.get_loop().call_soon_threadsafe(_settle, done, job)
        except RuntimeError:  # the loop has closed: nothing waits for this result
            job.discard()
            return
        del handed, job, done


def _settle(done: asyncio.Future[None], job: Job) -> None:
    if done.done():  # its call was given up
        job.discard()
    else:
        done.set_result(None)


class CallTimedOut(TimeoutError):
    """A call has taken too long; not a `TimeoutError` that the called function itself raised.

    Args:
        stack: where the function was then, the outermost first; () where that is not known.
        started: the code of the call, some of which may still run.
    """

    def __init__(self, stack: tuple[tuple[FrameType, int], ...], started: StartedCode) -> None:
        super().__init__()
        self.stack = stack
        self.started = started


class StartedCode:
    """The code that a call has started in other threads, which may still run when nothing waits for it."""

    def __init__(self) -> None:
        self.job: Job | None = None
        self.awaitable: Any = None
        self.tasks: list[asyncio.Task[Any]] = []

    @property
    def is_sync_running(self) -> bool:
        """Whether code runs that nothing can stop; a cancelled task ends once it awaits something."""
        return self.job is not None and self.job.is_running

    @property
    def is_running(self) -> bool:
        """Whether any of its code runs."""
        return self.is_sync_running or any(not task.done() for task in self.tasks)


class Caller(Protocol):
    """Whoever calls; it can look at what it has started."""

    code: StartedCode | None


async def call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    threads: SyncCaller | None,
    timeout: float | None,
    caller: Caller | None = None,
) -> Any:
    """Call a node's function, sync or async.

    Args:
        threads: where sync functions run; None makes a thread for this call.
        timeout: seconds; a sync function that takes longer is left running in its thread.

    Raises:
        CallTimedOut: it took longer.
    """
    started = StartedCode()
    if caller is not None:
        caller.code = started
    if timeout is None:
        if threads is None or not (job := threads.quick(function, args)):
            return await _call(function, args, threads, started)
        started.job = job
        result = await job
        if type(result) is dict or not inspect.isawaitable(result):
            return result
        return await threads.finish(result, [])
    stack: list[tuple[FrameType, int]] = []

    def note_stack() -> None:
        awaited = started.awaitable
        stack.extend(_stack_in_thread(function) if awaited is None else _stack_of_awaitable(awaited))

    loop = asyncio.get_running_loop()
    # Just before it is cancelled, while its frames still exist.
    looking = loop.call_at(loop.time() + timeout - _BEFORE, note_stack)
    try:
        async with asyncio.timeout(timeout) as scope:
            return await _call(function, args, threads, started)
    except TimeoutError:
        if scope.expired():
            raise CallTimedOut(tuple(stack), started) from None
        raise
    finally:
        looking.cancel()


_BEFORE: Final = 1e-4


def _stack_of_awaitable(awaitable: Any) -> Iterator[tuple[FrameType, int]]:
    """Return where a coroutine is, and the coroutines that it awaits."""
    while awaitable is not None:
        frame = getattr(awaitable, "cr_frame", None) or getattr(awaitable, "gi_frame", None)
        if frame is not None:
            yield frame, frame.f_lineno
        awaitable = getattr(awaitable, "cr_await", None) or getattr(awaitable, "gi_yieldfrom", None)


def _stack_in_thread(function: Callable[..., Any]) -> Sequence[tuple[FrameType, int]]:
    """Return where a function is in its thread; () if no thread runs it, or several do."""
    code = code_behind(function)
    stacks = []
    for frame in sys._current_frames().values():
        stack = list(walk_stack(frame))
        if any(called.f_code is code for called, _ in stack):
            stacks.append(stack[::-1])
    return stacks[0] if len(stacks) == 1 else ()


def running_stacks(functions: Iterable[Callable[..., Any]]) -> list[tuple[tuple[FrameType, int], ...]]:
    """Return where running functions are: a stack for each call, the outermost frame first.

    It finds sync functions in any thread, and async ones on the loops of nodes and on the caller's loop.
    """
    codes = {code for function in functions if (code := code_behind(function)) is not None}
    stacks = [tuple(walk_stack(frame))[::-1] for frame in sys._current_frames().values()]
    tasks = {*asyncio.all_tasks(), *(task for each in tuple(_node_loops) for task in each.tasks())}
    stacks += [tuple(_stack_of_awaitable(task.get_coro())) for task in tasks if not task.done()]
    return [stack for stack in stacks if any(frame.f_code in codes for frame, _ in stack)]


async def _call(
    function: Callable[..., Any], args: tuple[Any, ...], threads: SyncCaller | None, started: StartedCode
) -> Any:
    if inspect.iscoroutinefunction(function):
        result = function(*args)
    elif threads:
        started.job, result = threads.begin(function, args)
        result = await result
    else:
        own = SyncCaller()
        try:
            started.job, result = own.begin(function, args)
            result = await result
        finally:
            own.close()
    if isinstance(result, dict) or not inspect.isawaitable(result):
        return result
    started.awaitable = result
    return await (threads.finish(result, started.tasks) if threads else result)
