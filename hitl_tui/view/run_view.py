"""The state of a run's screen: a pure fold of a thread's events, without I/O or a clock."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from hitl_tui.drivers.protocol import Snapshot, Stamped
from hitl_tui.engine.graph.description import GraphInfo
from hitl_tui.engine.log import events as ev
from hitl_tui.engine.log.events import AppliedUpdate, Progress
from hitl_tui.engine.log.outcomes import ErrorInfo, Frame
from hitl_tui.engine.log.records import Checkpoint, LedgerEntry
from hitl_tui.engine.log.repeats import Repeats
from hitl_tui.engine.log.threads import Owner, Presence, takeover_notice
from hitl_tui.view.inside import EMPTY, InsideFold, InsideView, inside_at_start, tool_line
from hitl_tui.view.sanitise import sanitise_line

STREAM_TAIL: Final = 64 * 1024


_MOST_LINES = 50


class StreamView(msgspec.Struct, frozen=True):
    """The output of a node's newest attempt.

    `text` is the raw tail of what was streamed (sanitise it before showing it). `length` counts all of it,
    so a screen can append what is new; `serial` is the number of the event that began it.
    """

    serial: int = 0
    node: str = ""
    agent: str = ""
    model: str = ""
    text: str = ""
    length: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    calls: int = 0
    started: int | None = None
    duration: int | None = None
    live: bool = False


def with_text(stream: StreamView, event: ev.TextStreamed) -> tuple[StreamView, str]:
    """Return the stream after a piece of text; the text itself is passed separately."""
    text = event.text
    if stream.agent != event.agent:
        # Otherwise the texts of two agents of one node would run together.
        text = f"\n{text}" if stream.length and stream.agent else text
        stream = replace(stream, agent=event.agent)
    return replace(stream, node=event.node, length=stream.length + len(text)), text


def with_line(stream: StreamView, event: ev.ToolCalled, line: str) -> tuple[StreamView, str]:
    """Return the stream with a separate line inserted between two texts of the agent."""
    line = f"\n{line}\n" if stream.length and stream.agent else f"{line}\n"
    return replace(stream, node=event.node, agent=event.agent, length=stream.length + len(line)), line


def past_stream(checkpoint: Checkpoint) -> StreamView:
    """Return what a committed step printed and streamed, as far as recorded."""
    pieces: list[str] = []
    many = len(checkpoint.streamed) > 1
    for said in checkpoint.streamed:
        who = " ".join(filter(None, (said.agent, said.path)))
        attempt = f"attempt {said.attempt}" if said.attempt != checkpoint.attempt else ""
        about = ", ".join(filter(None, (who, attempt)))
        pieces.append(f"{about}:\n" if about and many else "")
        gap = f"\n… {said.left_out:,} characters were not kept …\n" if said.left_out else ""
        text = f"{said.text}{gap}{said.end}"
        pieces.append(text if text.endswith("\n") else f"{text}\n")
    text = "".join(pieces)
    agents = {said.agent for said in checkpoint.streamed}
    return StreamView(
        serial=-1 - checkpoint.step,
        node=checkpoint.node or checkpoint.source,
        agent=agents.pop() if len(agents) == 1 else "",
        model=checkpoint.uses[-1].model if checkpoint.uses else "",
        text=text,
        length=len(text),
        tokens_in=checkpoint.tokens_in,
        tokens_out=checkpoint.tokens_out,
        cost=checkpoint.cost,
        calls=len(checkpoint.uses),
        duration=checkpoint.duration,
    )


def with_call(stream: StreamView, event: ev.ModelCalled) -> StreamView:
    """Return the stream with a model call's use added."""
    known = event.cost is not None and (stream.cost is not None or not stream.calls)
    return replace(
        stream,
        agent=(event.agent or stream.agent) if not event.path else "",
        model=event.model,
        tokens_in=stream.tokens_in + event.tokens_in,
        tokens_out=stream.tokens_out + event.tokens_out,
        cost=(stream.cost or 0.0) + (event.cost or 0.0) if known else None,
        calls=stream.calls + 1,
    )


