"""From events to what a run's screen shows: a pure fold, without I/O and without a clock.

A batch is folded into one builder, so that a thousand events copy the history once, not a thousand
times.  Nothing here depends on where one batch ends and the next begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hitl_tui.drivers.protocol import Stamped
from hitl_tui.engine.log import events as ev
from hitl_tui.engine.log.records import Checkpoint, LedgerEntry
from hitl_tui.engine.log.threads import takeover_notice
from hitl_tui.view.inside import Inside
from hitl_tui.view.run_view import LEDGER_WINDOW, RetryNotice, RunView
from hitl_tui.view.stream_view import STREAM_TAIL, StreamView, with_call, with_line, with_text
from hitl_tui.view.tool_line import tool_line

CHECKPOINT_WINDOW = 20_000


def fold(view: RunView, events: Iterable[Stamped]) -> RunView:
    """The view after a batch of events; the same however they are cut into batches.

    Events with a number up to `view.last_event` are skipped.  A gap in the numbers means that a
    new snapshot is needed: see `is_gap`.
    """
    builder = _Builder(view)
    for stamped in events:
        if stamped.number > builder.last_event:
            builder.last_event = stamped.number
            apply = _APPLY.get(type(stamped.event))
            if apply:  # others, as what goes on in branches, change nothing of this view
                apply(builder, stamped.event)
    return builder.build() if builder.last_event != view.last_event else view


def is_gap(view: RunView, events: Sequence[Stamped]) -> bool:
    """True if events were lost before this batch, so that only a new snapshot helps."""
    return bool(events) and events[0].number > view.last_event + 1


class _Builder:
    """The view while a batch is folded: what changes, in mutable form."""

    def __init__(self, view: RunView) -> None:
        self.view = view
        self.last_event = view.last_event
        self.progress = view.progress
        self.values: dict[str, Any] | None = None
        self.checkpoints: list[Checkpoint] = []
        self.ledger: list[LedgerEntry] = []
        self.head_updates = view.head_updates
        self.running = _Running(view.running_node, view.running_since, view.running_attempt)
        self.retry = view.retry
        self.error = view.error
        self.notice = view.notice
        self.dropped = view.dropped
        self.forks: list[tuple[str, int]] = []
        self.held_by = view.held_by
        self.graph_changed = view.graph_changed
        self.stream = view.stream
        self.pieces: list[str] = []
        self._inside: Inside | None = None

    @property
    def touched_inside(self) -> bool:
        """Whether this batch has told of what is inside a node."""
        return self._inside is not None

    @property
    def inside(self) -> Inside:
        """What is inside the node, taken out where a batch changes it."""
        if self._inside is None:
            self._inside = Inside(self.view.inside)
        return self._inside

    def build(self) -> RunView:
        self.flush_stream()
        view = self.view
        return replace(
            view,
            last_event=self.last_event,
            progress=self.progress,
            values=view.values if self.values is None else self.values,
            checkpoints=self._newest_checkpoints(),
            ledger=(*view.ledger, *self.ledger)[-LEDGER_WINDOW:] if self.ledger else view.ledger,
            head_updates=self.head_updates,
            running_node=self.running.node,
            running_since=self.running.since,
            running_attempt=self.running.attempt,
            retry=self.retry,
            error=self.error,
            notice=self.notice,
            dropped=self.dropped,
            forks=(*view.forks, *self.forks) if self.forks else view.forks,
            held_by=self.held_by,
            graph_changed=self.graph_changed,
            stream=self.stream,
            inside=view.inside if self._inside is None else self._inside.build(),
        )

    def _newest_checkpoints(self) -> tuple[Checkpoint, ...]:
        if not self.checkpoints:
            return self.view.checkpoints
        # Pages of older ones that a person asked for are not taken away again.
        keep = max(CHECKPOINT_WINDOW, len(self.view.checkpoints))
        return (*self.view.checkpoints, *self.checkpoints)[-keep:]

    def flush_stream(self) -> None:
        if self.pieces:
            text = "".join((self.stream.text, *self.pieces))
            self.stream = replace(self.stream, text=text[-STREAM_TAIL:])
            self.pieces.clear()

    def stop(self) -> None:
        """No node is in flight any more."""
        self.running = _IDLE
        self.retry = None
        if self.stream.live:
            self.stream = replace(self.stream, live=False)
        if self.view.inside.live or self.touched_inside:
            self.inside.end()


@dataclass(frozen=True, slots=True)
class _Running:
    node: str | None = None
    since: int | None = None
    attempt: int = 0


_IDLE: Final = _Running()


def _run_started(builder: _Builder, event: ev.RunStarted) -> None:
    builder.progress = event.progress
    builder.error = event.progress.error
    builder.notice = ""
    builder.dropped = ""


def _node_started(builder: _Builder, event: ev.NodeStarted) -> None:
    builder.running = _Running(event.node, event.at, event.attempt)
    builder.retry = None
    builder.pieces.clear()
    builder.stream = StreamView(serial=builder.last_event, node=event.node, started=event.at, live=True)
    graph = builder.view.graph
    if graph.kind_of(event.node) != "node":
        pending = builder.progress.pending
        builder.inside.begin(event.node, event.step, pending, graph.members_of(event.node))


def _text_streamed(builder: _Builder, event: ev.TextStreamed) -> None:
    if event.path:
        builder.inside.write(event.path, event.agent, event.text)
        return
    builder.stream, text = with_text(builder.stream, event)
    builder.pieces.append(text)
    builder.retry = None


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
    if builder.values is None:
        builder.values = dict(builder.view.values)
    builder.values.update((update.channel, update.after) for update in event.updates)
    builder.checkpoints.append(event.checkpoint)
    builder.head_updates = event.updates
    builder.progress = event.progress
    builder.error = event.progress.error
    if builder.stream.live:
        builder.stream = replace(builder.stream, duration=event.checkpoint.duration)
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
        # What another process does between commits is not told; its record says which node it is at.
        builder.running = _Running(event.progress.next_node)


def _ledger_written(builder: _Builder, event: ev.LedgerWritten) -> None:
    builder.ledger.append(event.entry)
    if event.entry.kind == "takeover":
        builder.notice = takeover_notice(event.entry.note or "")


def _node_failed(builder: _Builder, event: ev.NodeFailed) -> None:
    builder.error = event.error
    builder.stop()


def _attempt_dropped(builder: _Builder, event: ev.AttemptDropped) -> None:
    builder.dropped = f"{event.node}, attempt {event.attempt}: {event.why}"
    builder.stop()


def _thread_forked(builder: _Builder, event: ev.ThreadForked) -> None:
    builder.forks.append((event.child, event.step))


def _holder_changed(builder: _Builder, event: ev.HolderChanged) -> None:
    builder.held_by = event.holder


def _graph_changed(builder: _Builder, event: ev.GraphChanged) -> None:
    builder.graph_changed = event.differences


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
    ev.StepCommitted: _step_committed,
    ev.ProgressChanged: _progress_changed,
    ev.LedgerWritten: _ledger_written,
    ev.NodeFailed: _node_failed,
    ev.AttemptDropped: _attempt_dropped,
    ev.ThreadForked: _thread_forked,
    ev.HolderChanged: _holder_changed,
    ev.GraphChanged: _graph_changed,
    ev.RunEnded: _run_ended,
}
