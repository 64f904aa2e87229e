"""Inside a node an answer applies only to the question it answered."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from hitl_tui import END, START, AnswerRefused, Channel, GraphRunner, StateGraph
from hitl_tui.engine.log.requests import Request
from hitl_tui.stores import Checkpointer
from tests.support.flows import check_log, ledger_of

Node = Callable[[Any, Any], Any]


def runner_of(store: Checkpointer, node: Node) -> GraphRunner:
    channels = {"amount": Channel(0), "other": Channel(""), "out": Channel(None)}
    graph = StateGraph(channels).add_node("pay", node).add_edge(START, "pay").add_edge("pay", END)
    return graph.compile(checkpointer=store)


def waiting(runner: GraphRunner) -> Request:
    """The one request that waits."""
    (request,) = runner.store.cursor("t").pending  # type: ignore[union-attr]
    return request


def give(runner: GraphRunner, answer: Any = "approve", actor: str = "ann") -> Any:
    """Answer what waits, and resume."""
    request = waiting(runner)
    runner.answer("t", request.id, answer, step=request.step, actor=actor)
    return runner.invoke(thread_id="t")


def paying(state: Any, config: Any) -> dict[str, Any]:
    amount = state["amount"]
    question = {"kind": "approve", "title": f"Pay {amount}?", "payload": amount, "subject": "amount"}
    return {"out": [config.interrupt(question), amount]}


def test_a_node_that_asks_something_else_gets_no_answer_to_the_first_question(store: Checkpointer) -> None:
    files, deleted = ["a.txt", "b.txt"], []

    def delete(state: Any, config: Any) -> None:
        victim = files.pop(0)
        question = {"kind": "approve", "title": f"Delete {victim}?", "payload": victim}
        if config.interrupt(question) == "approve":
            deleted.append(victim)

    runner = runner_of(store, delete)
    runner.invoke(thread_id="t")
    first = waiting(runner)
    assert give(runner).status == "waiting"
    second = waiting(runner)
    assert (deleted, second.title) == ([], "Delete b.txt?")
    assert second.id != first.id
    assert second.request_hash != first.request_hash
    assert second.notes == ("ann approved a.txt; now it asks about b.txt.",)
    with pytest.raises(AnswerRefused):
        runner.answer("t", first.id, "approve", step=first.step, actor="ann")
    files.insert(0, "b.txt")
    assert give(runner).status == "completed"
    assert deleted == ["b.txt"]
    (unused,) = ledger_of(store, "t", "unused")
    assert (unused.request_id, unused.made_by) == (first.id, "node")
    check_log(runner, "t")


@pytest.mark.parametrize("change", ["edit", "input"])
def test_a_changed_subject_is_asked_about_again(store: Checkpointer, change: str) -> None:
    runner = runner_of(store, paying)
    runner.invoke({"amount": 10}, thread_id="t")
    request = waiting(runner)
    runner.answer("t", request.id, "approve", step=request.step, actor="ann")
    if change == "edit":
        runner.update_state("t", {"amount": 10000}, actor="eve")
    result = runner.invoke({"amount": 10000} if change == "input" else None, thread_id="t")
    assert result.status == "waiting"
    assert waiting(runner).notes == ("ann approved 10; now it asks about 10000.",)
    assert give(runner, "reject", "bob")["out"] == ["reject", 10000]
    check_log(runner, "t")


def test_an_answer_is_still_valid_after_an_unrelated_edit(store: Checkpointer) -> None:
    runner = runner_of(store, paying)
    runner.invoke({"amount": 10}, thread_id="t")
    request = waiting(runner)
    runner.answer("t", request.id, "approve", step=request.step, actor="ann")
    runner.update_state("t", {"other": "x"}, actor="eve")
    assert runner.invoke(thread_id="t")["out"] == ["approve", 10]


def test_identical_questions_are_distinguished(store: Checkpointer) -> None:
    runner = runner_of(store, lambda s, c: {"out": [c.interrupt("Continue?"), c.interrupt("Continue?")]})
    runner.invoke(thread_id="t")
    assert give(runner, "first").status == "waiting"
    assert waiting(runner).notes == ()
    assert give(runner, "second")["out"] == ["first", "second"]


def test_answers_follow_their_questions_in_another_order(store: Checkpointer) -> None:
    names = ["a", "b", "c"]

    def ask_all(state: Any, config: Any) -> dict[str, Any]:
        return {"out": {name: config.interrupt(f"{name}?") for name in names}}

    runner = runner_of(store, ask_all)
    runner.invoke(thread_id="t")
    give(runner, "of a")
    names[:] = ["b", "a", "c"]
    give(runner, "of b")
    names[:] = ["c", "b", "a"]
    assert give(runner, "of c")["out"] == {"a": "of a", "b": "of b", "c": "of c"}


TERMS = {
    "reviewers": ["ann", "bob"], "quorum": 2, "deadline": 60, "risk": "high", "choices": ["approve", "no"],
    "recommended": "approve", "signed": True, "title": "Pay now?", "payload": 11, "subject": "other",
    "one_account": True, "rubric": ["tone"], "four_eyes": True,
    "on_timeout": "reject", "schema": {"type": "string"},
}  # fmt: skip


@pytest.mark.parametrize("term", TERMS)
def test_other_terms_make_another_request(store: Checkpointer, term: str) -> None:
    question: dict[str, Any] = {
        "kind": "approve", "title": "Pay?", "payload": 10, "subject": "amount",
    }  # fmt: skip
    if term == "quorum":
        question["reviewers"] = ["ann", "bob"]
    runner = runner_of(store, lambda s, c: {"out": c.interrupt(question)})
    runner.invoke(thread_id="t")
    before = waiting(runner)
    assert before.request_hash.startswith("sha256:")
    runner.answer("t", before.id, "approve", step=before.step, actor="ann")
    if not store.cursor("t").answers:  # type: ignore[union-attr]
        runner.answer("t", before.id, "approve", step=before.step, actor="bob")
    question[term] = TERMS[term]
    assert runner.invoke(thread_id="t").status == "waiting"
    assert waiting(runner).request_hash != before.request_hash


def test_what_is_never_the_same_twice_says_how_to_fix_it(store: Checkpointer) -> None:
    clock = iter(range(100))

    def ask(state: Any, config: Any) -> dict[str, Any]:
        payload = {"at": next(clock), "amount": 10, "to": {"name": "bo", "id": 1}}
        return {"out": config.interrupt({"kind": "approve", "title": "Pay?", "payload": payload})}

    runner = runner_of(store, ask)
    runner.invoke(thread_id="t")
    assert give(runner).status == "waiting"
    assert waiting(runner).notes == ("ann approved at 0; now it asks about at 1.",)
    assert give(runner).status == "waiting"
    said, advice = waiting(runner).notes
    assert said == "ann approved at 1; now it asks about at 2."
    assert "because of at, which differs each time" in advice
    assert 'binds=["amount", "to"]' in advice


@pytest.mark.parametrize("how", ["in the question", "as an argument"])
def test_binds_names_the_parts_that_count(store: Checkpointer, how: str) -> None:
    clock, amounts = iter(range(100)), [10, 10, 99]

    def ask(state: Any, config: Any) -> dict[str, Any]:
        payload = {"at": next(clock), "order": {"amount": amounts.pop(0), "id": next(clock)}}
        if how == "as an argument":
            return {"out": config.interrupt(payload, binds=["order.amount"])}
        question = {"kind": "ask", "payload": payload, "binds": ["order.amount"]}
        return {"out": config.interrupt(question)}

    runner = runner_of(store, ask)
    runner.invoke(thread_id="t")
    assert give(runner)["out"] == "approve"
    runner.invoke({"amount": 1}, thread_id="t")
    amounts.append(98)
    give(runner)
    assert waiting(runner).payload["order"]["amount"] == 98


@pytest.mark.parametrize(
    ("binds", "says"), [(["amuont"], "amuont"), ("amount", "list of names"), ([1], "list of names")]
)
def test_binds_that_bind_nothing_are_refused(store: Checkpointer, binds: Any, says: str) -> None:
    runner = runner_of(store, lambda s, c: {"out": c.interrupt({"amount": 1}, binds=binds)})
    with pytest.raises(Exception, match="binds") as caught:
        runner.invoke(thread_id="t")
    assert says in f"{caught.value} {getattr(caught.value, 'hint', '')}"


def swallows_bare(state: Any, config: Any) -> dict[str, Any]:
    try:
        answer = config.interrupt("Pay?")
    except:  # noqa: E722
        answer = "no answer"
    return {"out": answer}


def returns_in_finally(state: Any, config: Any) -> dict[str, Any]:
    try:
        answer = config.interrupt("Pay?")
    except BaseException:
        raise
    else:
        return {"out": answer}
    finally:
        if "answer" not in locals():
            return {"out": "went on"}  # noqa: B012


def suppresses(state: Any, config: Any) -> dict[str, Any]:
    answer = "went on"
    with contextlib.suppress(BaseException):
        answer = config.interrupt("Pay?")
    return {"out": answer}


def raises_something_else(state: Any, config: Any) -> dict[str, Any]:
    try:
        return {"out": config.interrupt("Pay?")}
    except BaseException as error:
        raise ValueError("wrapped") from error


async def gathers(state: Any, config: Any) -> dict[str, Any]:
    async def ask() -> Any:
        return config.interrupt("Pay?")

    (answer,) = await asyncio.gather(ask(), return_exceptions=True)
    return {"out": answer if isinstance(answer, str) else repr(answer)}


async def in_a_task_group(state: Any, config: Any) -> dict[str, Any]:
    async def ask(what: str) -> Any:
        return config.interrupt(what)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask("Pay?")), group.create_task(ask("Tip?"))]
    return {"out": tasks[0].result()}


async def in_a_thread(state: Any, config: Any) -> dict[str, Any]:
    def ask() -> Any:
        with contextlib.suppress(BaseException):
            return config.interrupt("Pay?")

    return {"out": await asyncio.to_thread(ask)}


CATCHING = [
    swallows_bare,
    returns_in_finally,
    suppresses,
    raises_something_else,
    gathers,
    in_a_task_group,
    in_a_thread,
]


@pytest.mark.parametrize("node", CATCHING, ids=lambda node: node.__name__)
def test_a_question_that_the_node_catches_still_waits(store: Checkpointer, node: Node) -> None:
    runner = runner_of(store, node)
    result = runner.invoke(thread_id="t")
    assert (result.status, result["out"]) == ("waiting", None)
    request = waiting(runner)
    assert request.payload == "Pay?"
    (entry,) = ledger_of(store, "t", "request")
    if node is in_a_task_group:
        assert request.notes == ()
        give(runner, "yes")
        assert waiting(runner).payload == "Tip?"
    else:
        assert "The node caught this question" in request.notes[0]
        assert entry.data["notes"] == list(request.notes)
    result = give(runner, "yes")
    assert (result.status, result["out"]) == ("completed", "yes")
    check_log(runner, "t")


def test_the_answer_keeps_the_hash_of_its_request(store: Checkpointer) -> None:
    runner = runner_of(store, paying)
    runner.invoke({"amount": 10}, thread_id="t")
    request = waiting(runner)
    give(runner)
    (asked,), (answer,) = ledger_of(store, "t", "request"), ledger_of(store, "t", "answer")
    assert asked.request_hash == answer.request_hash == bytes.fromhex(request.request_hash[7:])
    assert (asked.made_by, answer.made_by) == ("node", "person")
