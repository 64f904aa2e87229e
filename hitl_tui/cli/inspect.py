"""`show`, `log`, `diff`, `blame`, `cost`: a thread's steps, differences, authors and costs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from hitl_tui.cli.invocation import same_store
from hitl_tui.cli.opening import signer_of
from hitl_tui.cli.options import complete_thread, thread_argument
from hitl_tui.cli.output import emit, say, table
from hitl_tui.cli.thread import OpenStored, on_log
from hitl_tui.errors import ExitCode, UsageError
from hitl_tui.shell import command_line

if TYPE_CHECKING:
    from hitl_tui.cli.inputs import LoggedPlace
    from hitl_tui.drivers.reading import RecordedThread
    from hitl_tui.engine.log.events import AppliedUpdate
    from hitl_tui.engine.log.records import Checkpoint, LedgerEntry
    from hitl_tui.view.blame import BlameLine
    from hitl_tui.view.first_difference import FirstDifference
    from hitl_tui.view.shapes import ThreadDocument


@click.command()
@click.argument("a", metavar="THREAD[@STEP]", shell_complete=complete_thread)
@click.argument("b", metavar="THREAD[@STEP]", shell_complete=complete_thread)
@on_log()
def diff(opened: OpenStored, *, a: str, b: str) -> ExitCode:
    """Compare two steps, threads or forks, channel by channel.

    Without @STEP it is the newest step. Private channels are named, not compared. For two threads it also
    shows the first step at which they differ, and why.

        hitl-tui diff r1@1 r1
        hitl-tui diff r1 r1-b
    """
    from hitl_tui.cli.inputs import logged_place
    from hitl_tui.cli.reports import DiffDocument, Place
    from hitl_tui.view.diff_lines import compare_states, diff_text
    from hitl_tui.view.first_difference import first_difference_lines

    left, right = logged_place(opened, a), logged_place(opened, b)
    before, after = left.thread.state_at(left.step), right.thread.state_at(right.step)
    rows = compare_states(before, after)
    if opened.as_json:
        places = [Place(at.thread.thread_id, at.step) for at in (left, right)]
        equal = all(row.change in ("same", "private") for row in rows)
        difference = _first_difference(left, right)
        emit(DiffDocument(a=places[0], b=places[1], equal=equal, channels=rows, first_difference=difference))
    else:
        say(f"--- {left.name}", f"+++ {right.name}", *diff_text(rows))
        if difference := _first_difference(left, right):
            say("", *first_difference_lines(difference))
    return ExitCode.DONE


class _History:
    """History of a recorded thread, as `first_difference` reads it."""

    def __init__(self, thread: RecordedThread) -> None:
        self._thread = thread

    async def history(self, before: int | None = None, limit: int = 50) -> tuple[Checkpoint, ...]:
        return self._thread.history(before, limit)

    async def state_at(self, step: int) -> dict[str, Any]:
        return self._thread.state_at(step)


def _first_difference(left: LoggedPlace, right: LoggedPlace) -> FirstDifference | None:
    """Return where two threads first differ; None if they don't, or are the same."""
    from asyncio import run

    from hitl_tui.view.first_difference import first_difference

    if left.thread.thread_id == right.thread.thread_id:
        return None
    return run(first_difference(_History(left.thread), _History(right.thread), min(left.step, right.step)))


@click.command()
@click.argument("place", metavar="THREAD[@STEP]", shell_complete=complete_thread)
@click.option("--channel", metavar="NAME", help="Show only this channel, with its whole value.")
@on_log(acts=True)
def show(opened: OpenStored, *, place: str, channel: str | None) -> ExitCode:
    """Show a thread at its newest step, or at another one.

    Status, requests, every channel with its value, what the step changed, printed and streamed, and notes
    on it.

        hitl-tui show r1
        hitl-tui show r1@2
        hitl-tui show r1 --channel draft > draft.txt
    """
    from hitl_tui.cli.inputs import logged_place

    at = logged_place(opened, place)
    values = at.thread.state_at(at.step)
    if channel is not None:
        values = {channel: _value(values, channel)}
    if opened.as_json:
        from hitl_tui.cli.documents import has_secrets

        emit(_document(at, values), secret=has_secrets(at.thread.graph))
    elif channel is not None:
        from hitl_tui.view.value_lines import value_lines

        (value,) = values.values()
        say(*value_lines(value, "text"))
    else:
        signer = signer_of(opened.settings)
        _say_step(at, values, signer.key if signer else "")
        _say_mine(opened, at)
    return ExitCode.DONE