LEDGER_WINDOW = 2_000


class RetryNotice(msgspec.Struct, frozen=True):
    """A failed attempt that is retried after `wait` seconds."""

    node: str
    attempt: int
    max_attempts: int
    wait: float
    error: str

    @property
    def why(self) -> str:
        """The error without the node and attempt, which are shown beside it."""
        return self.error.removeprefix(f"node {self.node!r}, attempt {self.attempt}: ")


class RunView(msgspec.Struct, frozen=True):
    """One thread as shown; its texts are raw, and sanitised when lines are made of them.

    Args:
        values: channel values at the head; private ones are PRIVATE.
        checkpoints: the newest ones, oldest first; `add_older` adds older ones in front.
        branched: those with branches; in a long thread few have any, and each paint reads them.
        head_updates: the updates of the newest step.
        running_node: the running node, None between nodes.
        running_since: when it started, microseconds.
        running_attempt: the number of its attempt, 0 if none is running.
        error: why the thread failed.
        notice: what was noticed when the thread was opened.
        dropped: what was stopped and not committed, as text; "" for nothing.
        forks: (child, step) of forks made since the view was opened.
        held_by: who runs the thread in another process, "" for nobody.
        attending: who has its requests open elsewhere, or has claimed them.
        graph_changed: how the graph differs since its file was saved, None if it wasn't saved.
        repeats: which steps are kept under the saved file, and what would run again after them.
        owners: for a subgraph's thread: the threads it runs for, outermost first.
        inside: what happens, or last happened, inside a map, a parallel or a subgraph.
        returned: the node after which a breakpoint stopped, and where it returned.
        logged: the newest lines written by breakpoints since the view was opened.
        source: the thread's record of where its graph came from, "" if it has none.
        signing_key: what signs decisions made here, "" for nothing.
    """

    thread_id: str
    graph: GraphInfo
    refusals: Mapping[str, str]
    parent: str | None
    fork_step: int
    progress: Progress
    values: Mapping[str, Any]
    checkpoints: tuple[Checkpoint, ...]
    branched: tuple[Checkpoint, ...]
    head_updates: tuple[AppliedUpdate, ...]
    stream: StreamView
    ledger: tuple[LedgerEntry, ...]
    running_node: str | None = None
    running_since: int | None = None
    running_attempt: int = 0
    retry: RetryNotice | None = None
    error: ErrorInfo | None = None
    notice: str = ""
    dropped: str = ""
    forks: tuple[tuple[str, int], ...] = ()
    held_by: str = ""
    attending: tuple[Presence, ...] = ()
    graph_changed: tuple[str, ...] | None = None
    repeats: Repeats | None = None
    owners: tuple[Owner, ...] = ()
    inside: InsideView = EMPTY
    signing_key: str = ""
    source: str = ""
    logged: tuple[str, ...] = ()
    returned: tuple[str, tuple[Frame, ...]] = ("", ())
    last_event: int = 0

    @property
    def head(self) -> Checkpoint | None:
        """The newest checkpoint."""
        return self.checkpoints[-1] if self.checkpoints else None

    def checkpoint(self, step: int) -> Checkpoint | None:
        """Return the checkpoint of a step, None if it isn't loaded."""
        return find_step(self.checkpoints, step)

    @property
    def state_hash(self) -> bytes:
        """The hash of the newest state, to send with a decision about it; b"" before the first step."""
        newest = self.checkpoint(self.progress.head)
        return newest.state_hash if newest else b""


_step_of = attrgetter("step")
_checkpoint_of = attrgetter("checkpoint")
_branches_of = attrgetter("branches")


def find_step(checkpoints: Sequence[Checkpoint], step: int) -> Checkpoint | None:
    """Return the checkpoint of a step from a sequence sorted by step."""
    at = bisect_left(checkpoints, step, key=_step_of)
    return checkpoints[at] if at < len(checkpoints) and checkpoints[at].step == step else None


