"""A driver that plays a recorded tape: its events come when they are released, its commands are noted.

Screens and views are tested on it.  It runs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from hitl_tui.drivers.expressions import Expression
from hitl_tui.drivers.history import Asked, HitsCallback, MomentsCallback, Sample, sample
from hitl_tui.drivers.protocol import (
    Check,
    Checked,
    ContextField,
    Driver,
    Hub,
    Inbox,
    Relative,
    Snapshot,
    SourceState,
    Stamped,
    StoredItem,
    command_refusal,
)
from hitl_tui.engine.audit.lineage import Arrival
from hitl_tui.engine.commands import (
    Answer,
    Command,
    Declassify,
    Fork,
    ReloadGraph,
    Run,
    Start,
    Step,
    UpdateState,
    verb,
)
from hitl_tui.engine.graph.compensation import RollbackEntry
from hitl_tui.engine.log.events import AppliedUpdate, GraphChanged, Preview, RunEnded, StepCommitted
from hitl_tui.engine.log.jobs import AtWork
from hitl_tui.engine.log.outcomes import Frame
from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.engine.log.threads import ThreadSummary, Waiting
from hitl_tui.engine.thread.agent_settings import AgentInfo
from hitl_tui.engine.thread.session import now_us
from hitl_tui.errors import UnknownThread, UsageError
from hitl_tui.stores import base

if TYPE_CHECKING:
    from hitl_tui.drivers.protocol import Previewed
    from hitl_tui.drivers.routes import RouteTaken
    from hitl_tui.loading.known import KnownGraph
    from hitl_tui.loading.trust import Ask
    from hitl_tui.stores.deletion import Leaving

_NO_PREVIEW = Preview(updates=(), problems={}, next_node=None, rebinds=(), forks=False)


R = TypeVar("R")


class ReplayDriver:
    """A `Driver` on a tape.

    Args:
        snapshot: what a screen begins with; `events` follow it.
        events: numbered from `snapshot.last_event + 1`, held back until released.
        states: channel values by step.
        updates: updates by step.
        checkpoints: all checkpoints, oldest first, those of the events included.
        family: the thread's relatives.
        results: what commands give, by verb, and questions, by method; an exception is raised instead.
        follow: let `Step` and `Run` release events up to the end of the next run.

    Attributes:
        commands: what was to be carried out, in order; `previewed`: what was only looked at.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        events: Sequence[Stamped] = (),
        states: Mapping[int, Mapping[str, Any]] | None = None,
        updates: Mapping[int, tuple[AppliedUpdate, ...]] | None = None,
        *,
        checkpoints: Sequence[Checkpoint] = (),
        family: Sequence[Relative] = (),
        results: Mapping[str, Any] | None = None,
        follow: bool = False,
    ) -> None:
        self.commands: list[Command[Any]] = []
        self.previewed: list[Previewed] = []
        self.results: dict[str, Any] = dict(results or {})
        self.closed = False
        self._snapshot = snapshot
        self._events = tuple(events)
        self._states = states or {}
        self._updates = updates or {}
        self._checkpoints = tuple(checkpoints) or snapshot.checkpoints
        self._family = tuple(family)
        self._follow = follow
        self._released = 0
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    @property
    def thread_id(self) -> str:
        """The thread on the tape."""
        return self._snapshot.thread_id

    @property
    def left(self) -> int:
        """How many events are held back."""
        return len(self._events) - self._released

    def advance(self, n: int = 1) -> None:
        """Release the next `n` events."""
        self._released = min(self._released + n, len(self._events))
        waiting, self._waiting = self._waiting, []
        for loop, event in waiting:
            loop.call_soon_threadsafe(event.set)

    def advance_run(self) -> None:
        """Release events up to the end of the next run, it included."""
        held = self._events[self._released :]
        ends = (at for at, stamped in enumerate(held, 1) if isinstance(stamped.event, RunEnded))
        self.advance(next(ends, len(held)))

    def advance_to_step(self, step: int) -> None:
        """Release events up to the commit of a step."""
        held = self._events[self._released :]
        self.advance(
            next(
                at
                for at, stamped in enumerate(held, 1)
                if isinstance(stamped.event, StepCommitted) and stamped.event.checkpoint.step == step
            )
        )

    def advance_all(self) -> None:
        """Release everything."""
        self.advance(self.left)

    async def snapshot(self) -> Snapshot:
        """What the tape begins with, and how the file of its graph has changed since."""
        changed = [at.event for at in self.events(0) if isinstance(at.event, GraphChanged)]
        return replace(self._snapshot, graph_changed=changed[-1].differences) if changed else self._snapshot

    async def history(self, before: int | None = None, limit: int = 50) -> tuple[Checkpoint, ...]:
        """Checkpoints before a step, newest first."""
        found = [point for point in reversed(self._checkpoints) if before is None or point.step < before]
        return tuple(found[:limit])

    async def state_at(self, step: int) -> Mapping[str, Any]:
        """The channel values of a step."""
        if step not in self._states:
            raise UnknownThread(f"the tape has no step {step} of thread {self.thread_id}")
        return self._states[step]

    async def updates(
        self, first: int, last: int, only: str | None = None
    ) -> Mapping[int, tuple[AppliedUpdate, ...]]:
        """The updates of each of the steps, of one channel or of all."""
        return {
            step: tuple(one for one in self._updates.get(step, ()) if only in (None, one.channel))
            for step in range(first, last + 1)
        }

    async def visits(self, step: int) -> Mapping[str, int]:
        """How often each node ran in the steps up to one of them."""
        ran = [point.node for point in self._checkpoints if point.step <= step and point.source != "human"]
        return {node: ran.count(node) for node in ran if node}

    async def written(self, first: int, last: int) -> Mapping[int, Mapping[str, bool]]:
        """The channels that each of the steps wrote, and whether they differ since."""
        found: dict[int, dict[str, bool]] = {step: {} for step in range(first, last + 1)}
        for step, written in found.items():
            for update in self._updates.get(step, ()):
                written[update.channel] = update.changed or written.get(update.channel, False)
        return found

    async def search(self, query: str, report: HitsCallback) -> None:
        """What was given as its result is found at once."""
        report(self.results.get("search", ()), 1, 1)

    async def ask(self, expression: str, report: MomentsCallback) -> Asked:
        """What was given as its result."""
        result: Asked = self.results.get("ask", Asked((), False, 0, "", 1))
        report(result.moments, 1, 1)
        return result

    async def series(
        self, expressions: Sequence[str], last: int, most: int
    ) -> tuple[tuple[Sample, ...], ...]:
        """What the states of the tape give."""
        steps = [step for step in sorted(self._states) if step <= last][:most]
        return tuple(
            tuple(sample(Expression(text), step, self._states[step]) for step in steps)
            for text in expressions
        )

    async def family(self) -> tuple[Relative, ...]:
        """The relatives on the tape."""
        return self._family

    def events(self, since: int) -> Sequence[Stamped]:
        """Released events with a number greater than `since`."""
        return tuple(stamped for stamped in self._events[: self._released] if stamped.number > since)

    async def changed(self, since: int) -> None:
        """Wait until an event with a number greater than `since` is released."""
        while not self.events(since):
            event = asyncio.Event()
            self._waiting.append((asyncio.get_running_loop(), event))
            await event.wait()

    async def ended(self, since: int) -> None:
        """Wait until the end of a run with a number greater than `since` is released."""
        while not any(isinstance(stamped.event, RunEnded) for stamped in self.events(since)):
            await self.changed(max((stamped.number for stamped in self.events(since)), default=since))

    def refusal(self, command: type[Command[Any]]) -> str:
        """What the tape's snapshot says."""
        return command_refusal(self._snapshot.refusals, command)

    async def execute(self, command: Command[R]) -> R:
        """Noted; gives the canned result.  A step or a run may release the events of the next run."""
        self.commands.append(command)
        result: R = self._result(verb(type(command)), _given(command))
        if isinstance(command, Step | Run) and self._follow:
            self.advance_run()
        return result

    async def preview(self, command: Previewed) -> Preview:
        """Noted; an empty preview."""
        self.previewed.append(command)
        found: Preview = self._result("preview", _NO_PREVIEW)
        return found

    async def context_fields(self) -> tuple[ContextField, ...]:
        """A thread of a tape has started."""
        return ()

    async def agents(self) -> tuple[AgentInfo, ...]:
        """The tape knows of none."""
        return tuple(self._result("agents", ()))

    async def rollback_entries(self) -> tuple[RollbackEntry, ...]:
        """There are none."""
        return tuple(self._result("rollback_entries", ()))

    async def code(self, node: str) -> tuple[Frame, ...]:
        """What the test says, by node."""
        return tuple(self._result("code", {}).get(node, ()))

    async def where(self, node: str) -> tuple[tuple[Frame, ...], ...]:
        """What the test says, by node."""
        return tuple(self._result("where", {}).get(node, ()))

    async def route(self, step: int, *, load: bool = False) -> RouteTaken | None:
        """What the test says, by step."""
        route: RouteTaken | None = self._result("route", {}).get(step)
        return route

    async def lineage(self, channel: str, step: int) -> tuple[Arrival, ...]:
        """There is none."""
        return tuple(self._result("lineage", ()))

    async def check(self, kind: Check, watch: Callable[[int, int], object]) -> Checked:
        """Nothing is wrong."""
        found: Checked = self._result("check", Checked(kind, (), 0, 0))
        return found

    async def close(self) -> str:
        """Nothing is lost."""
        self.closed = True
        return ""

    def _result(self, name: str, default: Any) -> Any:
        found = self.results.get(name, default)
        if isinstance(found, BaseException):
            raise found
        return found


