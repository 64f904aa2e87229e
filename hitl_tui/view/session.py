"""The model of the run screen, without widgets: the open driver, the folded view and the shown step."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import islice
from operator import attrgetter, is_
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from hitl_tui.drivers.protocol import Driver, Hub, Relative, Stamped, ThreadKey
from hitl_tui.engine.commands import COMMANDS, verb
from hitl_tui.engine.graph.description import GraphInfo
from hitl_tui.engine.log.events import (
    AppliedUpdate,
    BreakpointHit,
    Event,
    LedgerWritten,
    LimitNear,
    NodeStarted,
    PriceUnknown,
    RunEnded,
    RunStarted,
    StepCommitted,
    TaintRead,
    ThreadForked,
)
from hitl_tui.engine.log.outcomes import Frame
from hitl_tui.engine.log.records import END, ROLLBACK, Checkpoint, LedgerEntry
from hitl_tui.engine.log.repeats import Repeats
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.errors import UnknownThread
from hitl_tui.view.actions import Situation
from hitl_tui.view.format import limit_line, price_line, writer
from hitl_tui.view.notes import notes_on
from hitl_tui.view.run_view import (
    InsidePlace,
    RunView,
    StreamView,
    add_older,
    fold,
    is_gap,
    open_view,
    past_stream,
    place_inside,
)
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Span
from hitl_tui.view.step_view import StepView, head_step, past_step
from hitl_tui.view.taint import taint_warning
from hitl_tui.view.timeline import Place

_KEPT: Final = 3


class Memo:
    """Caches results by the identity of channel values, which never change."""

    def __init__(self) -> None:
        self._made: list[tuple[str, tuple[object, ...], Any]] = []

    def find(self, what: str, of: tuple[object, ...]) -> Any:
        """Return the cached result for these objects, None if there is none."""
        for name, values, result in self._made:
            if name == what and len(values) == len(of) and all(map(is_, values, of)):
                return result
        return None

    def keep(self, what: str, of: tuple[object, ...], result: Any) -> None:
        """Cache a result, and forget the oldest."""
        self._made = [(what, of, result), *self._made[: _KEPT - 1]]


K = TypeVar("K")
V = TypeVar("V")
_UPDATES_KEPT: Final = 16
_NAMES_KEPT: Final = 4_000
_ROOM: Final = 32_000_000
"""About how many bytes of values each cache holds."""
_LOOKED_AT: Final = 16
"""Number of elements from which the size of a long list or object is estimated."""
_ANY: Final = 64


class Recent(Generic[K, V]):
    """Keeps the newest entries, limited in number and, except for the newest, in size."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[K, tuple[V, int]] = {}
        self._weight = 0

    def find(self, key: K) -> V | None:
        """Return an entry, None if it is not kept."""
        entry = self._kept.get(key)
        return None if entry is None else entry[0]

    def keep(self, key: K, value: V, weight: int = 0) -> None:
        """Keep an entry, and forget the oldest ones if there are too many."""
        self._weight += weight - self._kept.pop(key, (value, 0))[1]
        while self._kept and (len(self._kept) >= self._most or self._weight > _ROOM):
            self._weight -= self._kept.pop(next(iter(self._kept)))[1]
        self._kept[key] = value, weight


class RecentSteps:
    """Caches the updates of a few steps with their values, and the changed channels' names of many more."""

    def __init__(self) -> None:
        self._updates: Recent[Place, Sequence[AppliedUpdate]] = Recent(_UPDATES_KEPT)
        self._changed: Recent[Place, frozenset[str]] = Recent(_NAMES_KEPT)

    def note(self, place: Place, updates: Sequence[AppliedUpdate]) -> None:
        """Cache the updates of a step."""
        self._updates.keep(
            place, updates, sum(weight([update.before, update.update, update.after]) for update in updates)
        )
        self.note_changed(place, frozenset(update.channel for update in updates if update.changed))

    def note_changed(self, place: Place, channels: frozenset[str]) -> None:
        """Note which channels a step changed."""
        self._changed.keep(place, channels)

    def knows(self, place: Place) -> bool:
        """Whether the channels that a step changed are known."""
        return self._changed.find(place) is not None

    def updates(self, place: Place) -> Sequence[AppliedUpdate] | None:
        """Return the updates of a step in order, None if they are not cached."""
        return self._updates.find(place)

    def left_alone(self, place: Place, channel: str) -> bool:
        """Whether a step is known to have left a channel unchanged."""
        names = self._changed.find(place)
        return names is not None and channel not in names


