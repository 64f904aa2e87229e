"""Interrupts: requests that stop a run, their ledger entries, and the answers that they accept.

Specified in docs/spec/threads.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.graph.compiled import CompiledGraph
from hitl_tui.engine.graph.gates import (
    Gate,
    check_binds,
    check_choice,
    check_escalation,
    check_rubric,
    check_second_reading,
    check_terms,
    escalates_at,
)
from hitl_tui.engine.log.outcomes import KeptAnswer, PassedGate
from hitl_tui.engine.log.records import Cursor, LedgerEntry
from hitl_tui.engine.log.requests import Choice, Request, RequestKind, Terms, Vote, When
from hitl_tui.engine.log.signing import Signer
from hitl_tui.engine.log.taint import Taint
from hitl_tui.engine.state.canonical import equal
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.state.schema import ChannelSchema, as_schema
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.state.values import keepable, normalise
from hitl_tui.engine.state.workflow_state import StateView, WorkflowState
from hitl_tui.engine.thread import approval_formats, journal
from hitl_tui.engine.thread.authors import Authors, authors_of, check_author
from hitl_tui.engine.thread.binding import about_hash, digests_of, request_hash
from hitl_tui.engine.thread.earlier import request_of, with_earlier_answer
from hitl_tui.engine.thread.listed import for_lists
from hitl_tui.engine.thread.logged import decisions
from hitl_tui.engine.thread.session import Session
from hitl_tui.engine.thread.titles import question_title
from hitl_tui.errors import AnswerRefused, SchemaMismatch, UsageError, ValueRejected

_GONE = {
    "withdrawn": "it was withdrawn when the thread continued elsewhere",
    "reopened": "it is asked again under a new id, because what it is about has changed",
}


def find_request(cursor: Cursor, wanted: str, ended: str = "") -> Request:
    """Return the pending request with an id.

    Args:
        ended: how it has ended by the ledger, as `how_it_ended` returns it; "" if it has not.

    Raises:
        AnswerRefused: unknown, or no longer waiting.
    """
    for request in cursor.pending:
        if request.id == wanted:
            return request
    if ended == "answer":
        raise AnswerRefused(f"request {wanted} has been answered already", "see the decisions of the thread")
    if ended == "timeout":
        raise AnswerRefused(f"request {wanted} has expired", "the thread continued without the answer")
    with_request = ", ".join(f"{request.id} ({request.title})" for request in cursor.pending) or "none"
    where = f"waits in thread {cursor.thread_id!r}"
    gone = f"request {wanted!r} no longer {where}: {_GONE[ended]}" if ended in _GONE else ""
    raise AnswerRefused(gone or f"no request {wanted!r} {where}", f"waiting: {with_request}")


def check_answer(
    request: Request,
    answer: Any,
    *,
    step: int,
    head: int,
    actor: str | None,
    account: str,
    roles: Sequence[str] = (),
    authors: Authors = Authors(),  # noqa: B008 (it is immutable)
    login: str = "",
    signer: Signer | None,
    now: int,
) -> Any:
    """Check that an answer may be applied; return it as JSON.

    Args:
        step: the step that the answer names: that of the request, or a later one that has not changed it.
        head: the newest step.
        authors, login: of the thread, and the database login of the answer, for a request with `four_eyes`.
        roles: the database login that it comes from and the groups of that, as `Store.roles` has them.

    Raises:
        AnswerRefused: late, stale, unauthorised, a second vote, not signed, or not an allowed answer.
    """
    if not request.step <= step <= head:
        raise AnswerRefused(
            f"the answer is about step {step}, but {request.title!r} is about step {request.step}",
            "look at what changed, then answer again",
        )
    if request.deadline is not None and now > request.deadline:
        raise AnswerRefused(f"{request.title!r} has expired", "the thread continued without the answer")
    check_reviewer(request, actor)
    _check_login(request, actor, roles)
    check_author(request, actor, account, login, authors)
    given = {vote.account: vote.actor for vote in request.votes if vote.actor != actor}
    if account in given and not request.one_account:
        raise AnswerRefused(
            f"the account {account} has answered {request.title!r} already, as {given[account]}",
            "another reviewer must answer, from their own account; one_account=True in the gate allows it",
        )
    if request.quorum > 1 and not actor:
        raise AnswerRefused(f"{request.title!r} needs {request.quorum} reviewers by name", "give an actor")
    if request.signed and not signer:
        raise AnswerRefused(
            f"{request.title!r} needs a signed decision, and you have no signing key",
            'name one: signing_key = "~/.ssh/id_ed25519" in config.toml, or HITL_TUI_SIGNING_KEY',
        )
    if request.signed and not actor:
        raise AnswerRefused(f"{request.title!r} needs a decision signed by name", "give an actor")
    return checked_value(request, answer)


def check_reviewer(request: Request, actor: str | None) -> None:
    """Refuse a person who may not answer a request, or has answered it; raises `AnswerRefused`."""
    if request.reviewers and actor not in request.reviewers:
        raise AnswerRefused(
            f"{actor or 'an unnamed person'} may not answer {request.title!r}",
            f"reviewers: {', '.join(request.reviewers)}",
        )
    if has_voted(request, actor):
        raise AnswerRefused(f"{actor} has answered {request.title!r} already", "another reviewer must answer")


def _check_login(request: Request, actor: str | None, roles: Sequence[str]) -> None:
    """Refuse a database login that may not answer a request, or has answered it."""
    if not request.logins:
        return
    wanted = f"logins: {', '.join(request.logins)}"
    if not roles:
        raise AnswerRefused(
            f"{request.title!r} needs a database login, and this store has none",
            f"{wanted}; keep the thread in PostgreSQL: --store postgresql://…",
        )
    if not set(request.logins) & set(roles):
        raise AnswerRefused(f"login {roles[0]!r} may not answer {request.title!r}", wanted)
    others = {vote.login: vote.actor for vote in request.votes if vote.actor != actor}
    if roles[0] in others:
        raise AnswerRefused(
            f"login {roles[0]!r} has answered {request.title!r} already, as {others[roles[0]]}",
            "another login must answer",
        )


def checked_value(request: Request, answer: Any) -> Any:
    """Return an answer, or the one of a deadline, as JSON that the request allows; raises `AnswerRefused`."""
    try:
        value = normalise(answer, what=f"the answer to {request.title!r}")
        if request.shape:
            value = normalise(
                approval_formats.own_answer(request.shape, thaw(request.payload), thaw(value)),
                what="the answer",
            )
        if request.choices and not request.shape:
            check_choice(request.choices, value)
        else:
            answer_schema(request).check_value(value)
    except (ValueRejected, SchemaMismatch) as error:
        raise AnswerRefused(error.message, error.hint) from None
    return value


def answer_schema(request: Request) -> ChannelSchema:
    """Return the schema for answers to a request without choices; raises `GraphInvalid` if it is invalid."""
    return ChannelSchema("answer", request.schema or {}, "whole")


def vote(
    request: Request, answer: Any, actor: str | None, note: str | None, *, account: str, login: str, now: int
) -> tuple[Request, bool]:
    """Return the request with one more vote, and whether that reaches the quorum."""
    if request.quorum <= 1:
        return request, True
    others = (cast for cast in request.votes if cast.actor != actor)
    votes = (*others, Vote(actor or "", answer, now, note, account, login))
    return msgspec.structs.replace(request, votes=votes), _votes_like(votes, answer) >= request.quorum


def has_voted(request: Request, actor: str | None) -> bool:
    """Whether a person has voted already, so that another vote of theirs is refused."""
    return any(vote.actor == actor for vote in request.votes) and not is_deadlocked(request)


def is_deadlocked(request: Request) -> bool:
    """Whether its reviewers disagree so much that no answer can reach the quorum.

    Then each of them may change their vote. Until one does, the request waits, at most until its deadline.
    """
    if not request.reviewers or not request.votes:
        return False
    still_to_vote = len(set(request.reviewers) - {vote.actor for vote in request.votes})
    best = max(_votes_like(request.votes, vote.answer) for vote in request.votes)
    return best + still_to_vote < request.quorum


def _votes_like(votes: Sequence[Vote], answer: Any) -> int:
    return sum(equal(_decided(vote.answer), _decided(answer)) for vote in votes)


def _decided(answer: Any) -> Any:
    return answer["choice"] if isinstance(answer, dict) and "choice" in answer else answer


KINDS = ("approve", "edit", "choose", "ask")
_APPROVE = (Choice("approve", "approve", "a"), Choice("reject", "reject", "r"))
_GO_ON = (Choice("continue", "go on", "c"),)
_TYPES = ((bool, "boolean"), (str, "string"), (int | float, "number"), (list, "array"), (dict, "object"))


class _QuestionFields(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of `Request` that a node may set in its question."""

    kind: RequestKind
    title: str | None = None
    payload: Any = None
    subject: str | None = None
    schema: dict[str, Any] | None = None
    choices: tuple[Choice | str, ...] = ()
    recommended: str | None = None
    reviewers: tuple[str, ...] = ()
    quorum: int = 1
    one_account: bool = False
    logins: tuple[str, ...] = ()
    signed: bool = False
    four_eyes: bool = False
    rubric: tuple[str, ...] = ()
    second_reading: float = 0.0
    deadline: float | None = None
    on_timeout: Any = None
    escalate_to: tuple[str, ...] = ()
    escalate_after: float | None = None
    risk: Literal["normal", "high"] = "normal"
    binds: tuple[str, ...] = ()


