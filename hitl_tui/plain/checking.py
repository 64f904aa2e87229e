"""Verify and replay in lines: what was checked, and each finding with what it means (SPEC 12)."""

from __future__ import annotations

from hitl_tui.drivers.protocol import Check, Checked
from hitl_tui.errors import UsageError
from hitl_tui.plain.content import content
from hitl_tui.plain.talk import Talk
from hitl_tui.view.findings import MEANING, finding_line

_KINDS: dict[str, Check] = {"": "log", "log": "log", "strict": "strict", "replay": "replay"}
_SHOWN = 50


def check(talk: Talk, typed: str) -> None:
    """Check the log against itself; "strict" reduces every update again, "replay" runs the graph again."""
    kind = _KINDS.get(typed)
    if kind is None:
        raise UsageError(f"there is no check {typed!r}", "V, V strict or V replay")
    checked: Checked = talk.run(talk.driver.check(kind, lambda done, total: None))
    talk.console.say(_counted(checked))
    for one in checked.mismatches[:_SHOWN]:
        talk.console.say(*content([finding_line(one)]), f"  {MEANING[one.kind]}")
    if len(checked.mismatches) > _SHOWN:
        talk.console.say(f"And {len(checked.mismatches) - _SHOWN} more.")


def _counted(checked: Checked) -> str:
    wrong = len(checked.mismatches)
    found = f"{wrong} findings" if wrong > 1 else "1 finding" if wrong else "Nothing is wrong"
    words = f"{found}: {checked.steps:,} steps, {checked.records:,} records"
    if checked.kind == "replay":
        words += f", the results of {checked.nodes:,} nodes served"
    return words + (f"; {checked.unchecked:,} states not compared." if checked.unchecked else ".")
