"""Who is at what waits, in words: who looks, who has claimed it, whose it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hitl_tui.engine.log.requests import HandedOn, Request
from hitl_tui.engine.log.threads import Presence
from hitl_tui.view.format import duration
from hitl_tui.view.sanitise import sanitise_line

_NAME = 40
_NOTE = 200


def at_request(attending: Iterable[Presence], request: Request) -> tuple[Presence, ...]:
    """Those who are at one of a thread's requests."""
    return tuple(presence for presence in attending if presence.request == request.id)


def claim_words(attending: Sequence[Presence], me: str, now: int) -> str:
    """Who has claimed it and for how long still, "" for nobody; `now` in microseconds."""
    for presence in attending:
        if presence.claims:
            who = "you have" if presence.actor == me else f"{_name(presence.actor)} has"
            return f"{who} claimed it, for {max(1, round((presence.until - now) / 60e6))} min still"
    return ""


def look_words(attending: Sequence[Presence], me: str) -> str:
    """Who has it open elsewhere, "" for nobody."""
    names = dict.fromkeys("you" if at.actor == me else _name(at.actor) for at in attending if not at.claims)
    return f"opened elsewhere by {', '.join(names)}" if names else ""


def handed_words(handed: HandedOn | None, me: str) -> str:
    """Whose it is to decide, by whom and why, "" where it was not passed on."""
    if handed is None:
        return ""
    note = f": “{sanitise_line(handed.note, _NOTE)}”" if handed.note else ""
    to = "you" if handed.to == me else _name(handed.to)
    return f"handed to {to} by {_name(handed.by)}{note}"


def escalation_words(request: Request, now: int) -> str:
    """To whom it escalates and when, or has; "" where it never does."""
    if not request.escalate_to:
        return ""
    names = ", ".join(map(_name, request.escalate_to))
    if request.escalate_at is None:
        return f"escalated to {names}"
    return f"escalates to {names} in {duration(max(0, request.escalate_at - now))}"


def attending_words(request: Request, attending: Iterable[Presence], me: str, now: int) -> Iterator[str]:
    """All that is to be said of who is at a request, a sentence each, without capital and full stop.

    Args:
        me: who reads it.
        now: microseconds since the epoch.
    """
    there = at_request(attending, request)
    yield from filter(
        None,
        (
            handed_words(request.handed, me),
            escalation_words(request, now),
            claim_words(there, me, now),
            look_words(there, me),
        ),
    )


def _name(text: str) -> str:
    return sanitise_line(text, _NAME)
