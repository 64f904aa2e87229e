"""Interrupts: requests that stop a run, their ledger entries, and which answers they take.

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
from hitl_tui.engine.thread.binding import about_hash, digests_of, request_hash
from hitl_tui.engine.thread.earlier import compared, request_of
from hitl_tui.engine.thread.logged import decisions
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import AnswerRefused, SchemaMismatch, UsageError, ValueRejected

_GONE = {
    "withdrawn": "it was withdrawn when the thread continued elsewhere",
    "reopened": "it is asked again under a new id, because what it is about has changed",
}


def find_request(cursor: Cursor, wanted: str, ended: str = "") -> Request:
    """The pending request of an id.

    Args:
        ended: how the ledger says that it has ended, as `how_it_ended` gives it; "" where it doesn't.

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
    waiting = ", ".join(f"{request.id} ({request.title})" for request in cursor.pending) or "none"
    where = f"waits in thread {cursor.thread_id!r}"
    gone = f"request {wanted!r} no longer {where}: {_GONE[ended]}" if ended in _GONE else ""
    raise AnswerRefused(gone or f"no request {wanted!r} {where}", f"waiting: {waiting}")


def check_answer(
    request: Request,
    answer: Any,
    *,
    step: int,
    head: int,
    actor: str | None,
    account: str,
    roles: Sequence[str] = (),
    signer: Signer | None,
    now: int,
) -> Any:
    """An answer that may be applied, as JSON.

    Args:
        step: the one that the answer names: that of the request, or a later one that has not changed it.
        head: the newest step.
        roles: the login of the database that it comes from and the groups of that, as `Store.roles` has them.

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
    given = {vote.account: vote.actor for vote in request.votes if vote.actor != actor}
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


def check_reviewer(request: Request, actor: str | None) -> None:
    """Refuse somebody who may not answer a request, or has answered it; raises `AnswerRefused`."""
    if request.reviewers and actor not in request.reviewers:
        raise AnswerRefused(
            f"{actor or 'an unnamed person'} may not answer {request.title!r}",
            f"reviewers: {', '.join(request.reviewers)}",
        )
    if has_voted(request, actor):
        raise AnswerRefused(f"{actor} has answered {request.title!r} already", "another reviewer must answer")


def _check_login(request: Request, actor: str | None, roles: Sequence[str]) -> None:
    """Refuse a login of the database that may not answer a request, or has answered it."""
    if not request.logins:
        return
    wanted = f"logins: {', '.join(request.logins)}"
    if not roles:
        raise AnswerRefused(
            f"{request.title!r} wants a login of the database, and this store has none",
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
    """An answer, or what a timeout answers, as JSON that the request allows; raises `AnswerRefused`."""
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
    """What checks the answers to a request without choices; raises `GraphInvalid` where it is no schema."""
    return ChannelSchema("answer", request.schema or {}, "whole")


def vote(
    request: Request, answer: Any, actor: str | None, note: str | None, *, account: str, login: str, now: int
) -> tuple[Request, bool]:
    """The request with one more vote, and whether that settles it."""
    if request.quorum <= 1:
        return request, True
    others = (cast for cast in request.votes if cast.actor != actor)
    votes = (*others, Vote(actor or "", answer, now, note, account, login))
    return msgspec.structs.replace(request, votes=votes), _alike(votes, answer) >= request.quorum


def has_voted(request: Request, actor: str | None) -> bool:
    """Whether somebody's vote counts already, so that another one of theirs is refused."""
    return any(vote.actor == actor for vote in request.votes) and not deadlocked(request)


def deadlocked(request: Request) -> bool:
    """Whether its reviewers disagree so that no answer can reach the quorum any more.

    Then each of them may change their vote; until somebody does, it waits, for its deadline at most.
    """
    if not request.reviewers or not request.votes:
        return False
    still_to_vote = len(set(request.reviewers) - {vote.actor for vote in request.votes})
    best = max(_alike(request.votes, vote.answer) for vote in request.votes)
    return best + still_to_vote < request.quorum


def _alike(votes: Sequence[Vote], answer: Any) -> int:
    return sum(equal(_decided(vote.answer), _decided(answer)) for vote in votes)


def _decided(answer: Any) -> Any:
    return answer["choice"] if isinstance(answer, dict) and "choice" in answer else answer


KINDS = ("approve", "edit", "choose", "ask")
_APPROVE = (Choice("approve", "approve", "a"), Choice("reject", "reject", "r"))
_GO_ON = (Choice("continue", "go on", "c"),)
_TYPES = ((bool, "boolean"), (str, "string"), (int | float, "number"), (list, "array"), (dict, "object"))


class _Asked(msgspec.Struct, forbid_unknown_fields=True):
    """What a node may say about its question: the fields of `Request` that are its to choose."""

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
    deadline: float | None = None
    on_timeout: Any = None
    escalate_to: tuple[str, ...] = ()
    escalate_after: float | None = None
    risk: Literal["normal", "high"] = "normal"
    binds: tuple[str, ...] = ()