class InterruptRaised(BaseException):
    """A node asks a person; not an Exception, so that a node's own `except Exception` does not catch it.

    Args:
        earlier: an answer to a different request at the same place, which the node has not made again.
    """

    def __init__(self, request: Request, earlier: KeptAnswer | None = None) -> None:
        super().__init__(request.title)
        self.request = request
        self.earlier = earlier


def with_identity(cursor: Cursor, request: Request) -> Request:
    """Return the request with the hash of what it asks, and an id that no other request of the thread has."""
    asks = request_hash(request)
    facts = f"{cursor.thread_id}\0{cursor.invocation}\0{cursor.head}\0{cursor.ledger_n}\0{asks}"
    own = hashlib.sha256(facts.encode(errors="replace")).hexdigest()[:12]
    return replace(request, id=own, request_hash=asks)


def breakpoint_request(cursor: Cursor, node: str, when: When, now: int, title: str = "") -> Request:
    """Make the request of a plain `interrupt_before` / `interrupt_after`; resuming answers it."""
    request = Request(
        id="",
        kind="approve",
        node=node,
        when=when,
        step=cursor.head,
        title=title or f"stopped {when} {node}",
        choices=_GO_ON,
        recommended="continue",
        breakpoint=True,
        asked_at=now,
    )
    return with_identity(cursor, request)