def weight(value: Any) -> int:
    """Estimate the bytes of a channel's value, for long ones from their first elements."""
    if isinstance(value, str):
        return _ANY + len(value)
    if not isinstance(value, list | tuple | Mapping) or not value:
        return _ANY
    parts = list(islice(value.values() if isinstance(value, Mapping) else value, _LOOKED_AT))
    return _ANY + sum(map(weight, parts)) * len(value) // len(parts)


_PAST_STEPS_KEPT = 64
_TENTH: Final = 0.1
_IN_TENTHS: Final = 60_000_000
"""Microseconds below which durations are shown with tenths of a second."""
_IN_SECONDS: Final = 3_600_000_000
"""Microseconds below which deadlines are shown with seconds."""
_STEPS_LOOKED_AT = 200
_STEPS_ASKED_ABOUT = 20
_event_of = attrgetter("event")


class Versions(msgspec.Struct, frozen=True):
    """The newest versions of a channel: checkpoint, writer and value, newest first.

    Args:
        since: the oldest step that was searched for versions; 0 if all steps were.
    """

    found: tuple[tuple[Checkpoint, str, Any], ...]
    since: int


class Revealed(msgspec.Struct, frozen=True):
    """A private value that a person has revealed."""

    channel: str
    step: int
    value: Any


