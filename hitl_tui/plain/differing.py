"""What differs between two states, channel by channel, in lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hitl_tui.drivers.protocol import Driver
from hitl_tui.plain.content import on_terminal
from hitl_tui.view.compare import compare_states
from hitl_tui.view.diff import DiffLine, value_diff
from hitl_tui.view.difference import near_changes
from hitl_tui.view.sanitise import sanitise

_SIGNS = {"same": "    ", "added": "  + ", "removed": "  - "}


def compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each channel of either state, with how it differs: same, changed, added, removed or private."""
    return [
        {"channel": row.channel, "change": row.change, "before": row.before, "after": row.after}
        for row in compare_states(before, after)
    ]


def diff_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What differs, in lines; content never stands at the beginning of one."""
    shown = False
    for row in rows:
        name = sanitise(row["channel"], multiline=False)
        if row["change"] == "private":
            yield f"{name}: [private], not compared"
        elif row["change"] != "same":
            yield f"{name}: {row['change']}"
            yield from changed_lines(value_diff(row["before"], row["after"]))
            shown = True
    if not shown:
        yield "no difference"


async def changed_since(driver: Driver, step: int, now: int) -> str:
    """What a thread's channels have become since a step, for somebody who decided about that step."""
    if not 0 <= step < now:
        return ""
    rows = compared(await driver.state_at(step), await driver.state_at(now))
    return "\n".join((f"changed since step {step}:", *diff_lines(rows)))


def changed_lines(lines: Sequence[DiffLine]) -> Iterator[str]:
    """The changed lines with some around them, cut where there are too many."""
    shown, left = near_changes(lines)
    for line in shown:
        if line is None:
            yield "    …"
        else:
            sign = _SIGNS[line.kind]
            yield from (sign + row for row in on_terminal(line.text, len(sign)))
    if left:
        yield f"    … {left:,} more lines"
