"""Collects the contents of a report about a thread: steps, decisions, hashes, a check.

It is made for an audit or to share. `report_html` and `report_markdown` write them down. All texts are
sanitised; private values, and hashes from which they could be guessed, are never included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hitl_tui.engine.log.events import PRIVATE, AppliedUpdate
from hitl_tui.engine.log.records import Checkpoint, LedgerEntry
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.thread.comments import comments_of
from hitl_tui.view.agents import entry_words
from hitl_tui.view.comments import comment_lines
from hitl_tui.view.diff_lines import changes
from hitl_tui.view.findings import finding_line
from hitl_tui.view.format import (
    PRIVATE_TEXT,
    REPLACED,
    cost,
    count,
    decider,
    duration,
    is_set_by_person,
    person,
    tokens,
    writer,
)
from hitl_tui.view.revision import revision
from hitl_tui.view.sanitise import sanitise, sanitise_line
from hitl_tui.view.spans import Line, plain_text, trusted
from hitl_tui.view.value_lines import value_lines

if TYPE_CHECKING:
    from hitl_tui.drivers.damaged import DamagedThread
    from hitl_tui.drivers.reading import RecordedThread
    from hitl_tui.engine.audit.findings import VerifyReport
    from hitl_tui.engine.graph.description import GraphInfo
    from hitl_tui.engine.graph.drawing import RunMarks

_NAME: Final = 120
_WHY: Final = 400
_AT_ONCE: Final = 50
"""Steps whose updates are held in memory together."""
_LINES: Final = 400
"""Most lines of a value that are shown; the others are only counted."""
_CHARS: Final = 4_000

Fact = tuple[str, str]


class ChannelChange(msgspec.Struct, frozen=True):
    """A channel's change by one update, as lines of a diff; `how` is its reducer, or who set it."""

    channel: str
    how: str
    lines: tuple[Line, ...]


class StepReport(msgspec.Struct, frozen=True):
    """One step; `text` is what its node wrote, `note` the reason of a person who made it."""

    step: int
    writer: str
    facts: tuple[Fact, ...]
    text: str
    note: str
    changes: tuple[ChannelChange, ...]


class DecisionReport(msgspec.Struct, frozen=True):
    """One ledger entry: what, by whom, when, why, and its other facts."""

    n: int
    kind: str
    facts: tuple[Fact, ...]
    note: str
    lines: tuple[str, ...]


class CheckReport(msgspec.Struct, frozen=True):
    """The result of `verify`."""

    ok: bool
    words: str
    findings: tuple[str, ...]


class ThreadReport(msgspec.Struct, frozen=True):
    """The contents of a page; `steps` are computed while they are written, since a thread may have many.

    Args:
        left_out: the number of older steps that are left out.
    """

    thread: str
    graph: GraphInfo
    marks: RunMarks
    facts: tuple[Fact, ...]
    check: CheckReport
    decisions: tuple[DecisionReport, ...]
    steps: Iterable[StepReport]
    left_out: int
    state: tuple[tuple[str, tuple[str, ...]], ...]


def thread_report(
    thread: RecordedThread | DamagedThread, marks: RunMarks, verified: VerifyReport, now: int, limit: int
) -> ThreadReport:
    """Return the report about a thread.

    Args:
        now: the time of the report, microseconds since the epoch.
        limit: the number of newest steps to include.
    """
    secret = thread.hides_values
    points = thread.history(limit=limit)[::-1]
    ledger = thread.ledger()
    return ThreadReport(
        thread=sanitise_line(thread.thread_id, _NAME),
        graph=thread.graph,
        marks=marks,
        facts=tuple(_facts(thread, points, ledger, now, secret=secret)),
        check=_check(verified),
        decisions=tuple(_decision(entry, secret=secret) for entry in ledger),
        steps=_steps(thread, points, secret=secret),
        left_out=points[0].step if points else 0,
        state=tuple((sanitise_line(name, _NAME), _value(value)) for name, value in thread.values.items()),
    )