def _value(values: dict[str, Any], channel: str) -> Any:
    from hitl_tui.suggest import did_you_mean

    if channel not in values:
        raise UsageError(f"there is no channel {channel!r}", did_you_mean(channel, values))
    return values[channel]


def _document(at: LoggedPlace, values: dict[str, Any]) -> ThreadDocument:
    from hitl_tui.view.notes import notes_on
    from hitl_tui.view.shapes import ThreadDocument

    snapshot, point = at.thread.snapshot(), at.thread.checkpoint(at.step)
    return ThreadDocument(
        thread=at.thread.thread_id,
        graph=snapshot.graph.name,
        parent=snapshot.parent,
        fork_step=snapshot.fork_step if snapshot.parent else None,
        owner=snapshot.owners[-1] if snapshot.owners else None,
        unfinished=snapshot.unfinished,
        held_by=snapshot.held_by,
        standing=snapshot.progress,
        step=at.step,
        checkpoint=point,
        state=values,
        updates=at.thread.updates(at.step, at.step)[at.step],
        streamed=point.streamed,
        notes=notes_on(at.thread.ledger(), at.step),
    )


def _say_step(at: LoggedPlace, values: dict[str, Any], signing_key: str) -> None:
    from hitl_tui.cli.headless import standing_lines
    from hitl_tui.view.lines import name, short_id
    from hitl_tui.view.notes import notes_on
    from hitl_tui.view.transcript import (
        channel_lines,
        failed_at,
        note_lines,
        step_lines,
        stream_lines,
        unfinished_lines,
    )

    snapshot = at.thread.snapshot(signing_key)
    say(*standing_lines(snapshot))
    origin = f", forked from {short_id(snapshot.parent)}@{snapshot.fork_step}" if snapshot.parent else ""
    if snapshot.owners:
        owner = snapshot.owners[-1]
        origin += f", runs inside {short_id(owner.thread_id)} as its node {name(owner.node)}"
    head = "" if at.step == snapshot.progress.head else f" (the newest is {snapshot.progress.head})"
    say(f"graph {name(snapshot.graph.name)}{origin}", "", f"channels at step {at.step}{head}:")
    point = at.thread.checkpoint(at.step)
    say(*channel_lines(values, [taint.channel for taint in point.tainted]), "")
    say(*step_lines(point, at.thread.updates(at.step, at.step)[at.step]), *stream_lines(point))
    say(*note_lines(notes_on(at.thread.ledger(), at.step)))
    if at.step == snapshot.progress.head:
        say(*unfinished_lines(snapshot.unfinished, opens=False))
        say(*failed_at(snapshot.progress))


def _say_mine(opened: OpenStored, at: LoggedPlace) -> None:
    """Print at the newest step the person's last decision, its outcome, and how to undo it."""
    if at.step == at.thread.snapshot().progress.head:
        from hitl_tui.drivers.decided import DecisionFilter, DecisionSearch
        from hitl_tui.view.followed import dated_lines, followed

        wanted = DecisionFilter(person=opened.settings.reviewer, thread=at.thread.thread_id)
        for decided in DecisionSearch(opened.store, wanted).all(1):
            say("", "your last decision:", *dated_lines(followed(decided, same_store(runs=True))))


_FACTS = 8
_AT_ONCE = 50