def open_view(snapshot: Snapshot) -> RunView:
    """Return the initial view of a screen."""
    progress, unfinished = snapshot.progress, snapshot.unfinished
    running = progress.next_node if progress.status == "running" else None
    members = snapshot.graph.members_of(unfinished.node) if unfinished else ()
    return RunView(
        thread_id=snapshot.thread_id,
        graph=snapshot.graph,
        refusals=snapshot.refusals,
        parent=snapshot.parent,
        fork_step=snapshot.fork_step,
        progress=snapshot.progress,
        values=snapshot.values,
        checkpoints=snapshot.checkpoints,
        branched=_with_branches(snapshot.checkpoints),
        head_updates=snapshot.updates,
        stream=StreamView(node=running or "", live=running is not None),
        running_node=running,
        ledger=snapshot.ledger[-LEDGER_WINDOW:],
        error=snapshot.progress.error,
        notice=snapshot.notice,
        held_by=snapshot.held_by,
        attending=snapshot.attending,
        graph_changed=snapshot.graph_changed,
        repeats=snapshot.repeats,
        owners=snapshot.owners,
        inside=inside_at_start(unfinished, progress.pending, members),
        signing_key=snapshot.signing_key,
        source=snapshot.source,
        last_event=snapshot.last_event,
    )


def add_older(view: RunView, checkpoints: Iterable[Checkpoint]) -> RunView:
    """Return the view with an older page of checkpoints, in any order."""
    first = view.checkpoints[0].step if view.checkpoints else view.progress.head + 1
    older = sorted((point for point in checkpoints if point.step < first), key=_step_of)
    if not older:
        return view
    return replace(
        view,
        checkpoints=(*older, *view.checkpoints),
        branched=(*_with_branches(older), *view.branched),
    )


def _with_branches(checkpoints: Iterable[Checkpoint]) -> tuple[Checkpoint, ...]:
    return tuple(filter(_branches_of, checkpoints))


CHECKPOINT_WINDOW = 20_000


def fold(view: RunView, events: Iterable[Stamped]) -> RunView:
    """Return the view after a batch of events; it does not depend on how events are batched.

    Events with a number up to `view.last_event` are skipped.  A gap in the numbers means that a
    new snapshot is needed: see `is_gap`.
    """
    builder = _Builder(view)
    new = [stamped for stamped in events if stamped.number > view.last_event]
    for quick, group in groupby(new, lambda stamped: type(stamped.event) in _OF_QUICK_STEPS):
        part = list(group)
        if quick:
            part = _pass_over(builder, part)
        for stamped in part:
            builder.last_event = stamped.number
            apply = _APPLY.get(type(stamped.event))
            if apply:  # other events, such as those of branches, don't change this view
                apply(builder, stamped.event)
    return builder.build() if new else view


_OF_QUICK_STEPS: Final = frozenset({ev.NodeStarted, ev.StepCommitted})
_NEWEST: Final = 3


def _pass_over(builder: _Builder, events: list[Stamped]) -> list[Stamped]:
    """Yield the events to fold: of consecutive steps, only those of the newest.

    The checkpoints and values of the others are noted without folding.
    """
    last = events[-_NEWEST:]
    if builder.composed or len({type(each.event) for each in last}) < len(_OF_QUICK_STEPS):
        return events
    steps = [each.event for each in events[:-_NEWEST] if type(each.event) is ev.StepCommitted]
    builder.pass_over(steps)
    return last


def is_gap(view: RunView, events: Sequence[Stamped]) -> bool:
    """True if events were lost before this batch, so that only a new snapshot helps."""
    return bool(events) and events[0].number > view.last_event + 1