def stop_request(cursor: Cursor, node: str, why: str, now: int, *, key: str, path: str = "") -> Request:
    """Make the request of a breakpoint inside a node; resuming answers it."""
    request = Request(
        id="",
        kind="approve",
        node=node,
        when="inside",
        step=cursor.head,
        title=keepable(why),
        choices=_GO_ON,
        recommended="continue",
        breakpoint=True,
        asked_at=now,
        key=key,
        path=path,
    )
    return with_identity(cursor, request)


def gate_request(
    cursor: Cursor, gate: Gate, when: When, state: WorkflowState, *, now: int, about: Mapping[str, bytes]
) -> Request:
    """Make the request of a gate on the current state.

    Args:
        about: the digests of the values that it is about.
    """
    payload = gate.payload(state) if gate.payload else None
    request = Request(
        id="",
        kind=gate.kind,
        node=gate.node,
        when=when,
        step=cursor.head,
        title=gate.title,
        payload=normalise(payload, what=f"the payload of the gate {gate.title!r}"),
        subject=gate.subject,
        choices=tuple(choice.choice_in(state) for choice in gate.choices),
        recommended=gate.recommended,
        reviewers=tuple(gate.reviewers),
        quorum=gate.quorum,
        one_account=gate.one_account,
        logins=tuple(gate.logins),
        signed=gate.signed,
        four_eyes=gate.four_eyes,
        rubric=tuple(gate.rubric),
        second_reading=float(gate.second_reading),
        deadline=None if gate.deadline is None else now + int(gate.deadline * 1e6),
        on_timeout=gate.on_timeout,
        escalate_to=tuple(gate.escalate_to),
        escalate_at=escalates_at(gate.escalate_after, gate.deadline, now),
        risk=gate.risk,
        asked_at=now,
        about_hash=about_hash(about),
        terms=Terms(gate.deadline, gate.escalate_after, tuple(gate.binds)),
    )
    return with_identity(cursor, request)