@click.command()
@thread_argument
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="How many steps to show."
)
@click.option("--before", type=click.IntRange(0), metavar="STEP", help="Only steps before this one.")
@on_log()
def log(opened: OpenStored, *, thread: str, limit: int, before: int | None) -> ExitCode:
    """Show the steps of a thread, oldest first.

    Each with its updates through their reducers; then the decision ledger: who decided what, when, why.
    `hitl-tui decisions --thread THREAD` shows what followed each decision, and how to undo it.

        hitl-tui log r1
        hitl-tui log r1 --before 100 --limit 20
    """
    reading = opened.thread(thread)
    ledger = reading.ledger()
    points = reading.history(before=before, limit=limit)[::-1]
    steps = _with_updates(reading, points)
    if opened.as_json:
        from hitl_tui.cli.documents import has_secrets
        from hitl_tui.view.shapes import LogDocument, LoggedStep

        shown = tuple([LoggedStep(point, updates) for point, updates in steps])
        document = LogDocument(thread=thread, checkpoints=shown, decisions=ledger)
        emit(document, secret=has_secrets(reading.graph))
        return ExitCode.DONE
    from hitl_tui.view.transcript import failed_at, step_lines

    if points and points[0].step > 0:
        say(f"(steps 0 to {points[0].step - 1} are older: --before {points[0].step})")
    for point, some in steps:
        say(*step_lines(point, some))
    if ledger:
        say("", "Decisions:", *_decisions(ledger))
    if before is None:
        say(*failed_at(reading.snapshot().progress))
    return ExitCode.DONE


def _with_updates(
    reading: RecordedThread, points: Sequence[Checkpoint]
) -> Iterator[tuple[Checkpoint, tuple[AppliedUpdate, ...]]]:
    """Yield consecutive steps, each with its updates; only some are in memory at once."""
    for start in range(0, len(points), _AT_ONCE):
        some = points[start : start + _AT_ONCE]
        updates = reading.updates(some[0].step, some[-1].step)
        for point in some:
            yield point, updates[point.step]


def _decisions(ledger: tuple[LedgerEntry, ...]) -> list[str]:
    from hitl_tui.cli.documents import time
    from hitl_tui.signing import fingerprint
    from hitl_tui.view.agents import entry_words
    from hitl_tui.view.format import decider
    from hitl_tui.view.lines import content, name
    from hitl_tui.view.report import entry_facts

    whole = "--json has all of it"
    lines = []
    for entry in ledger:
        by = decider(entry)
        who = f" by {by}" if by else ""
        if entry.signature:
            who += f", signed with {fingerprint(entry.signature) or 'no key'}"
        about = f", {name(entry.request_id)}" if entry.request_id else ""
        at = (time(entry.at) or "").partition(".")[0].replace("T", " ")
        lines.append(f"{entry.n}. {at} UTC: {name(entry.kind)} at step {entry.step}{who}{about}")
        if entry.note:
            lines += content([entry.note], 10, whole)
        if words := entry_words(entry):
            lines += content([words], 10, whole)
        elif entry.data:
            lines += content(entry_facts(entry), _FACTS, whole)
    return lines


_PAGE = 200
_INDEX = re.compile(r"\[(\d+)\]")


@click.command()
@click.argument("place", metavar="THREAD[@STEP]", shell_complete=complete_thread)
@click.argument("path", metavar="CHANNEL[.PATH]")
@click.option(
    "--limit", type=click.IntRange(1), default=2000, show_default=True, help="How many steps to look at."
)
@on_log()
def blame(opened: OpenStored, *, place: str, path: str, limit: int) -> ExitCode:
    """Show who last wrote each part of a channel.

    Line by line for a text, by key or item for an object or a list. PATH leads into a value, as in
    plan.items.0.title or plan.items[0].title.

        hitl-tui blame r1 draft
        hitl-tui blame r1@4 plan.items.0
    """
    from hitl_tui.cli.inputs import logged_place
    from hitl_tui.cli.reports import BlameDocument
    from hitl_tui.view.blame import blame as last_writers

    at = logged_place(opened, place)
    values = at.thread.state_at(at.step)
    channel, keys = split_path(values, path)
    versions, reached = _versions(at, channel, keys, limit)
    lines = last_writers(versions)
    if opened.as_json:
        emit(
            BlameDocument(
                thread=at.thread.thread_id,
                step=at.step,
                channel=channel,
                path=tuple(keys),
                complete=reached == 0,
                lines=lines,
            )
        )
        return ExitCode.DONE
    if reached:
        say(f"(steps before {reached} were not searched: --limit)", err=True)
    say(*(_rows(lines) if lines else ["nobody has written it yet"]))
    return ExitCode.DONE