class _Builder:
    """The mutable parts of the view while a batch is folded."""

    def __init__(self, view: RunView) -> None:
        self.view = view
        self.last_event = view.last_event
        self._progress = view.progress
        self._error = view.error
        self._newest: ev.StepCommitted | None = None
        self._unread: ev.StepCommitted | None = None
        self.values: dict[str, Any] | None = None
        self.checkpoints: list[Checkpoint] = []
        self.ledger: list[LedgerEntry] = []
        self.running: _Running | ev.NodeStarted = _Running(
            view.running_node, view.running_since, view.running_attempt
        )
        self.retry = view.retry
        self.notice = view.notice
        self.dropped = view.dropped
        self.forks: list[tuple[str, int]] = []
        self.held_by = view.held_by
        self.attending = view.attending
        self.graph_changed = view.graph_changed
        self.repeats = view.repeats
        self.live = view.stream.live
        self.duration = view.stream.duration
        self.pieces: list[str] = []
        self.logged: list[str] = []
        self.returned = view.returned
        self.composed = {node.name for node in view.graph.nodes if node.kind != "node"}
        self._stream = view.stream
        self._begun: tuple[int, ev.NodeStarted] | None = None
        self._inside: InsideFold | None = None

    def commit(self, event: ev.StepCommitted) -> None:
        """Commit a step; the thread's position matters only after the newest step of a batch."""
        self.pass_over([event])
        self._newest = self._unread = event

    def pass_over(self, steps: Sequence[ev.StepCommitted]) -> None:
        """Note steps that were committed before the newest one."""
        if self.values is None:
            self.values = dict(self.view.values)
        for step in steps:
            self.values.update(step.outcome.written)
        self.checkpoints += map(_checkpoint_of, steps)

    def _read(self) -> None:
        if self._unread is not None:
            self._progress = self._unread.progress
            self._error = self._progress.error
            self._unread = None

    @property
    def progress(self) -> Progress:
        """The thread's progress."""
        self._read()
        return self._progress

    @progress.setter
    def progress(self, progress: Progress) -> None:
        self._read()
        self._progress = progress

    @property
    def error(self) -> ErrorInfo | None:
        """Why the thread failed."""
        self._read()
        return self._error

    @error.setter
    def error(self, error: ErrorInfo | None) -> None:
        self._read()
        self._error = error

    @property
    def stream(self) -> StreamView:
        """The stream, computed on access: most nodes in a batch need none."""
        if self._begun is not None:
            serial, event = self._begun
            self._begun = None
            self._stream = StreamView(serial=serial, node=event.node, started=event.at, live=True)
        return self._stream

    @stream.setter
    def stream(self, stream: StreamView) -> None:
        self._stream = stream

    def begin(self, event: ev.NodeStarted) -> None:
        """Start a node with a new stream."""
        self.running = event
        self.retry = None
        self.pieces.clear()
        self._begun = self.last_event, event
        self.live, self.duration = True, None

    @property
    def touched_inside(self) -> bool:
        """Whether this batch has events inside a node."""
        return self._inside is not None

    @property
    def inside(self) -> InsideFold:
        """The inside of the node, unpacked on access because a batch may change it."""
        if self._inside is None:
            self._inside = InsideFold(self.view.inside)
        return self._inside

    def build(self) -> RunView:
        self.flush_stream()
        view = self.view
        checkpoints = self._newest_checkpoints()
        return replace(
            view,
            last_event=self.last_event,
            progress=self.progress,
            values=view.values if self.values is None else self.values,
            checkpoints=checkpoints,
            branched=self._newest_branched(checkpoints),
            ledger=(*view.ledger, *self.ledger)[-LEDGER_WINDOW:] if self.ledger else view.ledger,
            head_updates=view.head_updates if self._newest is None else self._newest.updates,
            running_node=self.running.node,
            running_since=self.running.at,
            running_attempt=self.running.attempt,
            retry=self.retry,
            error=self.error,
            notice=self.notice,
            dropped=self.dropped,
            forks=(*view.forks, *self.forks) if self.forks else view.forks,
            held_by=self.held_by,
            attending=self.attending,
            graph_changed=self.graph_changed,
            repeats=self.repeats,
            stream=self.stream,
            returned=self.returned,
            logged=(*view.logged, *self.logged)[-_MOST_LINES:] if self.logged else view.logged,
            inside=view.inside if self._inside is None else self._inside.build(),
        )

    def _newest_checkpoints(self) -> tuple[Checkpoint, ...]:
        if not self.checkpoints:
            return self.view.checkpoints
        # Older pages that a person loaded are kept.
        keep = max(CHECKPOINT_WINDOW, len(self.view.checkpoints))
        return (*self.view.checkpoints, *self.checkpoints)[-keep:]

    def _newest_branched(self, checkpoints: Sequence[Checkpoint]) -> tuple[Checkpoint, ...]:
        branched = (*self.view.branched, *_with_branches(self.checkpoints))
        return branched[bisect_left(branched, checkpoints[0].step, key=_step_of) :] if branched else ()

    def flush_stream(self) -> None:
        stream = self.stream
        text = "".join((stream.text, *self.pieces))[-STREAM_TAIL:] if self.pieces else stream.text
        if (text, self.live, self.duration) != (stream.text, stream.live, stream.duration):
            self.stream = replace(stream, text=text, live=self.live, duration=self.duration)

    def stop(self) -> None:
        """Note that no node is running."""
        self.running = _IDLE
        self.retry = None
        self.live = False
        if self.view.inside.live or self.touched_inside:
            self.inside.end()


