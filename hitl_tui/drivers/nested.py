"""Runs inside runs: passes events of a subgraph's thread to the screen that has this thread open."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeVar

import msgspec

from hitl_tui.drivers.buffer import KEPT
from hitl_tui.engine.commands import Command
from hitl_tui.engine.log.events import (
    AttemptDropped,
    AttemptFailed,
    Event,
    LedgerWritten,
    LimitNear,
    NodeStarted,
    ProgressChanged,
    RunEnded,
    RunStarted,
    StepCommitted,
)
from hitl_tui.errors import HitlError

log = logging.getLogger(__name__)
R = TypeVar("R")


class Runner(Protocol):
    """The driver of the outer thread, inside whose run the inner one runs."""

    thread_id: str

    async def execute(self, command: Command[R]) -> R:
        """Pause the run, or stop its running node, and so the inner run."""


class _SubgraphRun(msgspec.Struct):
    runner: Runner
    tape: deque[Event] = msgspec.field(default_factory=lambda: deque(maxlen=KEPT))


class SubgraphRuns:
    """The runs of subgraphs in one process, by their threads; may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, _SubgraphRun] = {}
        self._followers: dict[str, Follower] = {}

    def pass_on(self, runner: Runner, thread_id: str, event: Event) -> None:
        """Pass on an event of a thread that runs inside the run of another one."""
        with self._lock:
            if isinstance(event, RunStarted):
                self._runs[thread_id] = _SubgraphRun(runner)
            run = self._runs.get(thread_id)
            if run is not None:
                if isinstance(event, NodeStarted):
                    run.tape.clear()
                run.tape.append(event)
            if isinstance(event, RunEnded):
                self._runs.pop(thread_id, None)
            follower = self._followers.get(thread_id)
            if follower is not None:
                follower.hear(event)

    def runner(self, thread_id: str) -> Runner | None:
        """Return the run inside which a thread runs now, None for none."""
        run = self._runs.get(thread_id)
        return run.runner if run else None

    def follow(self, thread_id: str, follower: Follower) -> None:
        """Let a follower receive the events of a thread, from the start of the node that runs there now."""
        with self._lock:
            run = self._runs.get(thread_id)
            for event in run.tape if run else ():
                follower.hear(event)
            self._followers[thread_id] = follower

    def leave(self, thread_id: str) -> None:
        """Stop following a thread."""
        with self._lock:
            self._followers.pop(thread_id, None)


class Follower:
    """Emits the events of a thread on the loop of its own driver, in their order.

    Steps are emitted by the watcher of the store (`catch_up`); events that are in no store are emitted
    between them.

    Args: head: the newest emitted step.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        head: int,
        *,
        catch_up: Callable[[], None],
        emit: Callable[[Event], None],
    ) -> None:
        self.live = False
        """Whether a node is running."""
        self._loop = loop
        self._head = head
        self._catch_up = catch_up
        self._emit = emit
        self._received: deque[Event] = deque()
        self._woken = False
        self._late = False

    def hear(self, event: Event) -> None:
        """Take an event, from any thread."""
        self._received.append(event)
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._pass_on)

    def step_is_next(self, step: int) -> None:
        """Emit the events that belong to a step, which is emitted next."""
        while self._received and _step_of(self._received[0]) <= step:
            event = self._received.popleft()
            if isinstance(event, StepCommitted) and event.checkpoint.step == step:
                break
            self._pass(event)
        self.skip_to(step)

    def skip_to(self, step: int) -> None:
        """Drop the events of steps up to this one."""
        self._head = step
        self.live = False

    def _pass_on(self) -> None:
        # Before checking: events that come from now on wake it again.
        self._woken = False
        while self._received:
            event = self._received[0]
            if isinstance(event, _IN_STORE):
                # It stays in place meanwhile: what comes after a step is emitted after it.
                try:
                    self._catch_up()
                except HitlError as error:  # the store may come back
                    log.warning("what a run inside has committed can't be read: %s", error)
                if not self._received or self._received[0] is not event:
                    continue
            self._received.popleft()
            if not isinstance(event, _IN_STORE):
                self._pass(event)

    def _pass(self, event: Event) -> None:
        if isinstance(event, NodeStarted):
            self._late = event.step <= self._head
            self.live = not self._late
        elif isinstance(event, (RunEnded, AttemptFailed, AttemptDropped)):
            self.live = self._late = False
        if not self._late and not isinstance(event, (*_IN_STORE, LimitNear)):
            self._emit(event)


_IN_STORE = (StepCommitted, ProgressChanged, LedgerWritten)


def _step_of(event: Event) -> int:
    """Return the step that an event names; for events without one, any."""
    if isinstance(event, StepCommitted):
        return event.checkpoint.step
    return event.step if isinstance(event, NodeStarted) else -1