def _rows(lines: Sequence[BlameLine]) -> list[str]:
    """Return step, writer and text side by side; the text never reaches the left edge."""
    from hitl_tui.view.cells import cells
    from hitl_tui.view.lines import on_terminal

    taken = max(cells(f"step {line.step}  {line.who}  | ") for line in lines)
    shown: list[tuple[str, str, str]] = []
    for line in lines:
        first, *more = on_terminal(line.text, taken)
        shown.append((f"step {line.step}", line.who, f"| {first}"))
        shown += [("", "", f"| {row}") for row in more]
    return table(shown)


def split_path(values: Mapping[str, Any], path: str) -> tuple[str, list[str]]:
    """Return the channel of a path, and the path inside its value; channel names may contain dots.

    Raises:
        UsageError: no channel matches its beginning.
    """
    from hitl_tui.suggest import did_you_mean

    if path not in values:
        path = _INDEX.sub(r".\1", path)  # as errors write a path: findings[0].score
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        channel = ".".join(parts[:length])
        if channel in values:
            return channel, parts[length:]
    raise UsageError(f"there is no channel {parts[0]!r}", did_you_mean(parts[0], values))


def _inside(value: Any, keys: list[str]) -> tuple[bool, Any]:
    """Return whether there is a value at a path, and the value."""
    for key in keys:
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list | tuple) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return False, None
    return True, value


def _versions(
    at: LoggedPlace, channel: str, keys: list[str], limit: int
) -> tuple[list[tuple[Checkpoint, Any]], int]:
    """Return the versions of a value up to a step, oldest first, and the oldest step that was read."""
    from hitl_tui.engine.log.events import PRIVATE

    versions: list[tuple[Checkpoint, Any]] = []
    before, looked = at.step + 1, 0
    while before > 0 and looked < limit:
        page = at.thread.history(before=before, limit=min(_PAGE, limit - looked))
        updates = at.thread.updates(page[-1].step, page[0].step, channel) if page else {}
        for point in page:
            if written := updates[point.step]:
                after = written[-1].after
                there, value = (True, PRIVATE) if after is PRIVATE else _inside(after, keys)
                if there:
                    versions.append((point, value))
                elif not versions:
                    options = f"--channel {channel}{same_store()}"
                    show = command_line("show", at.thread.thread_id, options=options)
                    raise UsageError(
                        f"there is nothing at {'.'.join(keys)!r} in channel {channel!r}",
                        f"`{show}` shows it",
                    )
                else:
                    versions.append((point, None))
        looked += len(page)
        before = page[-1].step if page else 0
    return versions[::-1], before


@click.command()
@thread_argument
@on_log()
def cost(opened: OpenStored, *, thread: str) -> ExitCode:
    """Show what a thread has cost: by agent, by node and by step.

    Failed attempts count too. An unknown price is shown as unknown, never as 0.

        hitl-tui cost r1
    """
    from hitl_tui.engine.audit.costs import CostReport
    from hitl_tui.view.costs import cost_lines
    from hitl_tui.view.spans import plain_text

    reading = opened.thread(thread)
    points = reading.history(limit=1 << 31)
    report = CostReport(reversed(points), reading.progress.uses)
    if opened.as_json:
        from hitl_tui.cli.reports import CostDocument

        emit(
            CostDocument(
                thread=thread,
                agents=tuple(report),
                nodes=tuple(report.by_node()),
                steps=report.steps,
                without_step=report.lost,
                total=report.total,
            )
        )
    else:
        say(*map(plain_text, cost_lines(report)))
    return ExitCode.DONE
