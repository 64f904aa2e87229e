"""Describes who attends to a request: who has it open, who has claimed it, who owns it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from hitl_tui.engine.log.requests import HandedOn, Request
from hitl_tui.engine.log.threads import Presence
from hitl_tui.engine.thread.measures import Reason
from hitl_tui.view.format import local_time
from hitl_tui.view.sanitise import sanitise_line

_NAME = 40
_NOTE = 200


def at_request(attending: Iterable[Presence], request: Request) -> tuple[Presence, ...]:
    """Return the people who attend to one of a thread's requests."""
    return tuple(presence for presence in attending if presence.request == request.id)


def claim_of(attending: Iterable[Presence], request: Request, now: int) -> Presence | None:
    """Return the claim on a request, None without one; it ends when the person who made it votes."""
    voted = {vote.actor for vote in request.votes}
    at = (there for there in at_request(attending, request) if there.actor not in voted)
    return next((there for there in at if there.claims and there.until > now), None)


class Attention(msgspec.Struct, frozen=True):
    """How a screen attends to requests (see `Settings`).

    Args:
        claim_minutes: how long a claim lasts.
        look_seconds: how long a card must be open before others see that.
        stays: whether the result of a decision replaces its card.
        reasons: those to pick from.
    """

    claim_minutes: float = 15
    look_seconds: float = 3
    stays: bool = False
    reasons: tuple[Reason, ...] = ()


def claim_words(attending: Sequence[Presence], me: str) -> str:
    """Return who has claimed a request and until when, "" for nobody."""
    for presence in attending:
        if presence.claims:
            who = "you have" if presence.actor == me else f"{_name(presence.actor)} has"
            return f"{who} claimed it until {local_time(presence.until)}"
    return ""


def look_words(attending: Sequence[Presence], me: str) -> str:
    """Return who has a request open elsewhere, "" for nobody."""
    others = dict.fromkeys(_name(at.actor) for at in attending if not at.claims and at.actor != me)
    words = [f"{' and '.join(others)} {'has' if len(others) == 1 else 'have'} it open"] if others else []
    if any(at.actor == me for at in attending if not at.claims):
        words.append("you have it open in another window")
    return "; ".join(words)


def handed_words(handed: HandedOn | None, me: str) -> str:
    """Return who must decide a request, who handed it over and why; "" if it was not handed over."""
    if handed is None:
        return ""
    note = f": “{sanitise_line(handed.note, _NOTE)}”" if handed.note else ""
    to = "you" if handed.to == me else _name(handed.to)
    return f"handed to {to} by {_name(handed.by)}{note}"


def escalation_words(request: Request) -> str:
    """Return to whom a request escalates or has escalated, and when; "" if it never does."""
    if not request.escalate_to:
        return ""
    names = ", ".join(map(_name, request.escalate_to))
    if request.escalate_at is None:
        return f"escalated to {names}"
    return f"escalates to {names} at {local_time(request.escalate_at)}"


def attending_words(request: Request, attending: Iterable[Presence], me: str) -> Iterator[str]:
    """Return all facts about who attends to a request, as sentences without capital and full stop.

    Args:
        me: the person who reads it.
    """
    there = at_request(attending, request)
    yield from filter(
        None,
        (
            handed_words(request.handed, me),
            escalation_words(request),
            claim_words(there, me),
            look_words(there, me),
        ),
    )


def _name(text: str) -> str:
    return sanitise_line(text, _NAME)