class InterruptRaised(BaseException):
    """A node asked a human; not an Exception, so that a node's own `except Exception` lets it pass.

    Args:
        earlier: an answer to another question at the same place, which the node has not asked again.
    """

    def __init__(self, request: Request, earlier: KeptAnswer | None = None) -> None:
        super().__init__(request.title)
        self.request = request
        self.earlier = earlier


def identified(cursor: Cursor, request: Request) -> Request:
    """The request with the hash of what it asks, and an id that no other request of the thread has."""
    asks = request_hash(request)
    facts = f"{cursor.thread_id}\0{cursor.invocation}\0{cursor.head}\0{cursor.ledger_n}\0{asks}"
    own = hashlib.sha256(facts.encode(errors="replace")).hexdigest()[:12]
    return replace(request, id=own, request_hash=asks)


def breakpoint_request(cursor: Cursor, node: str, when: When, now: int, title: str = "") -> Request:
    """The request of a plain `interrupt_before` / `interrupt_after`; resuming passes it."""
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
    return identified(cursor, request)


def stop_request(cursor: Cursor, node: str, why: str, now: int, *, key: str, path: str = "") -> Request:
    """The request of a breakpoint inside a node; resuming passes it."""
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
    return identified(cursor, request)


def gate_request(
    cursor: Cursor, gate: Gate, when: When, state: WorkflowState, *, now: int, about: Mapping[str, bytes]
) -> Request:
    """The request of a gate on the state as it is.

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
        choices=tuple(choice.choice for choice in gate.choices),
        recommended=gate.recommended,
        reviewers=tuple(gate.reviewers),
        quorum=gate.quorum,
        one_account=gate.one_account,
        logins=tuple(gate.logins),
        signed=gate.signed,
        deadline=None if gate.deadline is None else now + int(gate.deadline * 1e6),
        on_timeout=gate.on_timeout,
        escalate_to=tuple(gate.escalate_to),
        escalate_at=escalates_at(gate.escalate_after, gate.deadline, now),
        risk=gate.risk,
        asked_at=now,
        about_hash=about_hash(about),
        terms=Terms(gate.deadline, gate.escalate_after, tuple(gate.binds)),
    )
    return identified(cursor, request)


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
    """The request of `config.interrupt(question)`: a mapping with a known `kind`, or any payload.

    What a kind leaves open has a default: `approve` takes approve or reject, `edit` a value of the
    payload's type, `ask` anything; `choose` must say its choices.  A payload in the shape of another
    tool (see `approval_formats`) is answered in that shape, which a schema checks where one is given, too.

    Args:
        binds: the parts of the payload that count, besides those that the question itself names.
        digests: gives the digests of values of the state, by name.
        item: the digest of the item of a map's branch.

    Returns:
        The request, which `identified` gives its hash and its id.

    Raises:
        UsageError, GraphInvalid, ValueRejected: it could not be stored, or never be answered.
    """
    asked = _read_question(question)
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
        title=asked.title or (approval_formats.title_of(actions) if shape else f"Question of {path or node}"),
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


def _choices(asked: _Asked) -> tuple[Choice, ...]:
    if not asked.choices and asked.kind == "choose":
        raise UsageError(
            "a request of kind choose has no choices",
            'give them: config.interrupt({…, "choices": ["a", "b"]})',
        )
    choices = tuple(Choice(choice, choice) if isinstance(choice, str) else choice for choice in asked.choices)
    return choices or (_APPROVE if asked.kind == "approve" else ())


def _default_schema(asked: _Asked) -> dict[str, Any] | None:
    """What an edited payload may be: a value of the same type."""
    if asked.kind != "edit" or asked.choices:
        return None
    return next(({"type": name} for kind, name in _TYPES if isinstance(asked.payload, kind)), None)


def _read_question(question: Any) -> _Asked:
    if not _says_kind(question):
        return _Asked("ask", payload=normalise(question, what="the question"))
    given = {name: value for name, value in question.items() if name not in ("schema", "payload")}
    try:
        asked = msgspec.convert(thaw(normalise(given, what="the question")), _Asked)
    except msgspec.ValidationError as error:
        raise UsageError(f"the request to config.interrupt can't be read: {error}") from None
    asked.payload = normalise(question.get("payload"), what="the payload of the question")
    if question.get("schema") is not None:
        asked.schema = thaw(
            normalise(as_schema(question["schema"], "answer"), what="the schema of the question")
        )
    return asked


def with_schema(question: Any, schema: Any) -> Any:
    """A question whose answer must fit a schema: a mapping with a known `kind`, or a payload."""
    if _says_kind(question):
        return {**question, "schema": schema}
    return {"kind": "ask", "payload": question, "schema": schema}


def _says_kind(question: Any) -> bool:
    return (
        isinstance(question, Mapping)
        and question.get("kind") in KINDS
        and set(question) <= set(_Asked.__struct_fields__)
    )


def taint_request(
    cursor: Cursor, node: str, tainted: Sequence[Taint], now: int, about: Mapping[str, bytes]
) -> Request:
    """The request of a node with `on_taint="approve"`, about the tainted channels it would read.

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
    return identified(cursor, request)