def moment(at: int) -> str:
    """Return a time as `2026-03-01 12:00:00 UTC`; "" if no calendar has it."""
    try:
        return datetime.fromtimestamp(at // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return ""


def _facts(
    thread: RecordedThread | DamagedThread,
    points: Sequence[Checkpoint],
    ledger: Sequence[LedgerEntry],
    now: int,
    *,
    secret: bool,
) -> Iterator[Fact]:
    progress, info = thread.progress, thread.logged.info
    yield "graph", sanitise_line(thread.graph.name, _NAME)
    stands = f"{progress.status}, {progress.reason}" if progress.reason else progress.status
    yield "status", sanitise_line(stands, _NAME)
    if info.parent:
        yield "forked from", f"{sanitise_line(info.parent, _NAME)} at step {info.fork_step}"
    yield "steps", f"{progress.head + 1:,}"
    used = progress.tokens_in + progress.tokens_out
    if used:
        yield "used", f"{tokens(used)}, {cost(progress.cost, progress.cost_known)}"
    yield "nodes ran for", duration(progress.active)
    if points:
        yield "newest step", moment(points[-1].at)
        yield "state hash", _hash(points[-1].state_hash, secret=secret)
        yield "checkpoint hash", _hash(points[-1].checkpoint_hash, secret=secret)
    if ledger:
        yield "ledger hash", _hash(ledger[-1].hash, secret=secret)
    yield "made", moment(now)
    for what, why in _unreadable(thread).items():
        yield f"{what} can't be read", sanitise_line(why, _WHY)


def _hash(digest: bytes, *, secret: bool) -> str:
    return PRIVATE_TEXT if secret else f"sha256:{digest.hex()}" if digest else ""


def _check(verified: VerifyReport) -> CheckReport:
    words = f"{count(verified.records, 'record')} and {count(verified.checkpoints, 'checkpoint')} checked"
    if verified.unchecked:
        words += f"; {count(verified.unchecked, 'state')} not compared"
    words += "".join(f"; {sanitise_line(note, _NAME)}" for note in verified.notes)
    return CheckReport(verified.ok, words, tuple(map(finding_line, verified.mismatches)))


def _unreadable(thread: RecordedThread | DamagedThread) -> dict[str, str]:
    """Describe what can't be read in a damaged thread, and why."""
    return getattr(thread, "unreadable", {})


def _steps(
    thread: RecordedThread | DamagedThread, points: Sequence[Checkpoint], *, secret: bool
) -> Iterator[StepReport]:
    for start in range(0, len(points), _AT_ONCE):
        some = points[start : start + _AT_ONCE]
        updates = thread.updates(some[0].step, some[-1].step)
        for point in some:
            why = _unreadable(thread).get(f"changes of step {point.step}", "")
            yield _step(point, updates[point.step], why, secret=secret)


def _step(
    point: Checkpoint, updates: Sequence[AppliedUpdate], unreadable: str, *, secret: bool
) -> StepReport:
    facts: list[Fact] = [("at", moment(point.at))]
    if point.decision:
        facts.append(("decision", sanitise_line(point.decision, _NAME)))
    if point.source in ("node", "map", "subgraph"):
        facts.append(("took", duration(point.duration)))
        facts += [("tried", f"{point.attempt} times")] if point.attempt > 1 else []
    if used := point.tokens_in + point.tokens_out:
        facts.append(("used", tokens(used)))
    if point.cost:
        facts.append(("cost", cost(point.cost)))
    facts += [("tool", sanitise_line(call.tool, _NAME)) for call in point.calls]
    facts.append(("state", _hash(point.state_hash, secret=secret)))
    facts.append(("checkpoint", _hash(point.checkpoint_hash, secret=secret)))
    facts.append(("changes can't be read", sanitise_line(unreadable, _WHY)))
    return StepReport(
        point.step,
        writer(point),
        tuple(facts),
        _cut(point.text or ""),
        _cut(point.note or ""),
        tuple(map(_change, updates)),
    )


def _change(update: AppliedUpdate) -> ChannelChange:
    if is_set_by_person(update):
        how = f"set by {person(update.actor, update.made_by)}"
    else:
        how = REPLACED if update.op == "set" else update.reducer
    if update.visibility == "private" or PRIVATE in (update.before, update.after):
        lines: tuple[Line, ...] = ((trusted(PRIVATE_TEXT, "private"),),)
    elif not update.changed:
        lines = ((trusted("the same value", "dim"),),)
    else:
        lines = tuple(changes(revision(update.before, update.after)))
    return ChannelChange(sanitise_line(update.channel, _NAME), sanitise_line(how, _NAME), lines)


def _decision(entry: LedgerEntry, *, secret: bool) -> DecisionReport:
    facts: list[Fact] = [("at", moment(entry.at)), ("step", str(entry.step))]
    if by := decider(entry):
        facts.append(("by", by))
    if entry.request_id:
        facts.append(("request", sanitise_line(entry.request_id, _NAME)))
    if entry.seen:
        facts.append(("seen", _hash(entry.seen, secret=secret)))
    if entry.signature:
        facts.append(("signed", "yes"))
    facts.append(("hash", _hash(entry.hash, secret=secret)))
    text = entry_words(entry)
    lines = [text] if text else [sanitise(line) for line in entry_facts(entry)]
    return DecisionReport(
        entry.n, sanitise_line(entry.kind, _NAME), tuple(facts), _cut(entry.note or ""), tuple(lines)
    )


def entry_facts(entry: LedgerEntry) -> list[str]:
    """Return the other facts of a ledger entry, one a line, raw, without those that its note repeats."""
    lines = []
    comments = comments_of(entry.data)
    for fact, raw in (thaw(entry.data) or {}).items():
        if comments and fact == "comments":
            lines += [f"comment {plain_text(line)}" for line in comment_lines(comments)]
            continue
        # The text of an answer with comments consists of the note and the comments.
        has_comments = comments and fact == "answer" and isinstance(raw, dict)
        given = raw.get("choice", raw) if has_comments else raw
        noted = isinstance(given, dict) and given == {"choice": given.get("choice"), "text": entry.note}
        value = given["choice"] if noted else given
        if value in (None, "", entry.note):
            continue
        lines.append(f"{fact}: {value if isinstance(value, str) else _json(value)}")
    return lines


def _json(value: Any) -> str:
    """Return a value as readable JSON that keeps non-ASCII letters."""
    import json

    def other(part: Any) -> str:
        if part is PRIVATE:
            return PRIVATE_TEXT
        return f"sha256:{part.hex()}" if isinstance(part, bytes) else str(part)

    return json.dumps(value, ensure_ascii=False, default=other)


def _value(value: Any) -> tuple[str, ...]:
    """Return the lines of a value, sanitised."""
    if value is PRIVATE:
        return (PRIVATE_TEXT,)
    lines = value_lines(value, "text")
    kept = [_cut(line) for line in lines[:_LINES]]
    return (*kept, f"… {len(lines) - _LINES:,} more lines") if len(lines) > _LINES else tuple(kept)


def _cut(text: str) -> str:
    clean = sanitise(text[:_CHARS])
    return f"{clean}… {len(text) - _CHARS:,} more characters" if len(text) > _CHARS else clean
