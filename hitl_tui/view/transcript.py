"""Describes the events of a thread as plain lines for screen readers: no boxes, no spinners."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hitl_tui.drivers.node_streams import LineSplitter
from hitl_tui.drivers.protocol import Unfinished
from hitl_tui.engine.log import events as ev
from hitl_tui.engine.log.outcomes import BranchOutcome, Frame
from hitl_tui.engine.log.records import ROLLBACK, Checkpoint, LedgerEntry
from hitl_tui.view.format import cost, duration, limit_line, preview, price_line, tokens, writer
from hitl_tui.view.glyphs import ASCII
from hitl_tui.view.inside import EMPTY, InsideView, calls_of_failed, calls_of_step, tool_line
from hitl_tui.view.lens import lens
from hitl_tui.view.lines import content, name, short_id, spans
from hitl_tui.view.notes import note_words
from hitl_tui.view.rows import as_overwritten
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line
from hitl_tui.view.taint import taint_line

_TITLE = 200
_TOLD = 20


def inside_lines(event: ev.Event) -> list[str]:
    """Return lines about an event in a branch or a subgraph's thread; nothing for other events."""
    match event:
        case ev.BranchEnded(outcome=outcome) if outcome.error:
            why = [text for text in (outcome.error.message, outcome.error.hint) if text]
            return [f"{name(outcome.path)} failed{_tries(outcome)}:", *content(why, 4)]
        case ev.BranchEnded(outcome=outcome) if outcome.status == "ok":
            return [f"{name(outcome.path)} is done{_tries(outcome)}, {duration(outcome.duration)}."]
        case ev.BranchEnded(outcome=outcome) if outcome.status == "cancelled":
            return [f"{name(outcome.path)} was stopped: the others were enough."]
        case ev.BranchWaits():
            return [f"{name(event.path)} asks: {sanitise_line(event.title, _TITLE)}"]
        case ev.ChildMoved() if event.running:
            return [
                f"Inside {name(event.path)}: {name(event.running)} runs, thread {short_id(event.thread_id)}."
            ]
        case ev.ChildMoved() if event.progress.status == "completed":
            return [f"Inside {name(event.path)}: the thread {short_id(event.thread_id)} is done."]
    return []


def branch_lines(point: Checkpoint) -> list[str]:
    """Return the outcome of a step's branches: how many of each kind, and why some failed."""
    if not point.branches:
        return []
    threads = [branch for branch in point.branches if branch.thread]
    branches = [branch for branch in point.branches if not branch.thread]
    lines = [f"It ran as a thread of its own: {short_id(branch.thread)}." for branch in threads]
    if not branches:
        return lines
    from hitl_tui.view.branches import branches_of_step, counted

    rows = branches_of_step(point, EMPTY)
    inside = InsideView(point.node, point.step, len(branches), {branch.path: branch for branch in rows})
    lines.append(f"Branches: {counted(inside)}.")
    return [*lines, *spans(_failures(branches), _TOLD)]


def unfinished_lines(unfinished: Unfinished | None, *, opens: bool = True) -> list[str]:
    """Return what is kept of a node with branches, or a subgraph, at which a thread was suspended.

    `opens` says whether plain text mode has commands to enter it.

    Args:
        opens: whether there are commands in lines, by which one gets in.
    """
    if unfinished is None:
        return []
    node = name(unfinished.node)
    if unfinished.child:
        how = "; i 1 opens it" if opens else ""
        return [f"Inside {node}: thread {name(unfinished.child)}{how}."]
    ended = unfinished.outcomes
    lines = [f"Inside {node}: {len(ended)} of {unfinished.total} branches have ended."]
    return [*lines, *spans(_failures(ended), _TOLD)]


def failed_at(progress: ev.Progress) -> list[str]:
    """Return the frames where a stopped thread failed; nothing for any other thread."""
    if progress.status != "failed" or progress.error is None or not progress.error.frames:
        return []
    from hitl_tui.view.frames import frame_lines

    lines = frame_lines(progress.error.frames, glyphs=ASCII)
    return ["", f"{name(progress.error.node)} failed at:", *spans(lines, _FRAMES, "--json has all of it")]