class _Running(msgspec.Struct, frozen=True):
    node: str | None = None
    at: int | None = None
    attempt: int = 0


_IDLE: Final = _Running()


def _run_started(builder: _Builder, event: ev.RunStarted) -> None:
    builder.progress = event.progress
    builder.error = event.progress.error
    builder.returned = ("", ())
    builder.notice = ""
    builder.dropped = ""


def _node_started(builder: _Builder, event: ev.NodeStarted) -> None:
    builder.begin(event)
    if event.node in builder.composed:
        members = builder.view.graph.members_of(event.node)
        builder.inside.begin(event.node, event.step, builder.progress.pending, members)


def _text_streamed(builder: _Builder, event: ev.TextStreamed) -> None:
    if event.path:
        builder.inside.write(event.path, event.agent, event.text)
        return
    builder.stream, text = with_text(builder.stream, event)
    builder.pieces.append(text)
    builder.retry = None


def _breakpoint_hit(builder: _Builder, event: ev.BreakpointHit) -> None:
    if event.frames:
        builder.returned = (event.node, event.frames)
    if event.line:
        builder.logged.append(event.line)


def _model_called(builder: _Builder, event: ev.ModelCalled) -> None:
    builder.stream = with_call(builder.stream, event)
    if event.path:
        builder.inside.called_model(event)
    else:
        builder.retry = None


def _tool_called(builder: _Builder, event: ev.ToolCalled) -> None:
    if event.path:
        builder.inside.called_tool(event)
        return
    builder.stream, line = with_line(builder.stream, event, tool_line(event))
    builder.pieces.append(line)
    builder.retry = None


def _node_retrying(builder: _Builder, event: ev.NodeRetrying) -> None:
    if event.path:
        builder.inside.retrying(event)
        return
    builder.retry = RetryNotice(event.node, event.attempt, event.max_attempts, event.wait, event.error)


def _step_committed(builder: _Builder, event: ev.StepCommitted) -> None:
    builder.commit(event)
    if builder.live:
        builder.duration = event.checkpoint.duration
    if event.checkpoint.branches:
        builder.inside.committed(event.checkpoint.step, event.checkpoint.branches)
    builder.stop()


def _progress_changed(builder: _Builder, event: ev.ProgressChanged) -> None:
    builder.progress = event.progress
    builder.error = event.progress.error
    if builder.view.inside.branches or builder.touched_inside:
        builder.inside.asked(event.progress.pending)
    if event.progress.status != "running":
        builder.stop()
    elif builder.held_by and builder.running.node is None:
        # What another process does between commits is unknown here; its record names its current node.
        builder.running = _Running(event.progress.next_node)


def _ledger_written(builder: _Builder, event: ev.LedgerWritten) -> None:
    builder.ledger.append(event.entry)
    if event.entry.kind == "takeover":
        builder.notice = takeover_notice(event.entry.note or "")


def _attempt_lost(builder: _Builder, event: ev.AttemptFailed | ev.AttemptDropped) -> None:
    if isinstance(event, ev.AttemptFailed):
        builder.error = event.error
    else:
        builder.dropped = f"{event.node}, attempt {event.attempt}: {event.why}"
    builder.stop()


