"""Describes rollback entries: what would run, and the result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from hitl_tui.engine.graph.compensation import RollbackEntry
from hitl_tui.view.glyphs import UNICODE
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Role, Span, untrusted

_NAME, _ARGS, _WHY = 60, 120, 300


def call_of(entry: RollbackEntry) -> str:
    """Return a handler with its arguments, as a call on one line."""
    args = sanitise_line(json.dumps(entry.args, ensure_ascii=False, default=str), _ARGS)
    return f"{sanitise_line(entry.handler, _NAME)}({args})"


def entry_line(entry: RollbackEntry) -> str:
    """Describe what an entry undoes, how, and its status."""
    inside = f" in {sanitise_line(entry.thread, _NAME)}" if entry.thread else ""
    line = f"{sanitise_line(entry.node, _NAME)} of step {entry.step}{inside}: {call_of(entry)}"
    if entry.state == "done":
        return f"{line}: undone"
    if entry.state == "inherited":
        return f"{line}: done before the fork; only the other thread can undo it"
    if entry.state == "failed":
        return f"{line}: failed, {sanitise_line(entry.error, _WHY)}"
    return line


def remaining(entries: Sequence[RollbackEntry]) -> tuple[RollbackEntry, ...]:
    """Return the entries that a rollback would run, in order."""
    return tuple(entry for entry in entries if entry.remains)


def summary(entries: Sequence[RollbackEntry]) -> str:
    """Describe the status of a rollback in a few words."""
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


_MARKS: Final[Mapping[str, tuple[str, Role]]] = {
    "open": (UNICODE.pending, "dim"),
    "done": (UNICODE.done, "ok"),
    "failed": (UNICODE.failed, "error"),
    "inherited": (UNICODE.same, "dim"),
}


def entry_rows(entries: Sequence[RollbackEntry], running: str = "", thread: str = "") -> list[Line]:
    """Return the entries as rows in the order they run: who did what, the call that undoes it, its status.

    `running` names the handler that runs now, "" for none. `thread` is the subgraph's thread in which it
    runs, "" for the thread itself.
    """
    rows: list[Line] = []
    for number, entry in enumerate(entries, 1):
        now = bool(running) and (entry.runs_as, entry.thread) == (running, thread) and entry.remains
        mark: tuple[str, Role] = (UNICODE.running, "node") if now else _MARKS[entry.state]
        glyph, role = mark
        state = "  of the other thread" if entry.state == "inherited" else ""
        inside: Line = ()
        if entry.thread:
            inside = (Span("  in ", "dim"), untrusted(entry.thread, "name", limit=_NAME))
        rows.append(
            (
                Span(f"{number:>2} {glyph} ", role),
                untrusted(entry.node, "name", limit=_NAME),
                Span(f"  step {entry.step}{'  runs now' if now else state}", "dim"),
                *inside,
            )
        )
        rows.append((Span("     "), untrusted(call_of(entry), "value", limit=_NAME + _ARGS)))
        if entry.state == "failed" and not now:
            rows.append((Span("     "), untrusted(entry.error, "error", limit=_WHY)))
    return rows
