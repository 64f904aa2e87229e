"""What goes on inside maps, parallels and subgraphs, in lines that can be read aloud (SPEC 7)."""

from __future__ import annotations

from collections.abc import Sequence

from hitl_tui.drivers.protocol import Unfinished
from hitl_tui.engine.log import events as ev
from hitl_tui.engine.log.outcomes import BranchOutcome
from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.plain.content import content, spans
from hitl_tui.view.branch_lens import outcome_lines
from hitl_tui.view.branch_words import branches_of_step, counted
from hitl_tui.view.format import duration
from hitl_tui.view.glyphs import ASCII
from hitl_tui.view.inside import EMPTY, InsideView
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line

_NAME = 60
_TITLE = 200
_TOLD = 20


def inside_lines(event: ev.Event) -> list[str]:
    """What an event says about a branch or the thread of a subgraph; nothing for other events."""
    match event:
        case ev.BranchEnded(outcome=outcome) if outcome.error:
            why = [text for text in (outcome.error.message, outcome.error.hint) if text]
            return [f"{_name(outcome.path)} failed{_tries(outcome)}:", *content(why, 4)]
        case ev.BranchEnded(outcome=outcome) if outcome.status == "ok":
            return [f"{_name(outcome.path)} is done{_tries(outcome)}, {duration(outcome.duration)}."]
        case ev.BranchEnded(outcome=outcome) if outcome.status == "cancelled":
            return [f"{_name(outcome.path)} was given up: the others were enough."]
        case ev.BranchWaits():
            return [f"{_name(event.path)} asks: {sanitise_line(event.title, _TITLE)}"]
        case ev.ChildMoved() if event.running:
            return [
                f"Inside {_name(event.path)}: {_name(event.running)} runs, thread {_name(event.thread_id)}."
            ]
        case ev.ChildMoved() if event.progress.status == "completed":
            return [f"Inside {_name(event.path)}: the thread {_name(event.thread_id)} is done."]
    return []


def branch_lines(point: Checkpoint) -> list[str]:
    """What became of the branches of a step: how many of a kind, and why those failed that did."""
    threads = [one for one in point.branches if one.thread]
    branches = [one for one in point.branches if not one.thread]
    lines = [f"It ran as a thread of its own: {_name(one.thread)}." for one in threads]
    if not branches:
        return lines
    found = branches_of_step(point, EMPTY)
    inside = InsideView(point.node, point.step, len(branches), {one.path: one for one in found})
    lines.append(f"Branches: {counted(inside)}.")
    told = _failures(branches)
    return [*lines, *spans(told, _TOLD)]


def unfinished_lines(unfinished: Unfinished | None, *, opens: bool = True) -> list[str]:
    """What is kept of a node with branches, or of a subgraph, at which a thread was put down.

    Args:
        opens: whether there are commands in lines, by which one gets in.
    """
    if unfinished is None:
        return []
    node = _name(unfinished.node)
    if unfinished.child:
        how = "; i 1 opens it" if opens else ""
        return [f"Inside {node}: thread {_name(unfinished.child)}{how}."]
    ended = unfinished.outcomes
    lines = [f"Inside {node}: {len(ended)} of {unfinished.total} branches have ended."]
    return [*lines, *spans(_failures(ended), _TOLD)]


def _failures(branches: Sequence[BranchOutcome]) -> list[Line]:
    return [line for one in branches if one.error for line in outcome_lines(one, ASCII)]


def _tries(outcome: BranchOutcome) -> str:
    return f" after {outcome.attempts} attempts" if outcome.attempts > 1 else ""


def _name(text: str) -> str:
    return sanitise_line(text, _NAME)