def inside_request(
    cursor: Cursor,
    node: str,
    question: Any,
    now: int,
    *,
    key: str = "",
    path: str = "",
    binds: Sequence[str] = (),
    digests: Callable[[Sequence[str]], Mapping[str, bytes]] = lambda _names: {},
    item: bytes = b"",
) -> Request:
    """Make the request of `config.interrupt(question)`: a mapping with a known `kind`, or any payload.

    Kinds have defaults: `approve` accepts approve or reject, `edit` a value of the payload's type, `ask`
    anything; `choose` must have choices. A payload in the format of another tool (see `approval_formats`) is
    answered in that format, which is also checked by a schema if one is given.

    Args:
        binds: the parts of the payload that an answer is about, besides those that the question itself names.
        digests: returns the digests of values in the state, by name.
        item: the digest of the item of a map's branch.

    Returns:
        The request, which `with_identity` gives its hash and its id.

    Raises:
        UsageError, GraphInvalid, ValueRejected: it can't be stored, or could never be answered.
    """
    asked = _read_question(question)
    check_rubric(asked.rubric)
    check_second_reading(asked.second_reading)
    check_terms(asked.reviewers, asked.quorum, asked.deadline, asked.logins)
    check_escalation(asked.reviewers, asked.escalate_to, asked.escalate_after, asked.deadline)
    plain = not asked.choices and asked.kind in ("ask", "approve")
    shape = approval_formats.shape_of(asked.payload) if plain else ""
    actions = approval_formats.actions_of(shape, asked.payload)
    request = Request(
        id="",
        kind="approve" if shape else asked.kind,
        node=node,
        when="inside",
        step=cursor.head,
        title=asked.title
        or (
            approval_formats.title_of(actions)
            if shape
            else question_title(asked.payload, path or node, asked.kind)
        ),
        payload=asked.payload,
        subject=asked.subject,
        schema=_default_schema(asked) if asked.schema is None else asked.schema,
        choices=approval_formats.choices_of(actions) if shape else _choices(asked),
        recommended=asked.recommended,
        reviewers=asked.reviewers,
        quorum=asked.quorum,
        one_account=asked.one_account,
        logins=asked.logins,
        signed=asked.signed,
        four_eyes=asked.four_eyes,
        rubric=asked.rubric,
        second_reading=asked.second_reading,
        deadline=None if asked.deadline is None else now + int(asked.deadline * 1e6),
        escalate_to=asked.escalate_to,
        escalate_at=escalates_at(asked.escalate_after, asked.deadline, now),
        risk=asked.risk,
        asked_at=now,
        shape=shape,
        key=key,
        path=path,
    )
    answer_schema(request)
    if request.choices and request.recommended is not None:
        check_choice(request.choices, request.recommended)
    if asked.on_timeout is not None:
        request = replace(request, on_timeout=checked_value(request, asked.on_timeout))
    about = about_hash(digests([asked.subject])) if asked.subject else ""
    check_binds(binds)
    terms = Terms(asked.deadline, asked.escalate_after, (*asked.binds, *binds), item.hex())
    return replace(request, about_hash=about, terms=terms)


def _choices(asked: _QuestionFields) -> tuple[Choice, ...]:
    if not asked.choices and asked.kind == "choose":
        raise UsageError(
            "a request of kind choose has no choices",
            'give them: config.interrupt({…, "choices": ["a", "b"]})',
        )
    choices = tuple(Choice(choice, choice) if isinstance(choice, str) else choice for choice in asked.choices)
    return choices or (_APPROVE if asked.kind == "approve" else ())