def _around_changed(
    builder: _Builder, event: ev.ThreadForked | ev.HolderChanged | ev.AttendanceChanged | ev.GraphChanged
) -> None:
    match event:
        case ev.ThreadForked():
            builder.forks.append((event.child, event.step))
        case ev.HolderChanged():
            builder.held_by = event.holder
        case ev.AttendanceChanged():
            builder.attending = event.attending
        case ev.GraphChanged():
            builder.graph_changed, builder.repeats = event.differences, event.repeats


def _run_ended(builder: _Builder, event: ev.RunEnded) -> None:
    builder.progress = event.progress
    builder.error = event.progress.error or (builder.error if event.progress.status == "failed" else None)
    builder.stop()


_APPLY: Final[dict[type, Callable[[_Builder, Any], None]]] = {
    ev.BranchStarted: lambda builder, event: builder.inside.started(event),
    ev.BranchEnded: lambda builder, event: builder.inside.ended(event),
    ev.BranchWaits: lambda builder, event: builder.inside.waits(event),
    ev.ChildMoved: lambda builder, event: builder.inside.moved(event),
    ev.RunStarted: _run_started,
    ev.NodeStarted: _node_started,
    ev.TextStreamed: _text_streamed,
    ev.ModelCalled: _model_called,
    ev.ToolCalled: _tool_called,
    ev.NodeRetrying: _node_retrying,
    ev.BreakpointHit: _breakpoint_hit,
    ev.StepCommitted: _step_committed,
    ev.ProgressChanged: _progress_changed,
    ev.LedgerWritten: _ledger_written,
    ev.AttemptFailed: _attempt_lost,
    ev.AttemptDropped: _attempt_lost,
    ev.ThreadForked: _around_changed,
    ev.HolderChanged: _around_changed,
    ev.AttendanceChanged: _around_changed,
    ev.GraphChanged: _around_changed,
    ev.RunEnded: _run_ended,
}


_NAME = 60


class InsidePlace(msgspec.Struct, frozen=True):
    """A branch list or subgraph thread that can be opened at a node.

    Args:
        node: the map, parallel or subgraph.
        step: the step it is, or will be, committed as.
        thread: the thread of the subgraph's run, "" where there are branches.
        point: the committed step, None while the node runs or waits.
    """

    node: str
    step: int
    thread: str = ""
    point: Checkpoint | None = None


def place_inside(view: RunView, shown: Checkpoint | None = None, node: str = "") -> InsidePlace | None:
    """Return what can be opened inside a node, None for nothing.

    `shown` is the past step that the panes show, if they do: only it counts then. With `node`, only runs
    of this node count, newest first.
    """
    if shown is not None and not node:
        return _committed(shown)
    points = (point for point in reversed(view.branched) if node in ("", point.node))
    return _going_on(view, node) or next(map(_committed, points), None)


def _going_on(view: RunView, node: str) -> InsidePlace | None:
    """Return the inside of a node that runs or waits."""
    inside = view.inside
    if not inside.node or node not in ("", inside.node) or inside.step != view.progress.head + 1:
        return None
    if inside.child is not None:
        return InsidePlace(inside.node, inside.step, inside.child.thread_id)
    return InsidePlace(inside.node, inside.step) if inside.branches else None


def _committed(point: Checkpoint) -> InsidePlace | None:
    if not point.branches:
        return None
    thread = next((branch.thread for branch in point.branches if branch.thread), "")
    return InsidePlace(point.node, point.step, thread, point)


def crumbs(thread_id: str, owners: Sequence[Owner]) -> str:
    """Return the path to a thread, as `report › team#1 › desk#1`; sanitised."""
    names = [*(owner.thread_id for owner in owners), thread_id]
    shown = [names[0]]
    for outer, name in pairwise(names):
        # A long name is shortened in its middle, so it still differs from the name around it.
        inside = name.startswith(f"{outer}/")
        shown.append(name.removeprefix(f"{outer}/") if inside else name.rpartition("/")[2])
    return " › ".join(sanitise_line(name, _NAME) for name in shown)
