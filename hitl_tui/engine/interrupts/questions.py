"""Questions to humans, as requests: of breakpoints, of gates, of nodes and about taint (SPEC 11)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from hitl_tui.engine.channels.declared import as_schema
from hitl_tui.engine.channels.state import WorkflowState
from hitl_tui.engine.channels.values import normalise, thaw
from hitl_tui.engine.graphs.gates import Gate, check_choice, check_terms
from hitl_tui.engine.interrupts import foreign
from hitl_tui.engine.interrupts.answers import answer_schema, checked_value
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.log.requests import Choice, Request, RequestKind, When
from hitl_tui.engine.log.taint import Taint
from hitl_tui.errors import UsageError

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
    signed: bool = False
    deadline: float | None = None
    on_timeout: Any = None
    risk: Literal["normal", "high"] = "normal"


class InterruptRaised(BaseException):
    """A node asked a human; not an Exception, so that a node's own `except` does not swallow it."""

    def __init__(self, request: Request) -> None:
        super().__init__(request.title)
        self.request = request


def request_id(cursor: Cursor, node: str, when: When, order: int | str = 0) -> str:
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
        one_account=gate.one_account,
        signed=gate.signed,
        deadline=None if gate.deadline is None else now + int(gate.deadline * 1e6),
        on_timeout=gate.on_timeout,
        risk=gate.risk,
        asked_at=now,
    )


def inside_request(
    cursor: Cursor, node: str, order: int, question: Any, now: int, *, key: str = "", path: str = ""
) -> Request:
    """The request of `config.interrupt(question)`: a mapping with a known `kind`, or any payload.

    What a kind leaves open has a default: `approve` takes approve or reject, `edit` a value of the
    payload's type, `ask` anything; `choose` must say its choices.  A payload in the shape of another
    tool (see `foreign`) is answered in that shape, which a schema checks where one is given, too.

    Raises:
        UsageError, GraphInvalid, ValueRejected: it could not be stored, or never be answered.
    """
    asked = _read_question(node, question)
    check_terms(asked.reviewers, asked.quorum, asked.deadline)
    plain = not asked.choices and asked.kind in ("ask", "approve")
    shape = foreign.shape_of(asked.payload) if plain else ""
    actions = foreign.actions_of(shape, asked.payload)
    request = Request(
        id=request_id(cursor, path or node, "inside", key or order),
        kind="approve" if shape else asked.kind,
        node=node,
        when="inside",
        step=cursor.head,
        title=asked.title or (foreign.title_of(actions) if shape else f"{path or node} asks"),
        payload=asked.payload,
        subject=asked.subject,
        schema=_default_schema(asked) if asked.schema is None else asked.schema,
        choices=foreign.choices_of(actions) if shape else _choices(asked),
        recommended=asked.recommended,
        order=order,
        reviewers=asked.reviewers,
        quorum=asked.quorum,
        one_account=asked.one_account,
        signed=asked.signed,
        deadline=None if asked.deadline is None else now + int(asked.deadline * 1e6),
        risk=asked.risk,
        asked_at=now,
        shape=shape,
        key=key,
        path=path,
    )
    answer_schema(request)
    if request.choices and request.recommended is not None:
        check_choice(request.choices, request.recommended)
    if asked.on_timeout is None:
        return request
    return msgspec.structs.replace(request, on_timeout=checked_value(request, asked.on_timeout))


def _choices(asked: _Asked) -> tuple[Choice, ...]:
    if not asked.choices and asked.kind == "choose":
        raise UsageError(
            "a request of kind choose has no choices",
            'give them: config.interrupt({…, "choices": ["a", "b"]})',
        )
    choices = tuple(Choice(one, one) if isinstance(one, str) else one for one in asked.choices)
    return choices or (_APPROVE if asked.kind == "approve" else ())


def _default_schema(asked: _Asked) -> dict[str, Any] | None:
    """What an edited payload may be: a value of the same type."""
    if asked.kind != "edit" or asked.choices:
        return None
    return next(({"type": name} for kind, name in _TYPES if isinstance(asked.payload, kind)), None)


def _read_question(node: str, question: Any) -> _Asked:
    if not _says_kind(question):
        return _Asked("ask", payload=normalise(question, node))
    given = {name: value for name, value in question.items() if name not in ("schema", "payload")}
    try:
        asked = msgspec.convert(thaw(normalise(given, node)), _Asked)
    except msgspec.ValidationError as error:
        raise UsageError(f"the request to config.interrupt can't be read: {error}") from None
    asked.payload = normalise(question.get("payload"), node)
    if question.get("schema") is not None:
        asked.schema = thaw(normalise(as_schema(question["schema"], "answer"), node))
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


def taint_request(cursor: Cursor, node: str, tainted: Sequence[Taint], now: int) -> Request:
    """The request of a node with `on_taint="approve"`, about the tainted channels it would read."""
    payload = {
        "node": node,
        "channels": [
            {"channel": one.channel, "sources": list(one.sources), "since": one.step, "by": one.node}
            for one in tainted
        ],
    }
    return Request(
        # Of its own kind among those before a node: a gate may stand there, too.
        id=request_id(cursor, node, "before", -1),
        kind="approve",
        node=node,
        when="before",
        step=cursor.head,
        title=f"{node} would read what came from outside",
        payload=payload,
        subject=tainted[0].channel,
        choices=_APPROVE,
        risk="high",
        asked_at=now,
        policy="on_taint",
    )
