"""`blame`: who wrote each line, key or item of a channel."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from hitl_tui.cli.desk import Desk, at_desk
from hitl_tui.cli.options import complete_thread, store_option
from hitl_tui.cli.output import emit, json_option, say, table
from hitl_tui.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hitl_tui.cli.places import OpenPlace
    from hitl_tui.engine.log.records import Checkpoint
    from hitl_tui.view.blame import BlameLine

_PAGE = 200
_INDEX = re.compile(r"\[(\d+)\]")


@click.command()
@click.argument("place", metavar="THREAD[@STEP]", shell_complete=complete_thread)
@click.argument("path", metavar="CHANNEL[.PATH]")
@click.option(
    "--limit", type=click.IntRange(1), default=2000, show_default=True, help="Look at so many steps."
)
@store_option
@json_option
def blame(place: str, path: str, limit: int, store: str | None, as_json: bool) -> int:
    """Show who wrote each part of a channel last.

    Line by line for a text, by key or item for an object or a list; PATH leads into a value, as in
    plan.items.0.title or plan.items[0].title.
    """

    async def work(desk: Desk) -> ExitCode:
        from hitl_tui.cli.places import open_place
        from hitl_tui.cli.shapes import document
        from hitl_tui.view.blame import blame as last_writers

        at = await open_place(desk, place, reading=True)
        values = await at.driver.state_at(at.step)
        channel, keys = split_path(values, path)
        versions, reached = await _versions(at, channel, keys, limit)
        lines = last_writers(versions)
        if as_json:
            rows = [{"step": line.step, "who": line.who, "text": line.text} for line in lines]
            emit(
                document(
                    "blame",
                    thread=at.driver.thread_id,
                    step=at.step,
                    channel=channel,
                    path=keys,
                    complete=reached == 0,
                    lines=rows,
                )
            )
            return ExitCode.DONE
        if reached:
            say(f"(what is older than step {reached} was not looked at: --limit)", err=True)
        say(*(_rows(lines) if lines else ["nobody has written it yet"]))
        return ExitCode.DONE

    return at_desk(work, store=store)


def _rows(lines: Sequence[BlameLine]) -> list[str]:
    """Step, writer and text side by side; the text never reaches the left edge."""
    from hitl_tui.plain.content import on_terminal
    from hitl_tui.view.cells import cells

    taken = max(cells(f"step {line.step}  {line.who}  | ") for line in lines)
    shown: list[tuple[str, str, str]] = []
    for line in lines:
        first, *more = on_terminal(line.text, taken)
        shown.append((f"step {line.step}", line.who, f"| {first}"))
        shown += [("", "", f"| {row}") for row in more]
    return table(shown)


def split_path(values: Mapping[str, Any], path: str) -> tuple[str, list[str]]:
    """The channel of a path, and the way into its value; names of channels may have dots themselves.

    Raises:
        UsageError: no channel begins so.
    """
    from hitl_tui.suggest import did_you_mean

    if path not in values:
        path = _INDEX.sub(r".\1", path)  # as errors write a place: findings[0].score
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        channel = ".".join(parts[:length])
        if channel in values:
            return channel, parts[length:]
    raise UsageError(f"there is no channel {parts[0]!r}", did_you_mean(parts[0], values))


def _inside(value: Any, keys: list[str]) -> tuple[bool, Any]:
    """Whether there is something at the end of the way, and what."""
    for key in keys:
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list | tuple) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return False, None
    return True, value


async def _versions(
    at: OpenPlace, channel: str, keys: list[str], limit: int
) -> tuple[list[tuple[Checkpoint, Any]], int]:
    """The versions of a value up to a step, oldest first, and the oldest step that was looked at."""
    from hitl_tui.engine.log.events import PRIVATE

    found: list[tuple[Checkpoint, Any]] = []
    before, looked = at.step + 1, 0
    while before > 0 and looked < limit:
        page = await at.driver.history(before=before, limit=min(_PAGE, limit - looked))
        updates = await at.driver.updates_between(page[-1].step, page[0].step, channel) if page else {}
        for point in page:
            if written := updates[point.step]:
                after = written[-1].after
                there, value = (True, PRIVATE) if after is PRIVATE else _inside(after, keys)
                if there:
                    found.append((point, value))
                elif not found:
                    raise UsageError(
                        f"there is nothing at {'.'.join(keys)!r} in channel {channel!r}",
                        f"`hitl-tui show {shlex.quote(at.driver.thread_id)} --channel {channel}` shows it",
                    )
                else:
                    found.append((point, None))
        looked += len(page)
        before = page[-1].step if page else 0
    return found[::-1], before