def _given(command: Command[Any]) -> Any:
    """What a driver gives that carries the command out: the step after, or the new thread."""
    match command:
        case Start():
            return 0
        case UpdateState(expected_step=int(step)) | Declassify(expected_step=int(step)) | Answer(step=step):
            return step + 1
        case Fork(new_thread_id=thread_id):
            return thread_id
        case ReloadGraph():
            return ()
    return None


class ReplayHub:
    """A `Hub` over tapes: drivers by thread, and the rows of its list."""

    def __init__(self, drivers: Sequence[Driver], summaries: Sequence[ThreadSummary] = ()) -> None:
        self._drivers = {driver.thread_id: driver for driver in drivers}
        self._summaries = tuple(summaries)
        self.inbox: Inbox = self
        self.source = ""

    async def threads(
        self,
        query: str = "",
        limit: int = 50,
        after: ThreadSummary | None = None,
        within: str | None = None,
        *,
        waiting: bool = False,
    ) -> tuple[ThreadSummary, ...]:
        """The rows whose thread id contains `query`."""
        known = {row.info.thread_id for row in self._summaries}
        found = [row for row in self._summaries if query in row.info.thread_id]
        found = [row for row in found if base.is_inside(row.info, within, known)]
        if waiting:
            found = [row for row in found if row.waiting_since is not None]
        begin = found.index(after) + 1 if after is not None else 0
        return tuple(found[begin : begin + limit])

    async def waiting(self, limit: int) -> tuple[Waiting, ...]:
        """What the threads of tapes ask at their end; of others nothing is known."""
        rows = await self.threads("", limit, None, "", waiting=True)
        asked = {name: (await driver.snapshot()).progress.pending for name, driver in self._drivers.items()}
        return tuple(Waiting(row, asked.get(row.info.thread_id, ())) for row in rows)

    def sources(self) -> tuple[SourceState, ...]:
        """Tapes are one source."""
        return ()

    def hub_of(self, source: str) -> Hub:
        """Tapes are one source."""
        return self

    @property
    def home(self) -> Hub:
        """Tapes are one source."""
        return self

    def changes(self) -> object:
        """Nobody writes to a tape."""
        return 0

    def subscribe(self, wake: Callable[[], object]) -> Callable[[], None] | None:
        """Nobody writes to a tape."""
        return None

    def now(self) -> int:
        """A tape has no clock of its own."""
        return now_us()

    @asynccontextmanager
    async def borrow(self, thread_id: str, *, look: bool = False) -> AsyncIterator[Driver]:
        """The driver of a tape."""
        yield await self.open(thread_id)

    no_agents = ""
    no_items = "a recorded thread has none"
    no_workers = "a recorded thread has none"

    async def at_work(self, limit: int) -> AtWork:
        """There are none."""
        raise UsageError("there are no workers here", self.no_workers)

    async def items(self, prefix: Sequence[str], query: str, limit: int) -> tuple[StoredItem, ...]:
        raise UsageError("there is no store of items", self.no_items)

    async def known_graphs(self) -> tuple[KnownGraph, ...]:
        """A tape starts nothing."""
        return ()

    async def start(self, graph: KnownGraph, actor: str | None) -> Driver:
        """A tape starts nothing."""
        raise NotImplementedError

    async def open(self, thread_id: str, *, at_once: bool = False) -> Driver:
        """The driver of a tape."""
        if thread_id not in self._drivers:
            raise UnknownThread(f"there is no tape of thread {thread_id}")
        return self._drivers[thread_id]

    async def leaving(self, thread_id: str) -> Sequence[Leaving]:
        """A tape is not in a store."""
        raise UsageError("a tape can't be deleted")

    async def delete(self, going: Sequence[Leaving], *, actor: str | None, note: str | None) -> None:
        """A tape is not in a store."""
        raise UsageError("a tape can't be deleted")

    def ask_by(self, ask: Ask) -> None:
        """A tape builds no graph."""

    async def close(self) -> tuple[str, ...]:
        """Close all drivers."""
        lost = [await driver.close() for driver in self._drivers.values()]
        return tuple(sentence for sentence in lost if sentence)
