"""`config.interrupt` inside a node: it stops there and restarts from its top."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import AnswerRefused, GraphRunner, NodeFailed, NodeResult
from hitl_tui.engine.log.outcomes import ModelUse
from hitl_tui.stores import Checkpointer
from tests.support.flows import check_log, ledger_of, line, pending_id, say
from tests.support.spec import spec

pytestmark = spec("11")


def asking(*questions: Any, style: str = "sync", ran: list[int] | None = None) -> Any:
    """A node that asks one question after the other and writes the answers down."""
    starts = [] if ran is None else ran

    def sync(state: Any, config: Any) -> dict[str, Any]:
        starts.append(config.attempt)
        return {"log": [config.interrupt(question) for question in questions]}

    async def in_loop(state: Any, config: Any) -> dict[str, Any]:
        return sync(state, config)

    return sync if style == "sync" else in_loop


def asked(store: Checkpointer, question: Any, **more: Any) -> GraphRunner:
    runner = line(store, asking(question, **more), say("after"))
    assert runner.invoke({}, thread_id="t").status == "waiting"
    return runner


@pytest.mark.parametrize("style", ["sync", "async"])
def test_several_questions_are_served_by_order(store: Checkpointer, style: str) -> None:
    ran: list[int] = []
    runner = line(store, asking("name?", "size?", "colour?", style=style, ran=ran), say("after"))
    result = runner.invoke({}, thread_id="t")
    for question, answer in [("name?", "bo"), ("size?", 3), ("colour?", ["red"])]:
        assert (result.status, result.reason, result.step) == ("waiting", "interrupt", 0)
        request = result.pending[0]
        assert (request.kind, request.when, request.payload) == ("ask", "inside", question)
        assert runner.answer("t", request.id, answer, step=0) == 0
        result = runner.invoke(thread_id="t")
    assert result.status == "completed"
    assert list(result["log"]) == [["bo", 3, ["red"]], "after"]
    assert len(ran) == 4
    check_log(runner, "t")


def test_answers_of_one_round_of_a_node_are_not_served_to_the_next(store: Checkpointer) -> None:
    runner = line(store, asking("one?"), asking("two?"))
    runner.invoke({}, thread_id="t")
    runner.answer("t", pending_id(runner, "t"), "first", step=0)
    result = runner.invoke(thread_id="t")
    assert [request.payload for request in result.pending] == ["two?"]
    runner.answer("t", result.pending[0].id, "second", step=1)
    assert list(runner.invoke(thread_id="t")["log"]) == [["first"], ["second"]]


def test_a_fresh_runner_serves_the_answers_given_to_another(store: Checkpointer) -> None:
    make = lambda: line(store, asking("a?", "b?"), say("after"))  # noqa: E731
    make().invoke({}, thread_id="t")
    make().answer("t", pending_id(make(), "t"), 1, step=0)
    make().invoke(thread_id="t")
    make().answer("t", pending_id(make(), "t"), 2, step=0)
    assert list(make().invoke(thread_id="t")["log"]) == [[1, 2], "after"]


def test_resuming_without_an_answer_does_not_rerun_the_node(store: Checkpointer) -> None:
    ran: list[int] = []
    runner = asked(store, "name?", ran=ran)
    before = store.cursor("t")
    assert runner.invoke(thread_id="t").status == "waiting"
    assert (store.cursor("t"), len(ran)) == (before, 1)


def test_a_node_s_own_except_does_not_swallow_the_question(store: Checkpointer) -> None:
    def careful(state: Any, config: Any) -> dict[str, Any]:
        try:
            return {"log": config.interrupt("name?")}
        except Exception:
            return {"log": "swallowed"}

    runner = line(store, careful)
    result = runner.invoke({}, thread_id="t")
    assert result.status == "waiting"


@pytest.mark.parametrize(
    ("kind", "reason", "choices"),
    [
        ("approve", "approval", ["approve", "reject"]),
        ("choose", "approval", ["red", "blue"]),
        ("edit", "interrupt", []),
        ("ask", "interrupt", []),
    ],
)
def test_each_kind_of_question_makes_its_request(
    store: Checkpointer, kind: str, reason: str, choices: list[str]
) -> None:
    question: dict[str, Any] = {"kind": kind, "title": "well?", "payload": {"x": 1}, "subject": "draft"}
    if kind == "choose":
        question["choices"] = ["red", {"id": "blue", "label": "Blue", "key": "b", "text": "required"}]
    runner = asked(store, question)
    request = runner.open("t").cursor.pending[0]
    assert (request.kind, request.title, request.payload, request.subject) == (
        kind,
        "well?",
        {"x": 1},
        "draft",
    )
    assert [choice.id for choice in request.choices] == choices
    assert runner.open("t").cursor.reason == reason


def test_an_approval_takes_approve_or_reject_and_nothing_else(store: Checkpointer) -> None:
    runner = asked(store, {"kind": "approve", "payload": "delete it?"})
    with pytest.raises(AnswerRefused, match="not an allowed answer"):
        runner.answer("t", pending_id(runner, "t"), "perhaps", step=0)
    runner.answer("t", pending_id(runner, "t"), "reject", step=0)
    assert runner.invoke(thread_id="t")["log"][0] == ["reject"]


def test_a_schema_checks_the_answer(store: Checkpointer) -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    runner = asked(store, {"kind": "ask", "title": "age?", "schema": schema})
    for wrong in ({"age": "ten"}, {}, None, "ten", {"age": True}):
        with pytest.raises(AnswerRefused):
            runner.answer("t", pending_id(runner, "t"), wrong, step=0)
    assert len(ledger_of(store, "t", "refused")) == 5
    runner.answer("t", pending_id(runner, "t"), {"age": 10}, step=0)
    assert runner.invoke(thread_id="t")["log"][0] == [{"age": 10}]


def test_a_schema_may_be_a_python_type_as_for_channels(store: Checkpointer) -> None:
    runner = asked(store, {"kind": "ask", "schema": int})
    assert runner.open("t").cursor.pending[0].schema == {"type": "integer"}
    with pytest.raises(AnswerRefused):
        runner.answer("t", pending_id(runner, "t"), "ten", step=0)


def test_an_answer_that_is_not_json_is_refused_and_recorded(store: Checkpointer) -> None:
    runner = asked(store, "x?")
    with pytest.raises(AnswerRefused):
        runner.answer("t", pending_id(runner, "t"), object(), step=0)
    assert ledger_of(store, "t", "refused")[0].data["answer"].startswith("<object")


def test_null_false_and_empty_text_are_answers(store: Checkpointer) -> None:
    runner = line(store, asking("a", "b", "c"))
    runner.invoke({}, thread_id="t")
    for answer in (None, False, ""):
        runner.answer("t", pending_id(runner, "t"), answer, step=0)
        result = runner.invoke(thread_id="t")
    assert list(result["log"]) == [[None, False, ""]]


def test_a_mapping_without_a_kind_is_a_payload(store: Checkpointer) -> None:
    for question in ({"question": "x?"}, {"kind": "quiz", "title": "x"}, {"kind": "ask", "colour": "red"}):
        runner = line(store, asking(question))
        request = runner.invoke({}, thread_id=str(question)).pending[0]
        assert (request.kind, request.payload) == ("ask", question)


@pytest.mark.parametrize(
    "wrong",
    [
        {"quorum": 0},
        {"quorum": "two"},
        {"reviewers": "ann"},
        {"reviewers": [1]},
        {"reviewers": ["ann"], "quorum": 2},
        {"risk": "extreme"},
        {"subject": 3},
        {"recommended": {}},
        {"deadline": -1},
        {"choices": [{"label": "no id"}]},
        {"choices": ["a"], "on_timeout": "b"},
        {"choices": ["a"], "recommended": "b"},
        {"schema": {"type": "integer"}, "on_timeout": "x"},
        {"schema": {"type": "nonsense"}},
        {"payload": object()},
    ],
)
def test_a_request_that_could_never_be_answered_fails_the_node(
    store: Checkpointer, wrong: dict[str, Any]
) -> None:
    runner = line(store, asking({"kind": "ask", **wrong}))
    with pytest.raises(NodeFailed):
        runner.invoke({}, thread_id="t")
    cursor = line(store, say("x")).open("t").cursor
    assert (cursor.status, cursor.pending) == ("failed", ())


def test_what_a_node_used_before_it_asked_is_counted(store: Checkpointer) -> None:
    from hitl_tui.engine.nodes.activity import current_activity

    use = ModelUse("a", "p", "m", 10, 5, 0.25)

    def node(state: Any, config: Any) -> NodeResult:
        activity = current_activity.get()
        assert activity is not None
        activity.model_called(use, 1)
        return NodeResult({"log": config.interrupt("x?")})

    runner = line(store, node)
    runner.invoke({}, thread_id="t")
    assert (runner.run_info("t").tokens_in, runner.run_info("t").cost) == (10, 0.25)
    runner.answer("t", pending_id(runner, "t"), "y", step=0)
    runner.invoke(thread_id="t")
    assert (runner.run_info("t").tokens_in, runner.run_info("t").cost) == (20, 0.5)


def test_an_edit_while_a_node_asks_keeps_the_question_and_the_node_sees_the_edit(store: Checkpointer) -> None:
    def node(state: Any, config: Any) -> dict[str, Any]:
        return {"log": [state["draft"], config.interrupt("x?")]}

    runner = line(store, node)
    wanted = runner.invoke({}, thread_id="t").pending[0].id
    runner.update_state("t", {"draft": "edited"})
    request = runner.open("t").cursor.pending[0]
    assert (request.id, request.step) == (wanted, 0)
    with pytest.raises(AnswerRefused, match="about step 2"):
        runner.answer("t", wanted, "y", step=2)
    runner.answer("t", wanted, "y", step=1)
    assert list(runner.invoke(thread_id="t")["log"]) == [["edited", "y"]]
    check_log(runner, "t")