def running_at(node: str, frames: Sequence[Frame]) -> list[str]:
    """Return the place inside a running node."""
    from hitl_tui.view.frames import frame_lines

    return [f"{name(node)} is at:", *spans(frame_lines(frames, glyphs=ASCII), _FRAMES)]


def _failures(branches: Sequence[BranchOutcome]) -> list[Line]:
    from hitl_tui.view.branches import outcome_lines

    return [line for branch in branches if branch.error for line in outcome_lines(branch, ASCII)]


def _tries(outcome: BranchOutcome) -> str:
    return f" after {outcome.attempts} attempts" if outcome.attempts > 1 else ""


_LENS = 40
_FRAMES = 24
_STREAM = 400
_NOTES = 40


def event_lines(event: ev.Event) -> list[str]:
    """Return lines about an event; nothing for events that only matter to a screen."""
    match event:
        case ev.NodeStarted():
            again = f", attempt {event.attempt}" if event.attempt > 1 else ""
            undone = event.node.removeprefix(f"<{ROLLBACK}>/")
            does = f"undo {name(undone)}" if undone != event.node else f"{name(event.node)} runs"
            return [f"Step {event.step}: {does}{again}."]
        case ev.StepCommitted():
            return step_lines(event.checkpoint, event.updates, live=True)
        case ev.ToolCalled():
            where = f"{event.path}, " if event.path else ""
            return content([f"{where}{event.agent}: {tool_line(event)}"], 4)
        case ev.TaintRead():
            return [
                f"Warning: {name(event.node)} may read untrusted data:",
                *spans([taint_line(taint) for taint in event.tainted]),
            ]
        case ev.NodeRetrying():
            from hitl_tui.view.status import retry_words

            again = retry_words(event.attempt, event.max_attempts, event.wait)
            return [f"{name(event.path or event.node)} failed, {again}:", *content([event.error], 4)]
        case ev.BreakpointHit() if event.line:
            return [f"{name(event.node)} logs:", *content([event.line], 10)]
        case ev.AttemptFailed():
            from hitl_tui.view.frames import frame_lines

            hint = [event.error.hint] if event.error.hint else []
            what = f"{name(event.error.node)} failed" if event.error.node else name(event.error.title)
            return [
                f"{what}:",
                *content([event.error.message, *hint], 10),
                *spans(frame_lines(event.error.frames, glyphs=ASCII), _FRAMES, "hitl-tui show --json"),
            ]
        case ev.AttemptDropped():
            return [f"{name(event.node)} was stopped: {name(event.why)}. Nothing of it was saved."]
        case ev.LimitNear():
            return [f"Note: {limit_line(event)}."]
        case ev.PriceUnknown():
            return [f"Note: {price_line(event)}."]
        case ev.HolderChanged() if event.holder:
            from hitl_tui.view.status import held_words

            return [f"Now {held_words(event.holder)}."]
        case ev.HolderChanged():
            return ["Nobody runs it now: you can continue."]
        case ev.GraphChanged():
            from hitl_tui.view.repeats import running_words, standing_words

            stands = [standing_words(event.repeats), running_words(event.repeats)] if event.repeats else []
            return ["The graph's file was saved; R runs it again.", *stands, *content(event.differences, 20)]
        case ev.ThreadForked():
            return [f"Fork {name(event.child)} was made from step {event.step}."]
    return inside_lines(event)


def note_lines(notes: Sequence[LedgerEntry]) -> list[str]:
    """Return the notes on a step."""
    return content([note_words(note) for note in notes], _NOTES)