def _default_schema(asked: _QuestionFields) -> dict[str, Any] | None:
    """Return the schema of an edited payload: a value of the same type."""
    if asked.kind != "edit" or asked.choices:
        return None
    return next(({"type": name} for kind, name in _TYPES if isinstance(asked.payload, kind)), None)


def _read_question(question: Any) -> _QuestionFields:
    if not _says_kind(question):
        return _QuestionFields("ask", payload=normalise(question, what="the question"))
    given = {name: value for name, value in question.items() if name not in ("schema", "payload")}
    try:
        asked = msgspec.convert(thaw(normalise(given, what="the question")), _QuestionFields)
    except msgspec.ValidationError as error:
        raise UsageError(f"the request to config.interrupt can't be read: {error}") from None
    asked.payload = normalise(question.get("payload"), what="the payload of the question")
    if question.get("schema") is not None:
        asked.schema = thaw(
            normalise(as_schema(question["schema"], "answer"), what="the schema of the question")
        )
    return asked


def with_schema(question: Any, schema: Any) -> Any:
    """Return a question with a schema for its answer: a mapping with a known `kind`, or a payload."""
    if _says_kind(question):
        return {**question, "schema": schema}
    return {"kind": "ask", "payload": question, "schema": schema}


def _says_kind(question: Any) -> bool:
    return (
        isinstance(question, Mapping)
        and question.get("kind") in KINDS
        and set(question) <= set(_QuestionFields.__struct_fields__)
    )


def taint_request(
    cursor: Cursor, node: str, tainted: Sequence[Taint], now: int, about: Mapping[str, bytes]
) -> Request:
    """Make the request of a node with `on_taint="approve"`, about the tainted channels that it would read.

    Args:
        about: the digests of all that it would read.
    """
    payload = {
        "node": node,
        "channels": [
            {"channel": taint.channel, "sources": list(taint.sources), "since": taint.step, "by": taint.node}
            for taint in tainted
        ],
    }
    request = Request(
        id="",
        kind="approve",
        node=node,
        when="before",
        step=cursor.head,
        title=f"{node} is about to read untrusted data",
        payload=payload,
        subject=tainted[0].channel,
        choices=_APPROVE,
        risk="high",
        asked_at=now,
        policy="on_taint",
        about_hash=about_hash(about),
    )
    return with_identity(cursor, request)


def gate_of(session: Session, request: Request) -> Gate | None:
    """Return the gate that made a request; None for breakpoints, policies and requests of a node itself."""
    if request.policy:
        return None
    graph = session.graph
    gates = {"before": graph.before, "after": graph.after}.get(request.when, {})
    return gates.get(request.node)


def make_request(
    session: Session, node: str, when: When, *, cursor: Cursor | None = None, state: LiveState | None = None
) -> Request:
    """Make the request to open at a node.

    Args:
        cursor, state: as they will be after the commit of the step; by default the session's own.
    """
    cursor = cursor or session.cursor
    gate = (session.graph.before if when == "before" else session.graph.after)[node]
    now = session.clock()
    if gate is None:
        return breakpoint_request(cursor, node, when, now)
    view, live = session.view(state), state or session.state
    names = [gate.subject] if gate.subject else []
    if when == "before":
        names += declared_reads(session.graph, node)
    request = gate_request(cursor, gate, when, view, now=now, about=digests_of(live, view, names))
    return with_authors(session, request)


def with_authors(session: Session, request: Request, *more: str | None) -> Request:
    """Return a request with the names of the thread's authors if none of them may answer it.

    Args:
        more: an author whose step is being made.
    """
    if not request.four_eyes:
        return request
    names = authors_of(session.store, session.info).names | {*request.authors, *filter(None, more)}
    return replace(request, authors=tuple(sorted(names)))


def declared_reads(graph: CompiledGraph, node: str) -> list[str]:
    """Return what a node declares to read, by name; nothing without a declaration."""
    reads = graph.nodes[node].reads
    if reads is None:
        return []
    view = StateView({}, graph.channels, reads)
    return [*view, *(name for name in reads if "." in name and name.partition(".")[0] not in view)]


