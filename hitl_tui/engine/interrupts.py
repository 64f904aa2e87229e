"""Requests to humans: opening them, checking answers, quorum and deadlines (SPEC 11)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from hitl_tui.engine.canonical import equal
from hitl_tui.engine.gates import Gate, check_choice
from hitl_tui.engine.records import Choice, Cursor, Request, Vote, When
from hitl_tui.engine.schema import ChannelSchema
from hitl_tui.engine.state import WorkflowState
from hitl_tui.engine.values import normalise
from hitl_tui.errors import AnswerRefused, SchemaMismatch, ValueRejected

KINDS = ("approve", "edit", "choose", "ask")
_APPROVE = (Choice("approve", "approve", "a"), Choice("reject", "reject", "r"))
_GO_ON = (Choice("continue", "go on", "c"),)
_REQUEST_KEYS = {
    "kind", "title", "payload", "subject", "schema", "choices", "recommended",
    "reviewers", "quorum", "deadline", "on_timeout", "risk",
}  # fmt: skip


class InterruptRaised(BaseException):
    """A node asked a human; not an Exception, so that a node's own `except` does not swallow it."""

    def __init__(self, request: Request) -> None:
        super().__init__(request.title)
        self.request = request


def request_id(cursor: Cursor, node: str, when: When, order: int = 0) -> str:
    """An id that is the same each time the same question of the same thread is asked."""
    text = f"{cursor.thread_id}\0{cursor.invocation}\0{cursor.head}\0{node}\0{when}\0{order}"
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]


def breakpoint_request(cursor: Cursor, node: str, when: When, now: int) -> Request:
    """The request of a plain `interrupt_before` / `interrupt_after`; resuming passes it."""
    return Request(
        id=request_id(cursor, node, when),
        kind="approve",
        node=node,
        when=when,
        step=cursor.head,
        title=f"stopped {when} {node}",
        choices=_GO_ON,
        recommended="continue",
        breakpoint=True,
        asked_at=now,
    )


def gate_request(cursor: Cursor, gate: Gate, when: When, state: WorkflowState, now: int) -> Request:
    """The request of a gate on the state as it is."""
    payload = gate.payload(state) if gate.payload else None
    return Request(
        id=request_id(cursor, gate.node, when),
        kind=gate.kind,
        node=gate.node,
        when=when,
        step=cursor.head,
        title=gate.title,
        payload=normalise(payload, gate.title),
        subject=gate.subject,
        choices=tuple(choice.choice for choice in gate.choices),
        recommended=gate.recommended,
        reviewers=tuple(gate.reviewers),
        quorum=gate.quorum,
        deadline=None if gate.deadline is None else now + int(gate.deadline * 1e6),
        on_timeout=gate.on_timeout,
        risk=gate.risk,
        asked_at=now,
    )


def inside_request(cursor: Cursor, node: str, order: int, asked: Any, now: int) -> Request:
    """The request of `config.interrupt(asked)`: a mapping with a known `kind`, or any payload."""
    given: Mapping[str, Any] = {"kind": "ask", "payload": asked}
    if isinstance(asked, Mapping) and asked.get("kind") in KINDS and set(asked) <= _REQUEST_KEYS:
        given = asked
    kind = given["kind"]
    choices = tuple(
        Choice(item, item) if isinstance(item, str) else msgspec.convert(dict(item), Choice)
        for item in given.get("choices", ())
    )
    deadline = given.get("deadline")
    return Request(
        id=request_id(cursor, node, "inside", order),
        kind=kind,
        node=node,
        when="inside",
        step=cursor.head,
        title=str(given.get("title") or f"{node} asks"),
        payload=normalise(given.get("payload"), node),
        subject=given.get("subject"),
        schema=given.get("schema"),
        choices=choices or (_APPROVE if kind == "approve" else ()),
        recommended=given.get("recommended"),
        order=order,
        reviewers=tuple(given.get("reviewers", ())),
        quorum=int(given.get("quorum", 1)),
        deadline=None if deadline is None else now + int(deadline * 1e6),
        on_timeout=given.get("on_timeout"),
        risk=given.get("risk", "normal"),
        asked_at=now,
    )


def find_request(cursor: Cursor, wanted: str, answered: bool) -> Request:
    """The pending request of an id.

    Args:
        answered: whether the ledger knows an answer to it.

    Raises:
        AnswerRefused: unknown, or answered before.
    """
    for request in cursor.pending:
        if request.id == wanted:
            return request
    if answered:
        raise AnswerRefused(f"request {wanted} has been answered already", "see the decisions of the thread")
    waiting = ", ".join(f"{request.id} ({request.title})" for request in cursor.pending) or "none"
    raise AnswerRefused(f"no request {wanted!r} waits in thread {cursor.thread_id!r}", f"waiting: {waiting}")


def check_answer(request: Request, answer: Any, *, step: int, actor: str | None, now: int) -> Any:
    """An answer that may be applied, as JSON.

    Raises:
        AnswerRefused: late, stale, unauthorised, a second vote, or not an allowed answer.
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
    if any(vote.actor == actor for vote in request.votes):
        raise AnswerRefused(f"{actor} has answered {request.title!r} already", "another reviewer must answer")
    if request.quorum > 1 and not actor:
        raise AnswerRefused(f"{request.title!r} wants {request.quorum} reviewers by name", "give an actor")
    return _checked_value(request, answer)


def _checked_value(request: Request, answer: Any) -> Any:
    try:
        value = normalise(answer, f"answer to {request.title}")
        if request.choices:
            check_choice(request.choices, value)
        elif request.schema:
            ChannelSchema("answer", request.schema, "whole", appends=False, picks=False).check_value(value)
    except (ValueRejected, SchemaMismatch) as error:
        raise AnswerRefused(error.message, error.hint) from None
    return value


def vote(
    request: Request, answer: Any, actor: str | None, note: str | None, now: int
) -> tuple[Request, bool]:
    """The request with one more vote, and whether that settles it."""
    if request.quorum <= 1:
        return request, True
    votes = (*request.votes, Vote(actor or "", answer, now, note))
    alike = sum(equal(_decided(one.answer), _decided(answer)) for one in votes)
    return msgspec.structs.replace(request, votes=votes), alike >= request.quorum


def _decided(answer: Any) -> Any:
    return answer["choice"] if isinstance(answer, dict) and "choice" in answer else answer
