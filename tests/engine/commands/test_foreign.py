"""Payloads in the shapes of Agent Inbox and LangChain's middleware: the node receives what they promise."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hitl_tui import AnswerRefused, GraphRunner
from hitl_tui.stores import Checkpointer
from tests.support.flows import check_log, ledger_of, line
from tests.support.spec import spec

pytestmark = spec("11")

ALLOW = {"allow_accept": True, "allow_respond": True, "allow_edit": True, "allow_ignore": True}
SEND = {"action_request": {"action": "send", "args": {"to": "a", "n": 1}}, "config": ALLOW}
DELETE = {
    "action_request": {"action": "delete", "args": {}},
    "config": {**ALLOW, "allow_edit": False, "allow_respond": False},
    "description": "# It is gone then",
}
BATCH = {
    "action_requests": [
        {"name": "send", "args": {"to": "a"}, "description": "mail it"},
        {"name": "delete", "args": {"id": 7}},
    ],
    "review_configs": [
        {"action_name": "send", "allowed_decisions": ["approve", "edit", "reject", "respond"]},
        {"action_name": "delete", "allowed_decisions": ["approve", "reject"]},
    ],
}
ONE = {"action_requests": BATCH["action_requests"][:1], "review_configs": BATCH["review_configs"][:1]}
CALL = {"type": "tool_approval", "tool_call_id": "c1", "name": "send", "args": {"to": "a"}, "description": ""}
EDIT = {"choice": "edit", "args": {"to": "b"}}


def asked(store: Checkpointer, payload: Any) -> GraphRunner:
    runner = line(store, lambda state, config: {"log": config.interrupt(payload)})
    assert runner.invoke({}, thread_id="t").status == "waiting"
    return runner


def answered(store: Checkpointer, payload: Any, answer: Any) -> Any:
    """What the node receives."""
    runner = asked(store, payload)
    (request,) = runner.open("t").cursor.pending
    runner.answer("t", request.id, answer, step=0, actor="ann")
    result = runner.invoke(thread_id="t")
    check_log(runner, "t")
    assert result.status == "completed"
    return json.loads(json.dumps(result["log"]))[0]


@pytest.mark.parametrize(
    ("payload", "answer", "received"),
    [
        pytest.param(SEND, "approve", [{"type": "accept", "args": SEND["action_request"]}], id="accept"),
        pytest.param(DELETE, "approve", [{"type": "accept", "args": None}], id="accept where no edit is"),
        pytest.param(SEND, "accept", [{"type": "accept", "args": SEND["action_request"]}], id="its own word"),
        pytest.param(
            SEND, EDIT, [{"type": "edit", "args": {"action": "send", "args": {"to": "b"}}}], id="edit"
        ),
        pytest.param(
            SEND, {"type": "edit", "args": {"args": {"to": "b"}}},
            [{"type": "edit", "args": {"action": "send", "args": {"to": "b"}}}], id="edit without its action",
        ),
        pytest.param(
            SEND, {"choice": "edit", "args": {"to": "a", "n": 1}},
            [{"type": "accept", "args": SEND["action_request"]}], id="an edit that changes nothing accepts",
        ),
        pytest.param(
            SEND, {"choice": "respond", "text": "shorter"}, [{"type": "response", "args": "shorter"}],
            id="respond",
        ),
        pytest.param(SEND, "ignore", [{"type": "ignore", "args": None}], id="ignore"),
        pytest.param(
            SEND, [{"type": "response", "args": "no"}], [{"type": "response", "args": "no"}],
            id="an answer in its own form",
        ),
        pytest.param(
            SEND, {"type": "edit", "args": {"action": SEND["action_request"]["action"], "args": {}}},
            [{"type": "edit", "args": {"action": SEND["action_request"]["action"], "args": {}}}],
            id="a single one in its own form",
        ),
        pytest.param([DELETE], "ignore", [{"type": "ignore", "args": None}], id="a list of one"),
        pytest.param(json.dumps(DELETE), "approve", [{"type": "accept", "args": None}], id="as JSON text"),
        pytest.param(
            [DELETE, SEND], ["approve", {"choice": "respond", "text": "no"}],
            [{"type": "accept", "args": None}, {"type": "response", "args": "no"}], id="several in a list",
        ),
    ],
)  # fmt: skip
def test_agent_inbox(store: Checkpointer, payload: Any, answer: Any, received: Any) -> None:
    assert answered(store, payload, answer) == received


@pytest.mark.parametrize(
    ("payload", "answer", "received"),
    [
        pytest.param(ONE, "approve", [{"type": "approve"}], id="approve"),
        pytest.param(
            ONE, EDIT, [{"type": "edit", "edited_action": {"name": "send", "args": {"to": "b"}}}], id="edit"
        ),
        pytest.param(
            ONE, {"choice": "approve", "text": "fine"}, [{"type": "approve"}], id="approve without its words"
        ),
        pytest.param(ONE, "reject", [{"type": "reject"}], id="reject"),
        pytest.param(
            ONE, {"choice": "reject", "text": "too soon"}, [{"type": "reject", "message": "too soon"}],
            id="reject with a reason",
        ),
        pytest.param(
            ONE, {"choice": "respond", "text": "sent"}, [{"type": "respond", "message": "sent"}], id="respond"
        ),
        pytest.param(BATCH, "approve", [{"type": "approve"}] * 2, id="approve all"),
        pytest.param(
            BATCH, [EDIT, {"choice": "reject", "text": "no"}],
            [
                {"type": "edit", "edited_action": {"name": "send", "args": {"to": "b"}}},
                {"type": "reject", "message": "no"},
            ],
            id="one decision for each by position",
        ),
        pytest.param(
            BATCH, {"decisions": [{"type": "approve"}, {"type": "reject", "message": "no"}]},
            [{"type": "approve"}, {"type": "reject", "message": "no"}], id="an answer in its own form",
        ),
    ],
)  # fmt: skip
def test_langchain_middleware(store: Checkpointer, payload: Any, answer: Any, received: Any) -> None:
    assert answered(store, payload, answer) == {"decisions": received}


@pytest.mark.parametrize(
    ("answer", "received"),
    [
        ("approve", {"type": "approve"}),
        (EDIT, {"type": "edit", "edited_action": {"name": "send", "args": {"to": "b"}}}),
        ({"choice": "reject", "text": "no"}, {"type": "reject", "message": "no"}),
        ({"choice": "respond", "text": "done"}, {"type": "respond", "message": "done"}),
        ({"type": "approve"}, {"type": "approve"}),
    ],
    ids=["approve", "edit", "reject", "respond", "its own form"],
)
def test_a_single_tool_call(store: Checkpointer, answer: Any, received: Any) -> None:
    assert answered(store, CALL, answer) == received


@pytest.mark.parametrize(
    ("payload", "answer", "why"),
    [
        (SEND, "reject", "not an allowed answer to 'send'"),
        (SEND, "edit", "needs all its arguments"),
        (SEND, {"choice": "edit", "args": "b"}, "needs all its arguments"),
        (SEND, {"choice": "respond", "text": " "}, "needs a text"),
        (SEND, 3, "names no decision"),
        (SEND, ["approve", "approve"], "1 actions wait, and the answer decides 2"),
        (BATCH, EDIT, "'edit' is not an allowed answer to 'delete'"),
        (BATCH, ["approve"], "2 actions wait, and the answer decides 1"),
        (BATCH, {"decisions": [{"type": "approve"}, {"type": "respond", "message": "x"}]}, "'delete'"),
        (CALL, {"type": "edit", "edited_action": {"name": "rm", "args": {}}}, "can't turn 'send' into 'rm'"),
        (CALL, {"choice": "edit", "tool": "rm", "args": {}}, "can't turn 'send' into 'rm'"),
        (CALL, {"choice": "edit", "function": {"name": "rm"}, "args": {}}, "can't turn 'send' into 'rm'"),
        (CALL, {"type": "edit", "edited_action": {"action": "rm"}}, "can't turn 'send' into 'rm'"),
        (CALL, {"decisions": []}, "1 actions wait"),
    ],
)
def test_what_the_contract_does_not_allow_is_refused(
    store: Checkpointer, payload: Any, answer: Any, why: str
) -> None:
    runner = asked(store, payload)
    (request,) = runner.open("t").cursor.pending
    with pytest.raises(AnswerRefused, match=why):
        runner.answer("t", request.id, answer, step=0)
    assert len(ledger_of(store, "t", "refused")) == 1
    assert runner.open("t").cursor.pending == (request,)


@pytest.mark.parametrize(
    ("payload", "title", "choices"),
    [
        (SEND, "Call send?", ["approve", "respond", "edit", "ignore"]),
        (DELETE, "Call delete?", ["approve", "ignore"]),
        (BATCH, "Make 2 calls: send, delete?", ["approve", "reject"]),
        (CALL, "Call send?", ["approve", "edit", "reject", "respond"]),
    ],
    ids=["agent inbox", "without edit", "middleware", "one call"],
)
def test_the_request_is_an_approval_with_the_decisions_all_actions_take(
    store: Checkpointer, payload: Any, title: str, choices: list[str]
) -> None:
    cursor = asked(store, payload).open("t").cursor
    (request,) = cursor.pending
    assert (cursor.reason, request.kind, request.title) == ("approval", "approve", title)
    assert [choice.id for choice in request.choices] == choices
    assert request.payload == payload


@pytest.mark.parametrize(
    "payload",
    [
        {"action_request": {"action": "x"}},
        {"action_requests": [], "review_configs": []},
        {"type": "tool_approval"},
        [SEND, {"other": 1}],
        '{"action_request": ',
    ],
)
def test_anything_else_is_a_question_with_a_free_answer(store: Checkpointer, payload: Any) -> None:
    runner = asked(store, payload)
    (request,) = runner.open("t").cursor.pending
    assert (request.kind, request.shape, request.payload) == ("ask", "", payload)
    runner.answer("t", request.id, {"as": "it likes"}, step=0)
    assert list(runner.invoke(thread_id="t")["log"]) == [{"as": "it likes"}]


def test_terms_of_a_request_go_with_a_payload_of_a_known_shape(store: Checkpointer) -> None:
    terms = {"reviewers": ["ann"], "risk": "high", "deadline": 60, "on_timeout": "reject"}
    question = {"kind": "approve", "payload": CALL, **terms}
    runner = asked(store, question)
    (request,) = runner.open("t").cursor.pending
    assert (request.shape, request.risk, request.on_timeout) == (
        "tool_approval", "high", {"type": "reject"},
    )  # fmt: skip
    with pytest.raises(AnswerRefused, match="bob may not"):
        runner.answer("t", request.id, "approve", step=0, actor="bob")


def test_a_response_schema_types_the_answer_to_a_plain_payload(store: Checkpointer) -> None:
    def node(state: Any, config: Any) -> dict[str, Any]:
        return {"log": config.interrupt({"question": "how many?"}, response_schema=int)}

    runner = line(store, node)
    (request,) = runner.invoke({}, thread_id="t").pending
    assert (request.payload, request.schema) == ({"question": "how many?"}, {"type": "integer"})
    with pytest.raises(AnswerRefused):
        runner.answer("t", request.id, "two", step=0)
    runner.answer("t", request.id, 2, step=0)
    assert list(runner.invoke(thread_id="t")["log"]) == [2]


def test_a_response_schema_types_the_answer_to_a_request_with_a_title(store: Checkpointer) -> None:
    asked = {"kind": "ask", "title": "How many?", "payload": {"of": "cups"}}

    def node(state: Any, config: Any) -> dict[str, Any]:
        return {"log": config.interrupt(asked, response_schema=int)}

    (request,) = line(store, node).invoke({}, thread_id="t").pending
    assert (request.title, request.payload, request.schema) == (
        "How many?",
        {"of": "cups"},
        {"type": "integer"},
    )


def test_a_response_schema_checks_the_decision_about_a_tool_call_too(store: Checkpointer) -> None:
    """LangChain asks with both: the call is decided as one, and an edit may not empty the recipient."""
    args = {"properties": {"to": {"type": "string", "minLength": 1}}, "required": ["to"]}
    edited = {"properties": {"edited_action": {"properties": {"args": args}}}}
    schema = {"type": "object", "required": ["type"], **edited}

    def node(state: Any, config: Any) -> dict[str, Any]:
        return {"log": config.interrupt(CALL, response_schema=schema)}

    runner = line(store, node)
    (request,) = runner.invoke({}, thread_id="t").pending
    assert (request.kind, request.shape, request.title) == ("approve", "tool_approval", "Call send?")
    with pytest.raises(AnswerRefused, match="answer"):
        runner.answer("t", request.id, {"choice": "edit", "args": {"to": ""}}, step=0)
    runner.answer("t", request.id, EDIT, step=0)
    edit = {"name": "send", "args": {"to": "b"}}
    assert runner.invoke(thread_id="t")["log"] == [{"type": "edit", "edited_action": edit}]


@pytest.mark.parametrize(
    ("payload", "choices"),
    [
        (ONE, ["approve", "edit", "reject", "respond"]),
        ({**BATCH, "action_requests": ONE["action_requests"] * 2}, ["approve", "reject", "respond"]),
        (BATCH, ["approve", "reject"]),
        (SEND, ["approve", "respond", "edit", "ignore"]),
        ([SEND, DELETE], ["approve", "ignore"]),
    ],
    ids=["one", "two alike: each has arguments of its own", "two", "agent inbox", "two of agent inbox"],
)
def test_what_can_be_decided_about_all_actions_at_once(
    store: Checkpointer, payload: Any, choices: list[str]
) -> None:
    (request,) = asked(store, payload).open("t").cursor.pending
    assert [choice.id for choice in request.choices] == choices
