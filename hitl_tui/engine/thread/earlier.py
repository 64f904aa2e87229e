"""Tells a new request about the answer to an earlier, different request at the same place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from hitl_tui.engine.log.records import NO_PERSON, LedgerEntry
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread.binding import differences, short_text
from hitl_tui.engine.thread.logged import decisions
from hitl_tui.engine.thread.session import Session

TITLE: Final = "title"
"""Name of the title among the parts in which two requests differ."""
_COUNTING: Final = "name the parts that count:"
BINDING: Final = "binds=[{}]"
_SAID: Final = {"approve": "approved", "reject": "rejected", "continue": "continued"}
_MOST_PARTS: Final = 3


def with_earlier_answer(session: Session, request: Request, n: int | None) -> Request:
    """Return a new request that says what was answered at its place before, and what is different now.

    Args:
        n: the ledger entry of that answer; None for none.
    """
    if n is None or session.store is None:
        return request
    ledger = decisions(session.store, session.thread_id)
    answer = ledger[n - 1] if 0 < n <= len(ledger) else None
    asked = request_of(ledger, answer.request_id) if answer else None
    if answer is None or asked is None:
        return request
    return with_earlier(request, asked, answer)


def request_of(ledger: Sequence[LedgerEntry], request_id: str | None) -> LedgerEntry | None:
    """Return the entry of the ledger that opened a request."""
    return next((e for e in reversed(ledger) if e.kind == "request" and e.request_id == request_id), None)


def with_earlier(
    request: Request, asked: LedgerEntry, answer: LedgerEntry | None, binding: str = BINDING
) -> Request:
    """Return a request that says how it differs from an earlier one at its place, and how that was answered.

    Args:
        asked, answer: the ledger's entries of the earlier request and of its answer, if there is one.
        binding: how the author can name the parts of a payload that an answer is about, with {} for their
            names.
    """
    data = asked.data if isinstance(asked.data, Mapping) else {}
    old, new = data.get("payload"), request.payload
    payload = differences(old, new)
    differs = (*payload, *((TITLE,) if asked.note != request.title else ()))
    before, now = _parts(old, payload), _parts(new, payload)
    if payload:
        change = f"{before}; now it asks about {now}"
    elif differs:
        change = f"“{short_text(asked.note or '')}”; now it asks “{short_text(request.title)}”"
    else:
        what = request.subject or "what it is about, or who may answer,"
        change = f"this; {what} has changed since"
    notes = [f"{_who(answer)} {_said(answer)} {change}." if answer else f"It asked about {change}."]
    if differs and list(differs) == data.get("differs"):
        notes.append(_advice(differs, new, binding))
    return replace(request, notes=(*request.notes, *notes), differs=differs)


def _who(answer: LedgerEntry) -> str:
    return answer.actor or NO_PERSON.get(answer.made_by, "somebody")


def _said(answer: LedgerEntry) -> str:
    value = answer.data.get("answer") if isinstance(answer.data, Mapping) else None
    chosen = value.get("choice") if isinstance(value, Mapping) else value
    known = _SAID.get(chosen) if isinstance(chosen, str) else None
    return known or f"answered {short_text(value)} to"


def _parts(payload: Any, names: Sequence[str]) -> str:
    """Describe parts of a payload, as `amount 10, to ann`."""
    parts = []
    for name in names[:_MOST_PARTS]:
        value = payload
        for step in name.split(".") if name else ():
            value = value.get(step) if isinstance(value, Mapping) else None
        parts.append(f"{name} {short_text(value)}" if name else short_text(value))
    return ", ".join(parts) + (" …" if len(names) > _MOST_PARTS else "")


def _advice(differs: Sequence[str], payload: Any, binding: str) -> str:
    """Return advice for a request that is different each time it is asked."""
    named = " and ".join(name or "the payload" for name in differs)
    often = f"This question was asked again twice because of {named}, which differs each time."
    others = (
        [name for name in payload if name not in {part.partition(".")[0] for part in differs}]
        if (isinstance(payload, Mapping))
        else []
    )
    if TITLE in differs:
        return f"{often} Leave what changes out of the title."
    if not others:
        return f"{often} Give the payload as a mapping, and {_COUNTING} {binding.format('…')}."
    listed = ", ".join(f'"{name}"' for name in others)
    return f"{often} If it does not matter for the decision, {_COUNTING} {binding.format(listed)}."
