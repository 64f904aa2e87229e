"""Claim the request of a thread for a while.

Until it ends, others can't answer the request. It ends after its time, when you answer, or with
`unclaim`. Others can take it over from you by name, which the ledger keeps.

    hitl-tui claim r1
    hitl-tui claim r1 --for 2h --take-over bob
"""

from __future__ import annotations

from typing import Final

from msgspec import structs

from hitl_tui.engine.commands import Claim, Unclaim
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.threads import Presence
from hitl_tui.verbs.attending import REQUEST, TAKE_OVER, minutes_of, request_of, which_request, who_attends
from hitl_tui.verbs.conversation import NOTE, Ask, AskChoice, AskField, At, Do, Talk, Verb
from hitl_tui.view.actions import Action, card_has_keys
from hitl_tui.view.presence import claim_of
from hitl_tui.view.sanitise import sanitise_line

_FOR: Final = AskField(
    "for",
    "for how long, as 90s, 15m or 2h",
    about="How long, as 90s, 15m or 2h; the setting claim_minutes.",
    metavar="TIME",
)


async def _talk(at: At) -> Talk:
    """Claim a request, or release it if it is yours; take it over from somebody else after a question."""
    snapshot, chosen = await at.driver.snapshot(), ""
    if (which := which_request(at, snapshot)) is not None:
        if (reply := (yield which)) is None:
            return
        chosen = reply.choice
    request = request_of(at, snapshot, chosen)
    own = claimed(at, request)
    there = claim_of(snapshot.attending, request, at.hub.now())
    toggles = not at.leaves and at.given.keys() <= {REQUEST.name}
    if there is not None and there.actor == at.actor and toggles:
        yield Do(Unclaim(request.id, at.actor))
    elif there is None or there.actor == at.actor or at.leaves or own.take_over:
        yield Do(own)
    else:
        reply = yield _take_over(request, there, at.hub.now())
        if reply is None:
            return
        yield Do(structs.replace(own, take_over=there.actor, note=reply.text("note")))
    yield await who_attends(at, request)


def claimed(at: At, request: Request) -> Claim:
    """Return the command that claims a request as was typed.

    Raises:
        UsageError: what was typed for how long is not a time.
    """
    return Claim(
        request.id,
        at.actor,
        minutes_of(at.given.get("for", "")) or at.claim_minutes,
        lasts=at.leaves or "for" in at.given,
        take_over=at.given.get("take_over", ""),
        note=at.given.get("note", "").strip() or None,
    )


def _take_over(request: Request, there: Presence, now: int) -> Ask:
    from hitl_tui.view.queue import left_words

    who = sanitise_line(there.actor, 80)
    return Ask(
        "Take it over?",
        (
            sanitise_line(request.title, 200),
            f"{who} has claimed it, {left_words(there, now)}. That you take it over is logged.",
        ),
        (AskChoice("take", "t", f"take it over from {who}", final=True),),
        (NOTE,),
    )


VERB = Verb(
    Claim,
    _talk,
    Action(
        "card.claim",
        "k",
        "Claim",
        "Claim the request for a while, or give it back",
        "Card",
        card_has_keys,
        footer=3,
        offered=True,
    ),
    after="card.edit",
    letter="k",
    options=(REQUEST, _FOR, TAKE_OVER, NOTE),
)
