"""Finds text in a thread as shown, and lists matches, also from its history, as places to go to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, Literal

import msgspec

from hitl_tui.drivers.history import Moment, SearchHit
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.view.cells import thread_name
from hitl_tui.view.format import writer
from hitl_tui.view.hits import moment_line, place_of
from hitl_tui.view.run_view import RunView
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import plain_text
from hitl_tui.view.step_view import StepView
from hitl_tui.view.value_lines import read_lines

MOST: Final = 500
"""Most places that are listed."""
_LINES: Final = 20_000
_AROUND: Final = 30


class Found(msgspec.Struct, frozen=True):
    """A place that contains the text.

    Args:
        step: the step to go to.
        channel: the channel to select, "" for none.
        where: a description of the place, sanitised.
        line: the line of the value, from 0.
        thread: the subgraph's thread that it is in, "" for the searched thread.
        before, match, after: the text around it, on one line, sanitised.
    """

    kind: Literal["channel", "value", "step", "decision", "history"]
    step: int
    channel: str
    where: str
    before: str
    match: str
    after: str
    line: int = 0
    thread: str = ""


def find(query: str, view: RunView, step: StepView) -> tuple[Found, ...]:
    """Find a text, ignoring case: first in the shown step's channels, then in steps, newest first.

    Searches the first lines of values and the loaded steps; never private values.
    """
    wanted = query.casefold()
    if not wanted.strip():
        return ()
    places = (*_in_channels(wanted, step), *_in_steps(wanted, view), *_in_decisions(wanted, view))
    return tuple(islice(places, MOST))


def found_in_history(hits: Iterable[SearchHit], local: Iterable[Found]) -> Iterator[Found]:
    """Return matches in the whole history, without those already found in what is shown."""
    known = {(place.step, place.channel) for place in local if place.kind in ("value", "step", "decision")}
    for hit in hits:
        channel = hit.name if hit.kind == "update" else ""
        if hit.thread or (hit.step, channel) not in known or hit.kind in ("streamed", "tool"):
            before = sanitise_line(hit.before, 4 * _AROUND)[-_AROUND:].lstrip()
            what = f"{place_of(hit)}  {before}"
            after = sanitise_line(hit.after, 120)
            inside = f"inside {thread_name(hit.thread, 60)}: " if hit.thread else ""
            match = sanitise_line(hit.match, 80)
            where = _where(hit.step, hit.node)
            yield Found("history", hit.step, channel, where, inside + what, match, after, thread=hit.thread)


def found_moments(moments: Iterable[Moment]) -> Iterator[Found]:
    """Return the steps at which a condition became true."""
    for moment in moments:
        *begin, end = moment_line(moment)
        channel = next(iter(moment.before), "")
        where = _where(moment.step, moment.actor or moment.node)
        yield Found("history", moment.step, channel, where, plain_text(tuple(begin)), end.text, "")


def _where(step: int, who: str) -> str:
    return f"step {step}  {sanitise_line(who, 30)}"


def pieces(text: str, query: str) -> Iterator[tuple[str, bool]]:
    """Split a text into pieces, each with whether it matches."""
    folded, wanted = text.casefold(), query.casefold()
    at = 0
    # Lower case may have another length than upper case, so positions would differ.
    while wanted.strip() and len(folded) == len(text) and (start := folded.find(wanted, at)) >= 0:
        yield text[at:start], False
        at = start + len(wanted)
        yield text[start:at], True
    yield text[at:], False


def _in_channels(wanted: str, step: StepView) -> Iterator[Found]:
    for row in step.rows:
        if hit := _cut(row.name, wanted):
            yield Found("channel", step.step, row.name, "channel", *hit)
    for row in step.rows:
        value: Any = step.values.get(row.name)
        if value is PRIVATE:
            continue
        for number, line in enumerate(islice(read_lines(value)[0], _LINES)):
            if hit := _cut(line, wanted):
                where = f"{sanitise_line(row.name, 30)}, line {number + 1}"
                yield Found("value", step.step, row.name, where, *hit, line=number)


def _in_steps(wanted: str, view: RunView) -> Iterator[Found]:
    for point in reversed(view.checkpoints):
        for text in (writer(point), point.node, point.decision or "", point.note or "", point.text or ""):
            if hit := _cut(text, wanted):
                yield Found("step", point.step, "", f"step {point.step}", *hit)
                break


def _in_decisions(wanted: str, view: RunView) -> Iterator[Found]:
    for entry in reversed(view.ledger):
        for text in (entry.kind, entry.actor or "", entry.note or ""):
            if hit := _cut(text, wanted):
                yield Found("decision", entry.step, "", f"decision at step {entry.step}", *hit)
                break


def _cut(text: str, wanted: str) -> tuple[str, str, str] | None:
    """Return the text before the match, the match as written there, and the text after it."""
    at = text.casefold().find(wanted)
    if at < 0:
        return None
    end = at + len(wanted)
    before = sanitise_line(text[max(0, at - _AROUND) : at], _AROUND)
    start = "…" if at > _AROUND else ""
    return start + before, sanitise_line(text[at:end], 80), sanitise_line(text[end : end + 200], 120)
