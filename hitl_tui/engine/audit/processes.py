"""Checks a store in several processes, so that all cores work on a long log.

Each process opens the store for reading, and loads nothing of a user's graph. What a process does not return,
for example because it was killed, is done again by the caller.
"""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import IO, Any, NamedTuple

from hitl_tui.engine.audit.steps import RangeReport, Task, check_range
from hitl_tui.engine.log.store import Reader, Store
from hitl_tui.engine.log.threads import Fault
from hitl_tui.errors import LogCorrupt

SMALLEST = 20_000
"""From this number of steps on, starting processes is worth it."""
_MOST = 8
_RANGES = 4
"""Ranges for each process: with several, the work is even at the end, and little must be done again."""
_REPORT_EVERY = 0.1
"""Seconds."""
_FEW_COLLECTIONS = 100_000
"""New objects between two garbage collections: a check makes many objects but hardly any cycles."""
# Nothing is imported from the current directory, where anybody may have put files.
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[1:]; from hitl_tui.engine.audit.processes import serve; serve()"
)


class Faults(NamedTuple):
    """Wrong rows outside the log of a thread, or of a store as a whole.

    `unreadable` is why that is not known.

    `version` is that of the thread's cursor, -1 for none.
    """

    faults: tuple[Fault, ...]
    unreadable: str | None
    version: int

    @classmethod
    def of(cls, store: Store, thread_id: str | None, since: int = 0) -> Faults:
        """Read the faults with `Store.faults`."""
        faults: list[Fault] = []
        version = -1
        try:
            faults.extend(store.faults(thread_id, since))  # what was found before an error is kept
            cursor = store.cursor(thread_id, unchecked=True) if thread_id is not None else None
            version = cursor.version if cursor else -1
        except LogCorrupt as error:
            return cls(tuple(faults), error.message, version)
        return cls(tuple(faults), None, version)


class _Range(NamedTuple):
    task: Task


class _Faults(NamedTuple):
    thread_id: str | None
    since: int


class _ProgressReport(NamedTuple):
    """Steps that were checked since the last report."""

    steps: int


class Checks:
    """Ranges that are being checked."""

    def __init__(self, first: int, futures: Sequence[Future[Any]], report: Callable[[int], object]) -> None:
        self._steps = first
        self._lock = threading.Lock()
        self._futures = futures
        self._report = report

    def result(self, index: int) -> RangeReport | None:
        """Return the report of a range; None if it is not known."""
        while True:
            self.report_progress()
            try:
                report = self._futures[index].result(_REPORT_EVERY)
            except TimeoutError:
                continue
            return report if isinstance(report, RangeReport) else None

    def report_progress(self, _step: int = 0) -> None:
        """Report the progress of all ranges together."""
        self._report(self._steps)

    def count(self, steps: int) -> None:
        """Count more checked steps."""
        with self._lock:
            self._steps += steps


class PendingFaults(NamedTuple):
    """A search for faults that is running."""

    store: Store
    job: _Faults
    future: Future[Any]

    def result(self) -> Faults:
        """What was found."""
        faults = self.future.result()
        return faults if isinstance(faults, Faults) else Faults.of(self.store, *self.job)


Job = tuple[Any, "Future[Any]", Callable[[int], object]]