def gate_of(session: Session, request: Request) -> Gate | None:
    """The gate a request came from; None for breakpoints, policies and questions of a node itself."""
    if request.policy:
        return None
    graph = session.graph
    gates = {"before": graph.before, "after": graph.after}.get(request.when, {})
    return gates.get(request.node)


def make_request(
    session: Session, node: str, when: When, *, cursor: Cursor | None = None, state: LiveState | None = None
) -> Request:
    """The request to open at a node.

    Args:
        cursor, state: as they will be once the step is committed; the session's own by default.
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
    return gate_request(cursor, gate, when, view, now=now, about=digests_of(live, view, names))


def declared_reads(graph: CompiledGraph, node: str) -> list[str]:
    """What a node says that it reads, by name; nothing where it does not say."""
    reads = graph.nodes[node].reads
    if reads is None:
        return []
    view = StateView({}, graph.channels, reads)
    return [*view, *(name for name in reads if "." in name and name.partition(".")[0] not in view)]


def passed_at(cursor: Cursor, node: str, when: When, policy: str = "") -> PassedGate | None:
    """The newest answer that lets a run past the gate, breakpoint or policy at a node; None for none."""
    place = (node, when, policy)
    return next(
        (gate for gate in reversed(cursor.passed) if (gate.node, gate.when, gate.policy) == place), None
    )


def unpassed(session: Session, node: str, when: When) -> Request | None:
    """What is still to be answered before a run goes past a gate; None where nothing is.

    The question is made anew: an answer to another one does not let the run pass.
    """
    asked = make_request(session, node, when)
    passed = passed_at(session.cursor, node, when)
    if passed and passed.holds == asked.request_hash:
        return None
    return compared(session, asked, passed.n if passed else None)


def waiting(cursor: Cursor, request: Request) -> Cursor:
    """The cursor with one more request to wait for."""
    asks = request.breakpoint or request.kind in ("ask", "edit")
    return replace(
        cursor,
        status="waiting",
        reason="interrupt" if asks else "approval",
        pending=(*cursor.pending, request),
    )


def ask(session: Session, requests: Sequence[Request], cursor: Cursor) -> None:
    """Stop a node for requests: new ones are logged, those that wait already stay, the rest is withdrawn.

    Raises:
        UsageError: the runner has no store, so that nobody could ever answer.
    """
    if session.store is None:
        raise UsageError(
            f"node {requests[0].node!r} asks a person, but this runner has no store and could not continue",
            "compile(checkpointer=MemoryCheckpointer()), or SQLiteCheckpointer(path)",
        )
    entries = withdrawn(session, {request.id for request in requests})
    waited = {request.id for request in session.cursor.pending}
    place = "route" if requests[0].when == "after" else "node"
    asked = {(request.node, request.when, request.policy) for request in requests}
    passed = tuple(gate for gate in cursor.passed if (gate.node, gate.when, gate.policy) not in asked)
    cursor = replace(cursor, position=f"{place}:{requests[0].node}", pending=(), passed=passed)
    for request in requests:
        if request.id not in waited:
            at = journal.after_entries(session.cursor, entries)
            entries.append(journal.request_entry(at, request, session.clock()))
        cursor = waiting(cursor, request)
    session.commit_cursor(cursor, entries)


def unused_entry(session: Session, cursor: Cursor, kept: KeptAnswer, node: str) -> LedgerEntry:
    """The entry for an answer that no question of a node has used.

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


def withdrawn(session: Session, but: Collection[str] = ()) -> list[LedgerEntry]:
    """Entries for the pending requests that nobody waits for any more, all `but` some."""
    entries: list[LedgerEntry] = []
    for request in session.cursor.pending:
        if request.id not in but:
            at = journal.after_entries(session.cursor, entries)
            entries.append(journal.ledger_entry(at, "withdrawn", at=session.clock(), request=request))
    return entries


def how_it_ended(session: Session, request_id: str) -> str:
    """What the ledger says became of a request: answer, timeout, withdrawn, reopened; "" for nothing."""
    if session.store is None or any(request.id == request_id for request in session.cursor.pending):
        return ""
    ends = [
        entry.kind
        for entry in decisions(session.store, session.thread_id)
        if entry.request_id == request_id and entry.kind in ("answer", "timeout", "withdrawn", "reopened")
    ]
    return ends[-1] if ends else ""
