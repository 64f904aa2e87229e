"""`show`: one step of a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hitl_tui.cli.desk import Desk, at_desk
from hitl_tui.cli.options import complete_thread, reviewer_option, store_option
from hitl_tui.cli.output import emit, json_option, say
from hitl_tui.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hitl_tui.cli.places import OpenPlace
    from hitl_tui.engine.log.records import Checkpoint


@click.command()
@click.argument("place", metavar="THREAD[@STEP]", shell_complete=complete_thread)
@click.option("--channel", metavar="NAME", help="This channel alone, its whole value.")
@click.option("--reveal", metavar="NAME", help="A private channel's value; the ledger keeps that you looked.")
@store_option
@reviewer_option
@json_option
def show(
    *,
    place: str,
    channel: str | None,
    reveal: str | None,
    store: str | None,
    reviewer: str | None,
    as_json: bool,
) -> int:
    """Show a thread at its newest step, or at any other.

    Status, what waits, every channel with its value, and what the step changed.
    """

    async def work(desk: Desk) -> ExitCode:
        from hitl_tui.cli.places import open_place

        at = await open_place(desk, place, reading=True)
        values = dict(await at.driver.state_at(at.step))
        if reveal is not None:
            _value(values, reveal)
            values = {reveal: await at.driver.reveal(reveal, at.step, actor=desk.settings.reviewer)}
        elif channel is not None:
            values = {channel: _value(values, channel)}
        if as_json:
            emit(await _document(at, values))
        elif channel is not None or reveal is not None:
            _say_value(*values.values())
        else:
            await _say_step(at, values)
        return ExitCode.DONE

    return at_desk(work, store=store, reviewer=reviewer)


def _value(values: dict[str, Any], channel: str) -> Any:
    from hitl_tui.suggest import did_you_mean

    if channel not in values:
        raise UsageError(f"there is no channel {channel!r}", did_you_mean(channel, values))
    return values[channel]


def _say_value(value: Any) -> None:
    from hitl_tui.view.value_lines import value_lines

    say(*value_lines(value, "text"))


async def _checkpoint(at: OpenPlace) -> Checkpoint:
    return (await at.driver.history(before=at.step + 1, limit=1))[0]


async def _document(at: OpenPlace, values: dict[str, Any]) -> dict[str, Any]:
    from hitl_tui.cli import shapes

    snapshot = at.snapshot
    secret = shapes.has_secrets(snapshot.graph)
    return shapes.document(
        "thread",
        thread=at.driver.thread_id,
        graph=snapshot.graph.name,
        parent=snapshot.parent,
        fork_step=snapshot.fork_step if snapshot.parent else None,
        owner=shapes.owner(snapshot.owners[-1] if snapshot.owners else None),
        unfinished=shapes.unfinished(snapshot.unfinished),
        held_by=snapshot.held_by or None,
        standing=shapes.standing(snapshot.progress),
        step=at.step,
        checkpoint=shapes.checkpoint(await _checkpoint(at), secret),
        state=values,
        updates=shapes.updates(await at.driver.updates_at(at.step)),
    )


async def _say_step(at: OpenPlace, values: dict[str, Any]) -> None:
    from hitl_tui.cli.headless import standing_lines
    from hitl_tui.plain.inside import unfinished_lines
    from hitl_tui.plain.words import channel_lines, name, step_lines

    snapshot = at.snapshot
    say(*standing_lines(snapshot))
    origin = f", forked from {name(snapshot.parent)}@{snapshot.fork_step}" if snapshot.parent else ""
    if snapshot.owners:
        owner = snapshot.owners[-1]
        origin += f", runs inside {name(owner.thread_id)} as its node {name(owner.node)}"
    head = "" if at.step == snapshot.progress.head else f" (the newest is {snapshot.progress.head})"
    say(f"graph {name(snapshot.graph.name)}{origin}", "", f"channels at step {at.step}{head}:")
    point = await _checkpoint(at)
    say(*channel_lines(values, [taint.channel for taint in point.tainted]), "")
    say(*step_lines(point, await at.driver.updates_at(at.step)))
    if at.step == snapshot.progress.head:
        say(*unfinished_lines(snapshot.unfinished, opens=False))