class ViewSession:
    """One thread on screen.

    `shown` is the place that all panes show, None for the head. `step_view` is its contents; after a move
    it is the previous step's until `load_shown` has fetched the new one. `breakpoints` are those of its
    graph, `hits` the number of hits of each, by its text.
    """

    def __init__(self, hub: Hub, driver: Driver, view: RunView) -> None:
        self.hub = hub
        self.driver = driver
        self.view = view
        self.family: tuple[Relative, ...] = ()
        self.family_stale = True
        self.shown: Place | None = None
        self.step_view: StepView = head_step(view)
        self.pausing = False
        self.breakpoints: tuple[Breakpoint, ...] = ()
        self.hits: dict[str, int] = {}
        self.revealed: Revealed | None = None
        self._code: tuple[GraphInfo, dict[str, tuple[Frame, ...]]] = (view.graph, {})
        self.has_news = False
        """Whether something has happened that is not on screen yet."""
        self.alerts: list[str] = []
        self.retry: Repeats | None = None
        """What a retry would repeat, once that is known; None for nothing."""
        """Notes on limits that are still to be shown."""
        self.limit_notes: set[str] = set()
        """Notes on limits that are pointless once the thread is done."""
        self.deadline_passed = False
        """Whether a deadline has answered and the run has not continued yet."""
        self._past: Recent[Place, StepView] = Recent(_PAST_STEPS_KEPT)
        self.made = Memo()
        self.read: Sequence[str] = ()
        """The lines of the value that was last shown as text."""
        self._recent = RecentSteps()
        self._past_stream: tuple[Checkpoint, StreamView] | None = None
        self._ticket = 0

    @classmethod
    async def open(cls, hub: Hub, driver: Driver) -> ViewSession:
        """Create a session on a driver, from its snapshot."""
        return cls(hub, driver, open_view(await driver.snapshot()))

    @property
    def thread_id(self) -> str:
        """The id of the open thread."""
        return self.driver.thread_id

    @property
    def thread_key(self) -> ThreadKey:
        """The source of the open thread, and its id: unique among all sources of the inbox."""
        return self.hub.source, self.thread_id

    @property
    def is_past(self) -> bool:
        """Whether the panes show a past step."""
        return self.shown is not None

    @property
    def running(self) -> bool:
        """Whether a run or a step is in progress."""
        return self.view.progress.status == "running"

    @property
    def request(self) -> Request | None:
        """The first waiting request at the head."""
        progress = self.view.progress
        return progress.pending[0] if progress.pending and progress.status == "waiting" else None

    @property
    def requests(self) -> tuple[Request, ...]:
        """All requests at the head that need a decision, in order."""
        progress = self.view.progress
        waiting = progress.pending if progress.status == "waiting" else ()
        return tuple(request for request in waiting if not request.breakpoint)

    def clock(self, now: int) -> float | None:
        """Return the seconds until a clock on screen must be updated, None if no clock runs.

        `now` is in microseconds since the epoch.

        Args:
            now: microseconds since the epoch.
        """
        since, request = self.view.running_since, self.request
        if self.running and since is not None:
            return _TENTH if self.view.progress.active + now - since < _IN_TENTHS else 1.0
        if request is not None and request.deadline is not None:
            return 1.0 if request.deadline - now < _IN_SECONDS else 60.0
        return None

    @property
    def situation(self) -> Situation:
        """Return the facts that decide which actions are enabled."""
        request = self.request
        return Situation(
            open=True,
            status=self.view.progress.status,
            running=self.running,
            elsewhere=bool(self.view.held_by),
            deciding=request is not None,
            breakpoint=request is not None and request.breakpoint,
            past=self.is_past,
            has_steps=bool(self.view.checkpoints),
            limited=self.view.progress.reason == "limit",
            undoing=self.view.progress.position == ROLLBACK,
            inside=self.inside() is not None,
            no_agents=self.hub.no_agents,
            no_items=self.hub.no_items,
            no_workers=self.hub.no_workers,
            closed=self.view.graph.why_closed(self.view.progress.next_node or ""),
            started_children=bool(self.view.owners),
            frames=bool(self.frames[1]),
            refusals=self.refusals,
        )

    @property
    def notes(self) -> tuple[LedgerEntry, ...]:
        """The notes of people on the shown step; only those of the open thread are known."""
        thread_id, step = self.shown or (self.thread_id, self.step_view.step)
        if thread_id != self.thread_id:
            return ()
        of = self.view.ledger, self.step_view
        found: tuple[LedgerEntry, ...] | None = self.made.find("notes", of)
        if found is None:
            found = notes_on(self.view.ledger, step)
            self.made.keep("notes", of, found)
        return found

    @property
    def frames(self) -> tuple[str, tuple[Frame, ...]]:
        """The place in the user's code where the newest step failed or stopped: a title and the frames.

        Either the node failed there, or a breakpoint stopped after it.
        """
        if self.is_past:
            return "", ()
        if self.view.error is not None:
            return f"Where {self.view.error.node} failed", self.view.error.frames
        node, frames = self.view.returned
        return f"Where {node} returned", frames

    @property
    def node_at_hand(self) -> str:
        """The node that the shown step is about: the one that made it; at the head the next or failed one."""
        point, view = self.step_view.checkpoint, self.view
        if self.is_past and point is not None:
            return point.node or point.next_node or ""
        if view.error is not None:
            return view.error.node
        if self.request is not None and self.request.node:
            return self.request.node
        made = (point.node for point in reversed(view.checkpoints))
        return next((name for name in (view.progress.next_node, *made) if name and name != END), "")

    @property
    def next_reads(self) -> tuple[str, ...]:
        """The channels that the current node is about to read, ("*",) for all; () if none is about to run."""
        node, point = self.view.graph.node(self.node_at_hand), self.step_view.checkpoint
        is_next = self.view.progress.next_node == self.node_at_hand
        if self.is_past and point is not None:  # the node has already run there
            is_next = not point.node
        return node.reads if node is not None and is_next else ()

    async def code(self, node: str) -> tuple[Frame, ...]:
        """Return a node's functions as they were in their files when first read; see `Driver.code`."""
        graph = self.view.graph
        if self._code[0] is not graph:
            self._code = graph, {}
        known = self._code[1]
        if node not in known and self.view.graph_changed is None and (frames := await self.driver.code(node)):
            known[node] = frames
        return known.get(node, ())

    def inside(self, node: str = "") -> InsidePlace | None:
        """Return what can be opened inside the shown step, or inside the newest run of a node."""
        return place_inside(self.view, self.step_view.checkpoint if self.is_past else None, node)

    @property
    def refusals(self) -> Mapping[str, str]:
        """Why commands can't be carried out now, by verb.

        A thread that another process runs can be viewed, paused and forked.
        """
        refusals, holder = self.view.refusals, self.view.held_by
        if not holder:
            return refusals
        why = f"{sanitise_line(holder, 60)} runs this thread; you can view, pause or fork it"
        return {**refusals, **{verb(kind): why for kind in COMMANDS if not kind.while_held}}

    async def drain(self) -> bool:
        """Fold all new events; returns whether there were any."""
        events = self.driver.events(self.view.last_event)
        if not events:
            return False
        if is_gap(self.view, events):
            self.view = open_view(await self.driver.snapshot())
            self.family_stale = True
        else:
            self.view = fold(self.view, events)
        self.has_news = True
        self._note(events)
        if self.shown is None and self._concerns_step(events):
            self.step_view = head_step(self.view)
        return True

    def _note(self, events: Sequence[Stamped]) -> None:
        steps: list[StepCommitted] = []
        for event in map(_event_of, events):
            if type(event) is StepCommitted:
                steps.append(event)
            elif type(event) is not NodeStarted:  # nearly all events are of these two kinds
                self._note_other(event)
        if steps:
            self.family_stale = True
            self._note_steps(steps)

    def _note_steps(self, steps: Sequence[StepCommitted]) -> None:
        """Keep only the part of a fast run that is shown."""
        values_from = len(steps) - _UPDATES_KEPT
        for index, step in enumerate(steps[-_STEPS_LOOKED_AT:], max(0, len(steps) - _STEPS_LOOKED_AT)):
            place = (self.thread_id, step.checkpoint.step)
            if index >= values_from:
                self._recent.note(place, step.updates)
            else:
                self._recent.note_changed(place, step.outcome.changed)

    def _note_other(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.pausing = False
            case RunEnded(progress=ended):
                self.pausing = False
                if ended.status in ("completed", "cancelled"):
                    self.alerts = [text for text in self.alerts if text not in self.limit_notes]
            case LedgerWritten(entry=entry) if entry.kind == "timeout":
                self.deadline_passed = True
            case LimitNear() as alert:
                self.alerts.append(limit_line(alert))
                self.limit_notes.add(self.alerts[-1])
            case PriceUnknown() as unknown:
                self.alerts.append(price_line(unknown))
            case BreakpointHit():
                self.hits[event.breakpoint] = event.hits
            case TaintRead() as warned:
                self.alerts.append(taint_warning(warned))
            case ThreadForked():
                self.family_stale = True

    @staticmethod
    def _concerns_step(events: Sequence[Stamped]) -> bool:
        return len(events) > 500 or any(
            isinstance(stamped.event, StepCommitted | NodeStarted | RunEnded | LedgerWritten)
            for stamped in events
        )

    async def driver_of(self, thread_id: str) -> Driver:
        """Return the driver of a thread: this session's own, or another one of the hub."""
        return self.driver if thread_id == self.thread_id else await self.hub.open(thread_id)

    async def refresh_family(self) -> bool:
        """Fetch the relatives for the timeline; returns whether they have changed."""
        self.family_stale = False
        family = await self.driver.family()
        if family == self.family:
            return False
        self.family = family
        return True

    @property
    def stream(self) -> StreamView:
        """The output of the newest node, or what the shown past step has written.

        For a thread that was just opened, the newest step's text comes from its record.
        """
        point = self.step_view.checkpoint
        view = self.view
        if not self.is_past and (view.stream.serial or view.running_node or not (point and point.streamed)):
            return view.stream
        if point is None:
            return view.stream
        if self._past_stream is None or self._past_stream[0] is not point:
            self._past_stream = point, past_stream(point)
        return self._past_stream[1]

    def find(self, place: Place) -> Checkpoint | None:
        """Return the checkpoint at a place in the timeline, None if it isn't loaded."""
        thread_id, step = place
        if thread_id == self.thread_id:
            return self.view.checkpoint(step)
        for relative in self.family:
            if relative.thread_id == thread_id:
                return next((point for point in relative.checkpoints if point.step == step), None)
        return None

    def points_of(self, thread_id: str) -> Sequence[Checkpoint]:
        """Return the loaded checkpoints of a thread of the family, oldest first."""
        if thread_id == self.thread_id:
            return self.view.checkpoints
        checkpoints = (relative.checkpoints for relative in self.family if relative.thread_id == thread_id)
        return next(checkpoints, ())

    @property
    def other_draft(self) -> Place | None:
        """The parent's step that the fork's first step replaces, if that first step is shown."""
        view, head = self.view, self.view.head
        if head is None or view.parent is None or self.is_past or head.step != view.fork_step + 1:
            return None
        place = (view.parent, head.step)
        return place if self.find(place) else None

    def free_name(self, thread_id: str) -> str:
        """Return an unused name for a fork of a thread."""
        from hitl_tui.view.family import free_name

        forks = (child for child, _ in self.view.forks)
        return free_name(thread_id, {self.thread_id, *forks, *(each.thread_id for each in self.family)})

    async def parents_end(self) -> Place | None:
        """The newest step of the thread that this one was forked from; None if it is no fork."""
        parent = self.view.parent
        if parent is None:
            return None
        try:
            head = (await (await self.driver_of(parent)).snapshot()).progress.head
        except UnknownThread:  # the thread was imported, or its parent was deleted
            return None
        return parent, head

    def move_to(self, place: Place | None) -> None:
        """Choose what to show; `load_shown` fetches it."""
        head = self.view.head
        at_head = place is not None and head is not None and place == (self.thread_id, head.step)
        self.shown = None if at_head else place
        self._ticket += 1
        if self.shown is None:
            self.step_view = head_step(self.view)
        elif (seen := self._past.find(self.shown)) is not None:
            self.step_view = seen

    async def load_shown(self) -> bool:
        """Fetch the shown step; False if the user has moved meanwhile, which makes the result stale."""
        place, ticket = self.shown, self._ticket
        if place is None or self._past.find(place) is not None:
            return True
        thread_id, step = place
        driver = await self.driver_of(thread_id)
        values = await driver.state_at(step)
        updates = (await driver.updates(step, step))[step]
        if ticket != self._ticket:
            return False
        checkpoint, following = self.find(place), None
        if checkpoint is None:
            page = {point.step: point for point in await driver.history(before=step + 2, limit=2)}
            checkpoint, following = page.get(step), page.get(step + 1)
        visits = None if self._counts_all(thread_id) else await driver.visits(step)
        if checkpoint is None or ticket != self._ticket:
            return False
        shown = past_step(self.view, checkpoint, values, updates, own=thread_id == self.thread_id)
        self.step_view = replace(shown, visits=visits, following=following)
        self._past.keep(place, self.step_view, sum(map(weight, values.values())))
        return True

    def _counts_all(self, thread_id: str) -> bool:
        """Whether all steps of a thread are loaded, so that its nodes can be counted."""
        points = self.view.checkpoints
        return thread_id == self.thread_id and bool(points) and points[0].step == 0

    async def load_older(self, limit: int = 200) -> bool:
        """Fetch the page of checkpoints before the oldest loaded one; False if there is none."""
        oldest = self.view.checkpoints[0].step if self.view.checkpoints else None
        if oldest in (None, 0):
            return False
        page = await self.driver.history(before=oldest, limit=limit)
        if page:
            self.view = add_older(self.view, page)
        return bool(page)

    async def change_beside(self, channel: str, by: Literal[-1, 1]) -> Place | None:
        """Return the nearest earlier or later step that changed a channel; None if there is none."""
        thread_id = self.shown[0] if self.shown else self.thread_id
        driver, step = await self.driver_of(thread_id), self.step_view.step
        newest = await driver.history(limit=1)
        head = newest[0].step if newest else -1
        start = step + by
        while 0 <= start <= head:
            end = min(max(start + by * (_STEPS_AT_ONCE - 1), 0), head)
            written = await driver.written(min(start, end), max(start, end))
            for at in range(start, end + by, by):
                if written[at].get(channel):
                    return thread_id, at
            start = end + by
        return None

    async def versions(self, channel: str, step: int, limit: int) -> Versions:
        """Return the newest versions of a channel up to a step of the shown thread.

        Only a limited number of steps is searched, so the cost does not grow with the thread.
        """
        driver, points = await self._line(step)
        newest: list[tuple[Checkpoint, str, Any]] = []
        looked_at = 0
        for index, point in enumerate(points):
            place, looked_at = (driver.thread_id, point.step), point.step
            if not self._recent.knows(place):
                first = points[index : index + _STEPS_ASKED_ABOUT][-1].step
                for at, written in (await driver.written(first, point.step)).items():
                    names = frozenset(name for name, changed in written.items() if changed)
                    self._recent.note_changed((driver.thread_id, at), names)
            if self._recent.left_alone(place, channel):
                continue
            for update in reversed(await self._updates(driver, point.step)):
                if update.channel == channel and update.changed:
                    newest.append((point, update.actor or point.node or writer(point), update.after))
                    break
            if len(newest) >= limit:
                break
        return Versions(tuple(newest), looked_at)

    async def changes_before(self, step: int, limit: int) -> tuple[tuple[Checkpoint, tuple[Line, ...]], ...]:
        """Return the steps before one of the shown thread, newest first, each with its lens."""
        from hitl_tui.view.branches import branch_lens

        driver, points = await self._line(step - 1)
        return tuple(
            [
                (point, branch_lens(await self._updates(driver, point.step), point.branches))
                for point in points[:limit]
            ]
        )

    async def streams_before(self, step: int, limit: int) -> tuple[tuple[Checkpoint, str], ...]:
        """Return the steps before one that have output, newest first, with the raw text."""
        _, points = await self._line(step - 1)
        spoke = islice((point for point in points if point.streamed), limit)
        return tuple((point, past_stream(point).text) for point in spoke)

    async def _updates(self, driver: Driver, step: int) -> Sequence[AppliedUpdate]:
        """Return the updates of a step, fetched if they are not cached."""
        place = (driver.thread_id, step)
        updates = self._recent.updates(place)
        if updates is None:
            updates = (await driver.updates(step, step))[step]
            self._recent.note(place, updates)
        return updates

    async def changed_since(self, step: int) -> tuple[Line, ...]:
        """Return the changes since a step, channel by channel; () if there are none."""
        from hitl_tui.view.diff_lines import changed_rows, diff_lines

        await self.drain()
        rows = await changed_rows(self.driver, step, self.view.progress.head)
        if all(row.change in ("same", "private") for row in rows):
            return ()
        return (Span(f"Changed since step {step}", "title"),), *diff_lines(rows)

    async def _line(self, step: int) -> tuple[Driver, Sequence[Checkpoint]]:
        """Return the driver of the shown thread and its checkpoints up to a step, newest first."""
        thread_id = self.shown[0] if self.shown else self.thread_id
        if thread_id != self.thread_id:
            driver = await self.hub.open(thread_id)
            return driver, await driver.history(before=step + 1, limit=_STEPS_LOOKED_AT)
        points = self.view.checkpoints
        end = bisect_right(points, step, key=lambda point: point.step)
        line: Sequence[Checkpoint] = points[max(0, end - _STEPS_LOOKED_AT) : end][::-1]
        oldest = line[-1].step if line else step + 1
        if len(line) < _STEPS_LOOKED_AT and oldest > 0:
            line = (*line, *await self.driver.history(before=oldest, limit=_STEPS_LOOKED_AT - len(line)))
        return self.driver, line


_STEPS_AT_ONCE: Final = 1_000
FRAME: Final = 1 / 32
"""Least seconds between two paints caused by events; shorter than 1/30 because some frames are empty."""
_SHARE: Final = 0.3
_LONGEST: Final = 0.25
_FAST: Final = 200
"""Steps per second that are too fast to follow one by one."""
_SHARE_OF_FAST: Final = 0.03
_LONGEST_OF_FAST: Final = 1 / 2


class PaintPace:
    """Decides when the next batch of events may be taken, so that painting uses a fixed share of the time.

    A key has to wait while a batch is folded and painted, so expensive paints happen less often, but at
    least four times a second. A run that is too fast to follow gets most of the time and is painted at
    least twice a second. Times are in seconds; `cpu` is the processor time of the painting thread,
    which other threads and processes do not lengthen.
    """

    def __init__(self) -> None:
        self._taken_at = self._due = -math.inf
        self._cpu_then = 0.0
        self._share, self._longest = _SHARE, _LONGEST

    def rest(self, now: float, cpu: float) -> float:
        """Return the seconds to wait until the last batch is paid for, 0 if it is."""
        cost = cpu - self._cpu_then
        pause = max(min(cost / self._share, self._longest), FRAME)
        self._due = self._taken_at + pause
        return max(self._due - now, 0.0)

    def take(self, now: float, cpu: float, steps: int) -> None:
        """Note that a batch with a number of steps was taken."""
        fast = steps > _FAST * (now - self._taken_at)
        self._share = _SHARE_OF_FAST if fast else _SHARE
        self._longest = _LONGEST_OF_FAST if fast else _LONGEST
        # If a wait was too long, the next one is shorter by as much, so that frames keep their pace.
        self._taken_at = self._due if 0 <= now - self._due < FRAME / 2 else now
        self._cpu_then = cpu