def passing_answer(cursor: Cursor, node: str, when: When, policy: str = "") -> PassedGate | None:
    """Return the newest answer with which a run passes the gate, breakpoint or policy at a node.

    None for none.
    """
    place = (node, when, policy)
    return next(
        (gate for gate in reversed(cursor.passed) if (gate.node, gate.when, gate.policy) == place), None
    )


def unanswered_request(session: Session, node: str, when: When) -> Request | None:
    """Return the request that must be answered before a run passes a gate; None if there is none.

    The request is made again from the current state: an answer to a different one does not let the run pass.
    """
    asked = make_request(session, node, when)
    passed = passing_answer(session.cursor, node, when)
    if passed and passed.holds == asked.request_hash:
        return None
    return with_earlier_answer(session, asked, passed.n if passed else None)


def with_request(cursor: Cursor, request: Request) -> Cursor:
    """Return the cursor with one more request to wait for."""
    asks = request.breakpoint or request.kind in ("ask", "edit")
    return replace(
        cursor,
        status="waiting",
        reason="interrupt" if asks else "approval",
        pending=(*cursor.pending, request),
    )


def ask(session: Session, requests: Sequence[Request], cursor: Cursor) -> None:
    """Stop a node for requests: new ones are logged, those that wait already stay, others are withdrawn.

    Raises:
        UsageError: the runner has no store, so nobody could ever answer.
    """
    if session.store is None:
        raise UsageError(
            f"node {requests[0].node!r} asks a person, but this runner has no store and could not continue",
            "compile(checkpointer=MemoryCheckpointer()), or SQLiteCheckpointer(path)",
        )
    entries = withdrawal_entries(session, {request.id for request in requests})
    waited = {request.id for request in session.cursor.pending}
    place = "route" if requests[0].when == "after" else "node"
    asked = {(request.node, request.when, request.policy) for request in requests}
    passed = tuple(gate for gate in cursor.passed if (gate.node, gate.when, gate.policy) not in asked)
    cursor = replace(cursor, position=f"{place}:{requests[0].node}", pending=(), passed=passed)
    for request in requests:
        if request.id in waited:
            cursor = with_request(cursor, request)
            continue
        listed = with_authors(session, for_lists(session, request, session.state))
        at = journal.after_entries(session.cursor, entries)
        entries.append(journal.request_entry(at, listed, session.clock()))
        cursor = with_request(cursor, listed)
    session.commit_cursor(cursor, entries)


def unused_entry(session: Session, cursor: Cursor, kept: KeptAnswer, node: str) -> LedgerEntry:
    """Return the ledger entry for an answer that no request of a node has used.

    Args:
        cursor: after the entries before it.
    """
    ledger = decisions(session.store, session.thread_id) if session.store else []
    answer = ledger[kept.n - 1] if 0 < kept.n <= len(ledger) else None
    asked = request_of(ledger, answer.request_id) if answer else None
    title = f"“{asked.note}”" if asked else "a question"
    return journal.ledger_entry(
        cursor,
        "unused",
        at=session.clock(),
        request_id=answer.request_id if answer else None,
        note=f"the answer to {title} was not used: {node} did not ask it again",
        data={"node": node, "answer": kept.value, "n": kept.n},
    )


def withdrawal_entries(session: Session, but: Collection[str] = ()) -> list[LedgerEntry]:
    """Return ledger entries that withdraw all pending requests `but` some."""
    entries: list[LedgerEntry] = []
    for request in session.cursor.pending:
        if request.id not in but:
            at = journal.after_entries(session.cursor, entries)
            entries.append(journal.ledger_entry(at, "withdrawn", at=session.clock(), request=request))
    return entries


def how_it_ended(session: Session, request_id: str) -> str:
    """Return how a request ended by the ledger: answer, timeout, withdrawn, reopened; "" if it has not."""
    if session.store is None or any(request.id == request_id for request in session.cursor.pending):
        return ""
    ends = [
        entry.kind
        for entry in decisions(session.store, session.thread_id)
        if entry.request_id == request_id and entry.kind in ("answer", "timeout", "withdrawn", "reopened")
    ]
    return ends[-1] if ends else ""
