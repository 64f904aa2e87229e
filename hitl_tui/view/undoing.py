"""Rollback entries in words: what would run, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hitl_tui.engine.compensation import RollbackEntry
from hitl_tui.view.sanitise import sanitise_line

_NAME, _ARGS, _WHY = 60, 120, 300


def call_of(entry: RollbackEntry) -> str:
    """The handler with what it is given, as a call on one line."""
    args = sanitise_line(json.dumps(entry.args, ensure_ascii=False, default=str), _ARGS)
    return f"{sanitise_line(entry.handler, _NAME)}({args})"


def entry_line(entry: RollbackEntry) -> str:
    """What an entry undoes, how, and how it stands."""
    line = f"{sanitise_line(entry.node, _NAME)} of step {entry.step}: {call_of(entry)}"
    if entry.state == "done":
        return f"{line}: undone"
    if entry.state == "inherited":
        return f"{line}: done before the fork, only the other thread can undo it"
    if entry.state == "failed":
        return f"{line}: failed, {sanitise_line(entry.error, _WHY)}"
    return line


def remaining(entries: Sequence[RollbackEntry]) -> tuple[RollbackEntry, ...]:
    """The entries that a rollback would run, in its order."""
    return tuple(entry for entry in entries if entry.remains)


def summary(entries: Sequence[RollbackEntry]) -> str:
    """How a rollback stands, in a few words."""
    done = sum(entry.state == "done" for entry in entries)
    left = len(remaining(entries))
    failed = sum(entry.state == "failed" for entry in entries)
    if not entries:
        return "nothing to undo"
    words = [f"{done} undone"] if done else []
    words += [f"{left - failed} to undo"] if left > failed else []
    words += [f"{failed} failed"] if failed else []
    inherited = sum(entry.state == "inherited" for entry in entries)
    words += [f"{inherited} of the other thread"] if inherited else []
    return ", ".join(words)
