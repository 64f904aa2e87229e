"""Whose it is to decide what waits, in lines: claiming it, handing it over, allowing calls of a tool."""

from __future__ import annotations

from hitl_tui.engine.commands import Allow, Claim, HandOver, Revoke, Unclaim
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread.allowances import allowances
from hitl_tui.errors import UsageError
from hitl_tui.plain.context import Context
from hitl_tui.plain.deciding import ready_to, waiting_requests, which_request
from hitl_tui.view.allowances import (
    allowance_words,
    call_asked_about,
    exact_args,
    read_patterns,
)
from hitl_tui.view.lines import name, sentence, split_words
from hitl_tui.view.presence import attending_words, claim_of


def claim(context: Context, typed: str) -> None:
    """Claim what waits, or give it back; "over NAME" takes it over from NAME, who has claimed it.

    Raises:
        AnswerRefused: somebody else has claimed it.
    """
    word, _, rest = typed.partition(" ")
    take_over = rest.strip() if word == "over" else ""
    ready_to(context, Claim)
    request = which_request(context, waiting_requests(context.snapshot()), "" if take_over else typed)
    if request is None:
        return
    me, driver = context.actor, context.driver
    standing = claim_of(context.snapshot().attending, request, context.hub.now())
    if standing is not None and standing.actor == me:
        context.run(driver.execute(Unclaim(request.id, me)))
    else:
        context.run(driver.execute(Claim(request.id, me, context.claim_minutes, take_over=take_over)))
    _say_whose(context, request)


def hand_over(context: Context, typed: str) -> None:
    """Pass on what waits: a name, then why.

    Raises:
        UsageError: nobody is named.
        AnswerRefused: it is not for them to answer, or somebody else has claimed it.
    """
    to, _, note = typed.partition(" ")
    if not to.removeprefix("@"):
        raise UsageError("give a name: who gets it?", "as in: @ bob he knows them")
    snapshot = ready_to(context, HandOver)
    request = which_request(context, waiting_requests(snapshot), "")
    if request is not None:
        handed = HandOver(
            request.id, request.step, to.removeprefix("@"), context.actor, note.strip() or None,
            snapshot.state_hash,
        )  # fmt: skip
        context.run(context.driver.execute(handed))
        _say_whose(context, request)


def _say_whose(context: Context, asked: Request) -> None:
    """Who is at a request now."""
    snapshot = context.snapshot()
    request = next((other for other in snapshot.progress.pending if other.id == asked.id), asked)
    words = list(attending_words(request, snapshot.attending, context.actor)) or ["no longer claimed"]
    context.console.say(*(sentence(f"{name(request.title)}: {result}") for result in words))


def allow(context: Context, typed: str) -> None:
    """List what is allowed; "call": the call that waits; "TOOL NAME=PATTERN…"; "revoke ID".

    Raises:
        UsageError: no call waits alone, a pattern can't be read, or there is no such allowance.
    """
    word, _, rest = typed.partition(" ")
    if word:
        snapshot = ready_to(context, Revoke if word == "revoke" else Allow)
        actor, driver = context.actor, context.driver
        if word == "revoke":
            context.run(driver.execute(Revoke(rest.strip(), actor)))
        else:
            exact = word == "call"
            call = call_asked_about(snapshot.progress.pending) if exact else None
            args = exact_args(call) if call else read_patterns(split_words(rest))
            note = context.console.ask("Why (logged); empty for none:") or None
            tool = call.name if call else word
            context.run(driver.execute(Allow(tool, actor, args, exact, note=note, seen=snapshot.state_hash)))
            context.console.say("Its calls are approved when the thread continues.")
    snapshot = context.snapshot()
    known = allowances(snapshot.ledger, snapshot.thread_id)
    context.console.say(*(f"{allowance_words(allowance)}." for allowance in known))
    if not known:
        context.console.say("Nothing is allowed in this thread without asking.")
