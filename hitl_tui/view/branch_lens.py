"""The reducer lens of a step with branches: its updates by branch, in the order of the commit.

✔ scan[0]  0.3 s
findings  append
  list 0 + {path}
  → list 1
✗ scan[1]  failed after 2 attempts, 1.2 s
  the page is gone
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hitl_tui.engine.log.events import AppliedUpdate
from hitl_tui.engine.log.outcomes import BranchOutcome
from hitl_tui.view.branch_words import overwriters, phase_words
from hitl_tui.view.format import count, duration
from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.inside import why_failed
from hitl_tui.view.lens import lens, update_lines
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Span, trusted, untrusted

_SHOWN: Final = 40
_NAMED: Final = 8
_NAME: Final = 60
_WIDE: Final = 240


def branch_lens(
    updates: Sequence[AppliedUpdate],
    branches: Sequence[BranchOutcome],
    glyphs: Glyphs = UNICODE,
    most: int = _SHOWN,
) -> tuple[Line, ...]:
    """Lines for all updates of a step by its branches; of many branches the first `most`.

    Branches that were not needed are named in one line at the end.
    """
    if not branches:
        return lens(updates, glyphs)
    groups: dict[str, list[AppliedUpdate]] = {one.path: [] for one in branches}
    for update in updates:
        groups.setdefault(update.path, []).append(update)
    by = overwriters(updates)
    begun = [one for one in branches if one.status != "unneeded"]
    lines: list[Line] = []
    for outcome in begun[:most]:
        lines += outcome_lines(outcome, glyphs)
        for update in groups[outcome.path]:
            lines += update_lines(update, glyphs)
            if update.channel in outcome.overridden:
                lines.append(_overwritten(by.get((outcome.path, update.channel), "")))
    if len(begun) > most:
        lines.append((trusted(f"{glyphs.ellipsis} and {len(begun) - most:,} more branches", "dim"),))
    known = {one.path for one in branches}
    lines += lens([update for update in updates if update.path not in known], glyphs)
    return (*lines, *_unneeded([one for one in branches if one.status == "unneeded"], glyphs))


def outcome_lines(outcome: BranchOutcome, glyphs: Glyphs = UNICODE, message: int = _WIDE) -> list[Line]:
    """A branch and what became of it; why, where it failed."""
    glyph, word, role = phase_words(outcome.status, glyphs)
    facts = [word] if outcome.status != "ok" else []
    if outcome.attempts > 1:
        facts.append(f"after {count(outcome.attempts, 'attempt')}")
    words = " ".join(facts)
    took = duration(outcome.duration) if outcome.attempts else ""
    said = ", ".join(part for part in (words, took) if part)
    thread: tuple[Span, ...] = ()
    if outcome.thread:
        thread = (trusted("  thread ", "dim"), untrusted(outcome.thread, "name", _WIDE))
    lines: list[Line] = [
        (
            trusted(f"{glyph} ", role),
            untrusted(outcome.path, "node", _NAME),
            trusted(f"  {said}", role),
            *thread,
        )
    ]
    if outcome.error is not None:
        lines.append((trusted("  "), untrusted(why_failed(outcome), "error", message)))
        if outcome.error.hint:
            lines.append((trusted("  "), untrusted(outcome.error.hint, "dim", message)))
    return lines


def _overwritten(by: str) -> Line:
    who = (trusted(" by ", "warning"), untrusted(by, "warning", _NAME)) if by else ()
    return (trusted("  overwritten", "warning"), *who)


def _unneeded(branches: Sequence[BranchOutcome], glyphs: Glyphs) -> list[Line]:
    if not branches:
        return []
    names = ", ".join(sanitise_line(one.path, _NAME) for one in branches[:_NAMED])
    more = f" and {len(branches) - _NAMED} more" if len(branches) > _NAMED else ""
    return [(trusted(f"{glyphs.pending} {len(branches)} not needed: {names}{more}", "dim"),)]
