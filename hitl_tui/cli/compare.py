"""`diff`: two steps, threads or forks, channel by channel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from hitl_tui.cli.options import complete_thread, store_option
from hitl_tui.cli.output import emit, json_option, say

if TYPE_CHECKING:
    from hitl_tui.cli.desk import Desk
    from hitl_tui.drivers.protocol import Driver
    from hitl_tui.errors import ExitCode
    from hitl_tui.view.diff import DiffLine

_CONTEXT = 2
_MOST = 400
_SIGNS = {"same": "    ", "added": "  + ", "removed": "  - "}


@click.command()
@click.argument("a", metavar="THREAD[@STEP]", shell_complete=complete_thread)
@click.argument("b", metavar="THREAD[@STEP]", shell_complete=complete_thread)
@store_option
@json_option
def diff(a: str, b: str, store: str | None, as_json: bool) -> int:
    """Compare two steps, threads or forks, channel by channel.

    Without @STEP the newest step is meant. Private channels are named, not compared.
    """
    from hitl_tui.cli.desk import at_desk
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings

    async def work(desk: Desk) -> ExitCode:
        from hitl_tui.cli.places import open_place
        from hitl_tui.cli.shapes import document
        from hitl_tui.errors import ExitCode

        left, right = await open_place(desk, a, reading=True), await open_place(desk, b, reading=True)
        before, after = await left.driver.state_at(left.step), await right.driver.state_at(right.step)
        rows = compared(before, after)
        if as_json:
            places = [{"thread": one.driver.thread_id, "step": one.step} for one in (left, right)]
            equal = all(row["change"] in ("same", "private") for row in rows)
            emit(document("diff", a=places[0], b=places[1], equal=equal, channels=rows, notes=desk.notes))
        else:
            say(f"--- {left.name}", f"+++ {right.name}", *diff_lines(rows))
        return ExitCode.DONE

    return at_desk(load_settings({"store": store}), open_existing, work)


def compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each channel of either state, with how it differs: same, changed, added, removed or private."""
    from hitl_tui.engine.canonical import equal
    from hitl_tui.engine.events import PRIVATE

    rows = []
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if PRIVATE in (old, new):
            rows.append({"channel": name, "change": "private", "before": PRIVATE, "after": PRIVATE})
            continue
        if name not in before or name not in after:
            change = "added" if name in after else "removed"
        else:
            change = "same" if equal(old, new) else "changed"
        rows.append({"channel": name, "change": change, "before": old, "after": new})
    return rows


def diff_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What differs, in lines; content never stands at the beginning of one."""
    from hitl_tui.view.diff import value_diff
    from hitl_tui.view.sanitise import sanitise

    shown = False
    for row in rows:
        name = sanitise(row["channel"], multiline=False)
        if row["change"] == "private":
            yield f"{name}: [private], not compared"
        elif row["change"] != "same":
            yield f"{name}: {row['change']}"
            yield from _around(value_diff(row["before"], row["after"]))
            shown = True
    if not shown:
        yield "no difference"


async def changed_since(driver: Driver, step: int, now: int) -> str:
    """What a thread's channels have become since a step, for somebody who decided about that step."""
    if not 0 <= step < now:
        return ""
    rows = compared(await driver.state_at(step), await driver.state_at(now))
    return "\n".join((f"changed since step {step}:", *diff_lines(rows)))


def _around(lines: Sequence[DiffLine]) -> Iterator[str]:
    """The changed lines with some around them, cut where there are too many."""
    from hitl_tui.plain.content import on_terminal

    near = [at for at, line in enumerate(lines) if line.kind != "same"]
    wanted = sorted(
        {at + by for at in near for by in range(-_CONTEXT, _CONTEXT + 1)} & set(range(len(lines)))
    )
    last = -1
    for at in wanted[:_MOST]:
        if at > last + 1:
            yield "    …"
        sign = _SIGNS[lines[at].kind]
        yield from (sign + row for row in on_terminal(lines[at].text, len(sign)))
        last = at
    if len(wanted) > _MOST:
        yield f"    … {len(wanted) - _MOST:,} more lines"
