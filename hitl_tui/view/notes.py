"""Notes of people on the steps of a thread, as words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hitl_tui.engine.log.records import NOTE, LedgerEntry
from hitl_tui.view.format import person
from hitl_tui.view.sanitise import sanitise, sanitise_line

_NAME: Final = 80


def noted_steps(ledger: Sequence[LedgerEntry]) -> frozenset[int]:
    """Return the numbers of the steps that have a note."""
    return frozenset(entry.step for entry in ledger if entry.kind == NOTE)


def notes_on(ledger: Sequence[LedgerEntry], step: int) -> tuple[LedgerEntry, ...]:
    """Return the notes on a step, oldest first."""
    return tuple(entry for entry in ledger if entry.kind == NOTE and entry.step == step)


def note_words(entry: LedgerEntry) -> str:
    """Return a note and who left it, sanitised; it may have several lines."""
    return f"note by {sanitise_line(person(entry.actor, entry.made_by), _NAME)}: {sanitise(entry.note or '')}"
