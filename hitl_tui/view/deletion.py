"""What goes when threads are deleted, and what is kept of them, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.stores.deletion import Kept, Leaving
from hitl_tui.view.format import ago, count
from hitl_tui.view.sanitise import sanitise_line

_NAME = 60
_NAMED: Final = 12
_KEPT: Final[Mapping[Kept, str]] = {
    "newest": "among the last changed",
    "young": "too young",
    "waits": "running or waiting",
    "decided": "decided in by a person",
    "forked": "shared by a fork that stays",
}


def leaving_line(thread: Leaving, now: int) -> str:
    """A thread that goes: how many steps, where it stands, and with which other it goes."""
    name, of = sanitise_line(thread.thread_id, _NAME), sanitise_line(thread.of, _NAME)
    steps = count(thread.step + 1, "step")
    with_it = {"named": "", "inside": f", ran inside {of}", "fork": f", a fork of {of}"}[thread.why]
    return f"{name}: {steps}, {thread.status}, changed {ago(thread.updated_at, now)}{with_it}"


def leaving_lines(going: Sequence[Leaving], now: int) -> list[str]:
    """What goes, the first few a line each."""
    lines = [leaving_line(thread, now) for thread in going[:_NAMED]]
    rest = len(going) - _NAMED
    return [*lines, f"and {count(rest, 'more thread')}"] if rest > 0 else lines


def kept_words(kept: Mapping[Kept, int]) -> str:
    """How many threads stay, and why; "" where none was looked at."""
    parts = [f"{number:,} {_KEPT[why]}" for why, number in kept.items()]
    return f"{sum(kept.values()):,} stay: {', '.join(parts)}" if parts else ""


def entry_lines(entry: LedgerEntry) -> list[str]:
    """An entry of the store's ledger: which thread, by whom and why, and where its chains ended."""
    facts = entry.data if isinstance(entry.data, Mapping) else {}
    who = f" by {sanitise_line(entry.actor, _NAME)}" if entry.actor else ""
    account = f" ({sanitise_line(entry.account, _NAME)})" if entry.account else ""
    graph = sanitise_line(str(facts.get("graph") or "no graph"), _NAME)
    name = sanitise_line(entry.thread_id, _NAME)
    last = sanitise_line(str(facts.get("checkpoint_hash", ""))[:16], 16)
    lines = [
        f"{name} deleted{who}{account}",
        f"  {graph}, {count(entry.step + 1, 'step')}, {sanitise_line(str(facts.get('status', '')), 20)}; "
        f"newest checkpoint {last}",
    ]
    if rule := facts.get("rule"):
        lines.append(f"  {sanitise_line(str(rule), 120)}")
    if entry.note:
        lines.append(f"  {sanitise_line(entry.note, 200)}")
    return lines
