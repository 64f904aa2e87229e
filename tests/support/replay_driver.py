"""A driver that plays a recorded tape: its events come when they are released, its commands are noted.

Screens and views are tested on it.  It runs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from hitl_tui.drivers.protocol import (
    NO_BREAKPOINTS,
    Arrival,
    Capabilities,
    Check,
    Checked,
    Driver,
    Preview,
    Relative,
    RollbackEntry,
    Snapshot,
    Stamped,
)
from hitl_tui.engine.log.events import AppliedUpdate, RunEnded
from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.engine.log.threads import ThreadSummary
from hitl_tui.engine.thread.agent_settings import AgentInfo, Settings
from hitl_tui.errors import UnknownThread
from hitl_tui.stores import base

if TYPE_CHECKING:
    from hitl_tui.loading.trust import Ask

_NO_PREVIEW = Preview(updates=(), problems={}, next_node=None, rebinds=(), forks=False)


class Command(msgspec.Struct, frozen=True):
    """A command that a screen gave: the method's name and its arguments by name."""

    name: str
    arguments: Mapping[str, Any]


class ReplayDriver:
    """A `Driver` on a tape.

    Args:
        snapshot: what a screen begins with; `events` follow it.
        events: numbered from `snapshot.last_event + 1`, held back until released.
        states: channel values by step.
        updates: updates by step.
        checkpoints: all checkpoints, oldest first, those of the events included.
        family: the thread's relatives.
        results: what commands answer, by method name; an exception is raised instead.
        follow: let `step` and `run` release events up to the end of the next run.
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
        self.commands: list[Command] = []
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
    def capabilities(self) -> Capabilities:
        """What the tape's snapshot says."""
        return self._snapshot.capabilities

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

    def advance_all(self) -> None:
        """Release everything."""
        self.advance(self.left)

    async def snapshot(self) -> Snapshot:
        """What the tape begins with."""
        return self._snapshot

    async def history(self, before: int | None = None, limit: int = 50) -> tuple[Checkpoint, ...]:
        """Checkpoints before a step, newest first."""
        found = [point for point in reversed(self._checkpoints) if before is None or point.step < before]
        return tuple(found[:limit])

    async def state_at(self, step: int) -> Mapping[str, Any]:
        """The channel values of a step."""
        if step not in self._states:
            raise UnknownThread(f"the tape has no step {step} of thread {self.thread_id}")
        return self._states[step]

    async def updates_at(self, step: int) -> tuple[AppliedUpdate, ...]:
        """The updates of a step."""
        return self._updates.get(step, ())

    async def updates_between(
        self, first: int, last: int, only: str | None = None
    ) -> Mapping[int, tuple[AppliedUpdate, ...]]:
        """The updates of each of the steps, of one channel or of all."""
        return {
            step: tuple(one for one in self._updates.get(step, ()) if only in (None, one.channel))
            for step in range(first, last + 1)
        }

    async def written_at(self, first: int, last: int) -> Mapping[int, Mapping[str, bool]]:
        """The channels that each of the steps wrote, and whether they differ since."""
        found: dict[int, dict[str, bool]] = {step: {} for step in range(first, last + 1)}
        for step, written in found.items():
            for update in self._updates.get(step, ()):
                written[update.channel] = update.changed or written.get(update.channel, False)
        return found

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

    async def start(self, inputs: Mapping[str, Any], *, actor: str | None = None) -> int:
        """Noted; answers 0."""
        return int(self._noted("start", 0, inputs=inputs, actor=actor))

    async def step(self) -> None:
        """Noted; may release the next run."""
        self._noted("step", None)
        self._go_on()

    async def run(self, *, stop_before: Mapping[str, str] = NO_BREAKPOINTS) -> None:
        """Noted; may release the next run."""
        self._noted("run", None, stop_before=stop_before)
        self._go_on()

    async def pause(self) -> None:
        """Noted."""
        self._noted("pause", None)

    async def cancel_attempt(self) -> None:
        """Noted."""
        self._noted("cancel_attempt", None)

    async def cancel(self, *, actor: str | None = None, note: str | None = None) -> None:
        """Noted."""
        self._noted("cancel", None, actor=actor, note=note)

    async def extend_limits(
        self, limits: Mapping[str, float | None], *, actor: str | None = None, note: str | None = None
    ) -> None:
        """Noted."""
        self._noted("extend_limits", None, limits=limits, actor=actor, note=note)

    async def preview(
        self,
        values: Mapping[str, Any],
        *,
        step: int | None = None,
        as_node: str | None = None,
        answer: tuple[str, Any] | None = None,
    ) -> Preview:
        """Noted; answers an empty preview."""
        found: Preview = self._noted(
            "preview", _NO_PREVIEW, values=values, step=step, as_node=as_node, answer=answer
        )
        return found

    async def update_state(
        self,
        values: Mapping[str, Any],
        *,
        expected_step: int,
        as_node: str | None = None,
        actor: str | None = None,
        note: str | None = None,
    ) -> int:
        """Noted; answers the step after `expected_step`."""
        return int(
            self._noted(
                "update_state",
                expected_step + 1,
                values=values,
                expected_step=expected_step,
                as_node=as_node,
                actor=actor,
                note=note,
            )
        )

    async def answer(
        self,
        request_id: str,
        answer: Any,
        *,
        step: int,
        actor: str | None = None,
        note: str | None = None,
        seen: bytes = b"",
    ) -> int:
        """Noted; answers the step after `step`."""
        return int(
            self._noted(
                "answer",
                step + 1,
                request_id=request_id,
                answer=answer,
                step=step,
                actor=actor,
                note=note,
                seen=seen,
            )
        )

    async def fork(
        self,
        step: int,
        new_thread_id: str,
        *,
        changes: Mapping[str, Any] | None = None,
        agents: Settings | None = None,
        actor: str | None = None,
        note: str | None = None,
    ) -> str:
        """Noted; answers the new thread's id."""
        return str(
            self._noted(
                "fork",
                new_thread_id,
                step=step,
                new_thread_id=new_thread_id,
                changes=changes,
                actor=actor,
                note=note,
                **({"agents": agents} if agents else {}),
            )
        )

    async def rollback_entries(self) -> tuple[RollbackEntry, ...]:
        """Notes the command."""
        return tuple(self._noted("rollback_entries", ()))

    async def rollback(self, *, actor: str | None = None, note: str | None = None) -> None:
        """Notes the command."""
        self._noted("rollback", None, actor=actor, note=note)

    async def check(self, kind: Check, watch: Callable[[int, int], object]) -> Checked:
        """Notes the command."""
        found: Checked = self._noted("check", Checked(kind, (), 0, 0), kind=kind)
        return found

    async def lineage(self, channel: str, step: int) -> tuple[Arrival, ...]:
        """Noted; answers nothing."""
        return tuple(self._noted("lineage", (), channel=channel, step=step))

    async def declassify(
        self, channel: str, *, expected_step: int, actor: str, reason: str, seen: bytes = b""
    ) -> int:
        """Noted; answers the step after `expected_step`."""
        return int(
            self._noted(
                "declassify",
                expected_step + 1,
                channel=channel,
                expected_step=expected_step,
                actor=actor,
                reason=reason,
                seen=seen,
            )
        )

    async def reveal(self, channel: str, step: int, *, actor: str) -> Any:
        """Noted; answers null."""
        return self._noted("reveal", None, channel=channel, step=step, actor=actor)

    async def agents(self) -> tuple[AgentInfo, ...]:
        """Noted; the tape knows of none."""
        return tuple(self._noted("agents", ()))

    async def configure_agent(
        self, agent: str, settings: Mapping[str, Any], *, actor: str | None = None, note: str | None = None
    ) -> None:
        """Noted."""
        self._noted("configure_agent", None, agent=agent, settings=settings, actor=actor, note=note)

    async def doubts(self, agent: str, settings: Mapping[str, Any]) -> str:
        """Noted; there are none."""
        return str(self._noted("doubts", "", agent=agent, settings=settings))

    async def clear_turns(self, agent: str, *, actor: str | None = None, note: str | None = None) -> int:
        """Noted; there were none."""
        return int(self._noted("clear_turns", 0, agent=agent, actor=actor, note=note))

    async def reload_graph(self, *, actor: str | None = None) -> tuple[str, ...]:
        """Noted; nothing differs."""
        return tuple(self._noted("reload_graph", (), actor=actor))

    async def close(self) -> str:
        """Noted; nothing is lost."""
        self.closed = True
        return str(self._noted("close", ""))

    def _noted(self, name: str, result: Any, **arguments: Any) -> Any:
        """Write a command down and give its canned result."""
        self.commands.append(Command(name, arguments))
        found = self.results.get(name, result)
        if isinstance(found, BaseException):
            raise found
        return found

    def _go_on(self) -> None:
        if self._follow:
            self.advance_run()


class ReplayHub:
    """A `Hub` over tapes: drivers by thread, and the rows of its list."""

    def __init__(self, drivers: Sequence[Driver], summaries: Sequence[ThreadSummary] = ()) -> None:
        self._drivers = {driver.thread_id: driver for driver in drivers}
        self._summaries = tuple(summaries)

    async def threads(
        self,
        query: str = "",
        limit: int = 50,
        offset: int = 0,
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
        return tuple(found[offset : offset + limit])

    async def open(self, thread_id: str) -> Driver:
        """The driver of a tape."""
        if thread_id not in self._drivers:
            raise UnknownThread(f"there is no tape of thread {thread_id}")
        return self._drivers[thread_id]

    def ask_by(self, ask: Ask) -> None:
        """A tape builds no graph."""

    async def close(self) -> tuple[str, ...]:
        """Close all drivers."""
        lost = [await driver.close() for driver in self._drivers.values()]
        return tuple(sentence for sentence in lost if sentence)
