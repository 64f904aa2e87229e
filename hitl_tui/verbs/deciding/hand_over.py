"""Hand the request of a thread over to another person.

NAME sees it as theirs, and others see whose it is; anyone who may answer it still can. The ledger keeps
who handed it over. Where reviewers are named, NAME must be one of them.

    hitl-tui hand-over r1 bob --note "you know the customer"
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from hitl_tui.engine.commands import Claim, HandOver
from hitl_tui.engine.log.requests import Request
from hitl_tui.verbs.attending import REQUEST, TAKE_OVER, request_of, which_request, who_attends
from hitl_tui.verbs.conversation import NOTE, Ask, AskChoice, AskField, At, Do, Talk, Verb
from hitl_tui.view.actions import Action, card_open
from hitl_tui.view.sanitise import sanitise_line

_NAME: Final = AskField("name", "to (name)", required=True)
_NOTE: Final = replace(NOTE, label="note for them (optional)")


async def _talk(at: At) -> Talk:
    """Ask to whom a request is handed over, and why."""
    snapshot, chosen = await at.driver.snapshot(), ""
    if (which := which_request(at, snapshot)) is not None:
        if (reply := (yield which)) is None:
            return
        chosen = reply.choice
    request = request_of(at, snapshot, chosen)
    reply = yield _question(request)
    if reply is None:
        return
    to, note = reply.fields["name"].strip().removeprefix("@"), reply.text("note")
    if take_over := reply.text("take_over"):
        yield Do(Claim(request.id, at.actor, at.claim_minutes, take_over=take_over, note=note))
    yield Do(HandOver(request.id, request.step, to, at.actor, note, at.seen))
    yield await who_attends(at, request)


def _question(request: Request) -> Ask:
    reviewers = [f"Reviewers: {sanitise_line(', '.join(request.reviewers), 200)}"]
    return Ask(
        "Hand over",
        (
            sanitise_line(request.title, 200),
            "It becomes theirs. Others who may answer still can.",
            *(reviewers if request.reviewers else ()),
        ),
        (AskChoice("hand", "h", "hand it over"),),
        (_NAME, _NOTE, TAKE_OVER),
    )


VERB = Verb(
    HandOver,
    _talk,
    Action(
        "card.hand",
        "@",
        "Hand over",
        "Hand the request over to somebody, with a note",
        "Card",
        card_open,
        footer=4,
        offered=True,
    ),
    after="card.claim",
    letter="@",
    arguments=(_NAME,),
    options=(REQUEST, TAKE_OVER, _NOTE),
)
