"""`log`: what happened in a thread, step by step, and who decided what."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

import click

from hitl_tui.cli.desk import Desk, at_desk
from hitl_tui.cli.options import store_option, thread_argument
from hitl_tui.cli.output import emit, json_option, say
from hitl_tui.errors import ExitCode

if TYPE_CHECKING:
    from hitl_tui.drivers.protocol import Driver
    from hitl_tui.engine.log.events import AppliedUpdate
    from hitl_tui.engine.log.records import Checkpoint, LedgerEntry

_FACTS = 8
_AT_ONCE = 50


@click.command()
@thread_argument
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many steps.")
@click.option("--before", type=click.IntRange(0), metavar="STEP", help="Only steps before this one.")
@store_option
@json_option
def log(thread: str, limit: int, before: int | None, store: str | None, as_json: bool) -> int:
    """Show the steps of a thread, oldest first.

    Each with its updates through their reducers; then the decision ledger: who decided what, when, why.
    """

    async def work(desk: Desk) -> ExitCode:
        driver = await desk.reading(thread)
        snapshot = await driver.snapshot()
        points = (await driver.history(before=before, limit=limit))[::-1]
        steps = _with_updates(driver, points)
        if as_json:
            from hitl_tui.cli import shapes

            secret = shapes.has_secrets(snapshot.graph)
            shown = [
                {**shapes.checkpoint(point, secret), "updates": shapes.updates(some)}
                async for point, some in steps
            ]
            decisions = [shapes.decision(entry, secret) for entry in snapshot.ledger]
            emit(shapes.document("log", thread=thread, checkpoints=shown, decisions=decisions))
            return ExitCode.DONE
        from hitl_tui.plain.words import step_lines

        if points and points[0].step > 0:
            say(f"(steps 0 to {points[0].step - 1} are older: --before {points[0].step})")
        async for point, some in steps:
            say(*step_lines(point, some))
        if snapshot.ledger:
            say("", "Decisions:", *_decisions(snapshot.ledger))
        return ExitCode.DONE

    return at_desk(work, store=store)


async def _with_updates(
    driver: Driver, points: Sequence[Checkpoint]
) -> AsyncIterator[tuple[Checkpoint, tuple[AppliedUpdate, ...]]]:
    """Steps that follow one another, each with its updates; those of some are held at once."""
    for start in range(0, len(points), _AT_ONCE):
        some = points[start : start + _AT_ONCE]
        updates = await driver.updates_between(some[0].step, some[-1].step)
        for point in some:
            yield point, updates[point.step]


def _decisions(ledger: tuple[LedgerEntry, ...]) -> list[str]:
    from hitl_tui.cli.shapes import time
    from hitl_tui.plain.content import content
    from hitl_tui.plain.words import name
    from hitl_tui.signing import fingerprint
    from hitl_tui.view.agent_settings import entry_words

    whole = "--json has all of it"
    lines = []
    for entry in ledger:
        who = f" by {name(entry.actor)} ({name(entry.account)})" if entry.actor else ""
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
            lines += content(_facts(entry), _FACTS, whole)
    return lines


def _facts(entry: LedgerEntry) -> list[str]:
    """What else an entry holds, a fact a line; what its note says already is left out."""
    from hitl_tui.cli.shapes import to_text
    from hitl_tui.engine.channels.values import thaw

    lines = []
    for fact, given in thaw(entry.data).items():
        noted = isinstance(given, dict) and given == {"choice": given.get("choice"), "text": entry.note}
        value = given["choice"] if noted else given
        if value in (None, "", entry.note):
            continue
        lines.append(f"{fact}: {value if isinstance(value, str) else to_text(value)}")
    return lines