class NodeText:
    """Turns events into lines, including the output of nodes, in whole lines after the bar."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], LineSplitter] = {}
        self._last_writer = ("", "")
        self._inside: dict[str, list[str]] = {}
        """The last lines about each thread of a subgraph."""

    def lines(self, event: ev.Event) -> list[str]:
        """Return lines about an event; unfinished output is completed before another kind of event."""
        if not isinstance(event, ev.TextStreamed):
            rest = self._rest() if self._open else []
            if isinstance(event, ev.NodeStarted):
                self._last_writer = ("", "")
            return rest + self._once(event, event_lines(event))
        if event.agent:
            return []
        writer = (event.node, event.path)
        return self._output_lines(writer, self._open.setdefault(writer, LineSplitter()).add(event.text))

    def _once(self, event: ev.Event, lines: list[str]) -> list[str]:
        """Leave out lines about a thread of a subgraph that repeat the last ones about the same step."""
        if not lines or not isinstance(event, ev.ChildMoved):
            return lines
        said = [str(event.progress.head), *lines]
        if self._inside.get(event.thread_id) == said:
            return []
        self._inside[event.thread_id] = said
        return lines

    def _rest(self) -> list[str]:
        """Return the lines that have no end yet."""
        rest = [
            line for writer, lines in self._open.items() for line in self._output_lines(writer, lines.rest())
        ]
        self._open.clear()
        return rest

    def _output_lines(self, writer: tuple[str, str], lines: list[str]) -> list[str]:
        if not lines:
            return []
        rows = content(map(as_overwritten, lines))
        if writer != self._last_writer:
            rows.insert(0, f"{name(writer[1] or writer[0])} writes:")
        self._last_writer = writer
        return rows


def step_lines(
    checkpoint: Checkpoint, updates: Sequence[ev.AppliedUpdate], *, live: bool = False
) -> list[str]:
    """Describe a committed step: who made it, what it cost and what it changed.

    Args:
        live: it was followed as it ran, so its tool calls were already printed.
    """
    facts = [f"Step {checkpoint.step} by {writer(checkpoint)}"]
    if checkpoint.decision:
        facts.append(f"decision {name(checkpoint.decision)}")
    elif checkpoint.source == "human":
        facts.append("update_state")
    if checkpoint.source in ("node", "map", "subgraph"):
        facts += [f"after {checkpoint.attempt} attempts"] if checkpoint.attempt > 1 else []
        facts.append(duration(checkpoint.duration))
        used = checkpoint.tokens_in + checkpoint.tokens_out
        facts += [tokens(used)] if used else []
        facts += [cost(checkpoint.cost)] if checkpoint.cost else []
    lines = [", ".join(facts) + "."]
    if checkpoint.text:
        lines += ["It says:", *content([checkpoint.text], 10)]
    if checkpoint.note:
        lines += ["Note:", *content([checkpoint.note], 10)]
    if not live:
        lines += [*spans(calls_of_step(checkpoint, ASCII)), *spans(calls_of_failed(checkpoint, ASCII))]
    lines += branch_lines(checkpoint)
    if not updates:
        return [*lines, "No change."]
    # Branches that changed nothing were already described.
    paths = {update.path for update in updates} if checkpoint.branches else ()
    wrote = [branch for branch in checkpoint.branches if branch.path in paths]
    if not wrote:
        return [*lines, *spans(lens(updates, ASCII), _LENS)]
    from hitl_tui.view.branches import branch_lens

    return [*lines, *spans(branch_lens(updates, wrote, ASCII), _LENS)]


def stream_lines(checkpoint: Checkpoint) -> list[str]:
    """Return what a step printed and streamed, as far as recorded; nothing if it has no output."""
    from hitl_tui.view.run_view import past_stream

    text = past_stream(checkpoint).text.rstrip("\n")
    lines = map(as_overwritten, text.replace("\r\n", "\n").split("\n"))
    return ["It wrote:", *content(lines, _STREAM, "--json has all of it")] if text else []


def channel_lines(values: Mapping[str, Any], tainted: Collection[str] = ()) -> list[str]:
    """Return all channels, numbered, each with its value on one line after the bar."""
    lines: list[str] = []
    for number, (channel, value) in enumerate(values.items(), 1):
        mark = ", tainted" if channel in tainted else ""
        lines += [f"{number}. {name(channel)}{mark}:", *content([preview(value, 200)], 3)]
    return lines