class Processes:
    """Processes that read one store; end them with `close`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._children: list[_Child] = []
        self._threads: list[threading.Thread] = []

    def begin(self, reader: Reader, count: int) -> None:
        """Start a number of processes."""
        for _ in range(count):
            child = _Child()
            self._children.append(child)
            child.begin(reader)
            thread = threading.Thread(target=self._serve, args=(child,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def ranges(self, steps: int) -> int:
        """Return into how many ranges to split a number of steps."""
        return max(1, min(len(self._children) * _RANGES, steps * _RANGES // SMALLEST))

    @contextmanager
    def checks(self, tasks: Sequence[Task], report: Callable[[int], object]) -> Iterator[Checks]:
        """Check ranges of steps.

        `report` is called with the next step now and then, and ends the check by raising.
        """
        futures: list[Future[Any]] = [Future() for _ in tasks]
        checks = Checks(tasks[0].first, futures, report)
        for task, future in zip(tasks, futures, strict=True):
            self._jobs.put((_Range(task), future, checks.count))
        try:
            yield checks
        finally:
            for future in futures:
                future.cancel()

    def faults(self, thread_id: str | None, since: int = 0) -> PendingFaults:
        """Search for faults, as `Faults.of` does."""
        job, future = _Faults(thread_id, since), Future[Any]()
        self._jobs.put((job, future, lambda steps: None))
        return PendingFaults(self._store, job, future)

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        for child in self._children:
            child.close()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            if thread.ident is not None:  # it started while all were being ended
                thread.join()
        for child in self._children:
            child.release()

    def _serve(self, child: _Child) -> None:
        while (job := self._jobs.get()) is not None:
            work, future, report = job
            if future.set_running_or_notify_cancel():
                future.set_result(child.do(work, report))


class _Child:
    """One process that checks ranges."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self, reader: Reader) -> None:
        """Start it; it ends itself when its pipes are closed."""
        argv = [sys.executable, "-P", "-c", _PROGRAM, *filter(None, sys.path)]
        with suppress(OSError):
            self._process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            self._send(reader)

    @property
    def pid(self) -> int:
        """Its process id, 0 if it could not be started."""
        return self._process.pid if self._process else 0

    def do(self, work: Any, report: Callable[[int], object]) -> Any:
        """Return the result of a job; None if it is not known."""
        try:
            self._send(work)
            while isinstance(answer := self._receive(), _ProgressReport):
                report(answer.steps)
            return answer
        except (OSError, ValueError, EOFError, pickle.PickleError):
            return None

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def release(self) -> None:
        """Close the pipes to it."""
        for pipe in (self._process.stdin, self._process.stdout) if self._process else ():
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _send(self, what: Any) -> None:
        if self._process is None or self._process.stdin is None:
            raise OSError("the process did not begin")
        _write(self._process.stdin, what)

    def _receive(self) -> Any:
        if self._process is None or self._process.stdout is None:
            raise OSError("the process did not begin")
        return pickle.load(self._process.stdout)


def _write(pipe: IO[bytes], what: Any) -> None:
    pipe.write(pickle.dumps(what))
    pipe.flush()


def cores() -> int:
    """Return how many cores this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


@contextmanager
def processes_for(store: Store, steps: int) -> Iterator[Processes | None]:
    """Return processes for the check of a thread.

    None if it is short, or only this process can read its store.
    """
    count = min(cores(), _MOST)
    reader = store.reader() if steps >= SMALLEST and count > 1 and sys.executable else None
    if reader is None:
        yield None
        return
    processes = Processes(store)
    try:
        processes.begin(reader, count)
        yield processes
    finally:
        processes.close()


# -- in the process ---------------------------------------------------------------------------------


def serve() -> None:
    """Do the jobs from stdin until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends it
    gc.freeze()
    gc.set_threshold(_FEW_COLLECTIONS)
    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, jobs), daemon=True).start()
    opener, place = jobs.get()
    module, _, name = opener.partition(":")
    store: Store = getattr(importlib.import_module(module), name)(place)
    while True:
        job = jobs.get()
        try:
            answer = _done(store, job, answers)
        except Exception:  # the caller does it again, and gets the error itself
            answer = None
        _write(answers, answer)


def _listen(asked: IO[bytes], jobs: queue.SimpleQueue[Any]) -> None:
    try:
        while True:
            jobs.put(pickle.load(asked))
    except Exception:
        os._exit(0)  # nobody waits for the current job


def _done(store: Store, job: _Range | _Faults, answers: IO[bytes]) -> RangeReport | Faults:
    if isinstance(job, _Faults):
        return Faults.of(store, *job)
    task = job.task
    reported, next_report = task.first, 0.0

    def report_step(step: int) -> None:
        nonlocal reported, next_report
        if (now := time.monotonic()) >= next_report:
            _write(answers, _ProgressReport(step - reported))
            reported, next_report = step, now + _REPORT_EVERY

    report = check_range(store, task, watch=report_step)
    _write(answers, _ProgressReport(task.last + 1 - reported))
    return report
