"""Answers to requests: which may be applied, and when the votes of several reviewers settle one (SPEC 11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from hitl_tui.engine.channels.canonical import equal
from hitl_tui.engine.channels.schema import ChannelSchema
from hitl_tui.engine.channels.values import normalise, thaw
from hitl_tui.engine.graphs.gates import check_choice
from hitl_tui.engine.interrupts import foreign
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.log.requests import Request, Vote
from hitl_tui.engine.log.signing import Signer
from hitl_tui.errors import AnswerRefused, SchemaMismatch, ValueRejected

ANSWER = "answer:"
"""What keys of answers begin with, among what a node got from outside."""


def find_request(cursor: Cursor, wanted: str, ended: str = "") -> Request:
    """The pending request of an id.

    Args:
        ended: how the ledger says that it has ended: answer, timeout, withdrawn; "" where it doesn't.

    Raises:
        AnswerRefused: unknown, or no longer waiting.
    """
    for request in cursor.pending:
        if request.id == wanted:
            return request
    if ended == "answer":
        raise AnswerRefused(f"request {wanted} has been answered already", "see the decisions of the thread")
    if ended == "timeout":
        raise AnswerRefused(f"request {wanted} has expired", "the thread went on without the answer")
    waiting = ", ".join(f"{request.id} ({request.title})" for request in cursor.pending) or "none"
    gone = "it was withdrawn when the thread was moved on; " if ended else ""
    raise AnswerRefused(
        f"no request {wanted!r} waits in thread {cursor.thread_id!r}", f"{gone}waiting: {waiting}"
    )


def check_answer(
    request: Request,
    answer: Any,
    *,
    step: int,
    actor: str | None,
    account: str,
    signer: Signer | None,
    now: int,
) -> Any:
    """An answer that may be applied, as JSON.

    Raises:
        AnswerRefused: late, stale, unauthorised, a second vote, not signed, or not an allowed answer.
    """
    if step != request.step:
        raise AnswerRefused(
            f"the answer is about step {step}, but {request.title!r} is now about step {request.step}",
            "look at what changed, then answer again",
        )
    if request.deadline is not None and now > request.deadline:
        raise AnswerRefused(f"{request.title!r} has expired", "the thread went on without the answer")
    if request.reviewers and actor not in request.reviewers:
        raise AnswerRefused(
            f"{actor or 'an unnamed person'} may not answer {request.title!r}",
            f"reviewers: {', '.join(request.reviewers)}",
        )
    if any(vote.actor == actor for vote in request.votes) and not deadlocked(request):
        raise AnswerRefused(f"{actor} has answered {request.title!r} already", "another reviewer must answer")
    given = {one.account: one.actor for one in request.votes if one.actor != actor}
    if account in given and not request.one_account:
        raise AnswerRefused(
            f"the account {account} has answered {request.title!r} already, as {given[account]}",
            "another reviewer must answer, from their own account; one_account=True in the gate allows it",
        )
    if request.quorum > 1 and not actor:
        raise AnswerRefused(f"{request.title!r} wants {request.quorum} reviewers by name", "give an actor")
    if request.signed and not signer:
        raise AnswerRefused(
            f"{request.title!r} wants a signed decision, and no key signs yours",
            'name one: signing_key = "~/.ssh/id_ed25519" in config.toml, or HITL_TUI_SIGNING_KEY',
        )
    if request.signed and not actor:
        raise AnswerRefused(f"{request.title!r} wants a decision signed by name", "give an actor")
    return checked_value(request, answer)


def checked_value(request: Request, answer: Any) -> Any:
    """An answer, or what a timeout answers, as JSON that the request allows; raises `AnswerRefused`."""
    try:
        value = normalise(answer, f"answer to {request.title}")
        if request.shape:
            value = normalise(foreign.own_answer(request.shape, thaw(request.payload), thaw(value)), "answer")
        if request.choices and not request.shape:
            check_choice(request.choices, value)
        else:
            answer_schema(request).check_value(value)
    except (ValueRejected, SchemaMismatch) as error:
        raise AnswerRefused(error.message, error.hint) from None
    return value


def answer_schema(request: Request) -> ChannelSchema:
    """What checks the answers to a request without choices; raises `GraphInvalid` where it is no schema."""
    return ChannelSchema("answer", request.schema or {}, "whole")


def vote(
    request: Request, answer: Any, actor: str | None, note: str | None, *, account: str, now: int
) -> tuple[Request, bool]:
    """The request with one more vote, and whether that settles it."""
    if request.quorum <= 1:
        return request, True
    others = (one for one in request.votes if one.actor != actor)
    votes = (*others, Vote(actor or "", answer, now, note, account))
    return msgspec.structs.replace(request, votes=votes), _alike(votes, answer) >= request.quorum


def deadlocked(request: Request) -> bool:
    """Whether its reviewers disagree so that no answer can reach the quorum any more.

    Then each of them may change their vote; until somebody does, it waits, for its deadline at most.
    """
    if not request.reviewers or not request.votes:
        return False
    still_to_vote = len(set(request.reviewers) - {one.actor for one in request.votes})
    best = max(_alike(request.votes, one.answer) for one in request.votes)
    return best + still_to_vote < request.quorum


def _alike(votes: Sequence[Vote], answer: Any) -> int:
    return sum(equal(_decided(one.answer), _decided(answer)) for one in votes)


def _decided(answer: Any) -> Any:
    return answer["choice"] if isinstance(answer, dict) and "choice" in answer else answer
