"""Questions inside branches; nothing that was done or answered is lost."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import AnswerRefused, quorum
from hitl_tui.engine.log.events import BranchWaits
from hitl_tui.stores import Checkpointer
from tests.engine.nodes.graphs import Events, grouped, mapped, statuses
from tests.support.spec import spec

pytestmark = [spec("7"), spec("11")]


class Asking:
    """A node whose branches for texts that begin with "?" ask, once for each "?"."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def __call__(self, state: Any, config: Any) -> dict[str, Any]:
        self.ran.append(config.item)
        answers = [
            config.interrupt({"kind": "ask", "title": config.item}) for _ in range(config.item.count("?"))
        ]
        return {"log": [config.item, *answers, state["last"]]}


def pending(runner: Any) -> dict[str, Any]:
    return {request.path: request for request in runner.invoke(thread_id="t").pending}


def answer(runner: Any, path: str, value: Any) -> None:
    request = pending(runner)[path]
    runner.answer("t", request.id, value, step=request.step)


def test_several_requests_wait_at_once_and_each_names_its_branch(store: Checkpointer) -> None:
    runner, events = mapped(Asking(), store), Events()
    result = runner.invoke({"items": ["?a", "b", "?c"]}, thread_id="t", on_event=events)
    assert (result.status, result.reason) == ("waiting", "interrupt")
    assert [(one.node, one.path, one.title) for one in result.pending] == [
        ("scan", "scan[0]", "?a"),
        ("scan", "scan[2]", "?c"),
    ]
    assert len({one.id for one in result.pending}) == 2
    assert sorted(one.path for one in events.of(BranchWaits)) == ["scan[0]", "scan[2]"]


def test_branches_that_have_ended_do_not_run_again(store: Checkpointer) -> None:
    node = Asking()
    runner = mapped(node, store, max_concurrent=1)
    runner.invoke({"items": ["?a", "b"]}, thread_id="t")
    answer(runner, "scan[0]", "yes")
    result = runner.invoke(thread_id="t")
    assert result["log"] == [["?a", "yes", None], ["b", None]]
    assert node.ran == ["?a", "b", "?a"]
    assert runner.verify("t", strict=True).ok


def test_earlier_answers_are_served_to_their_branch_by_order(store: Checkpointer) -> None:
    runner = mapped(Asking(), store)
    runner.invoke({"items": ["??a", "?b"]}, thread_id="t")
    answer(runner, "scan[0]", 1)
    answer(runner, "scan[1]", "b")
    answer(runner, "scan[0]", 2)
    assert runner.invoke(thread_id="t")["log"] == [["??a", 1, 2, None], ["?b", "b", None]]


def test_an_answered_branch_continues_while_others_wait(store: Checkpointer) -> None:
    node = Asking()
    runner = mapped(node, store)
    before = runner.invoke({"items": ["?a", "?b"]}, thread_id="t").pending[1]
    answer(runner, "scan[0]", "yes")
    result = runner.invoke(thread_id="t")
    assert node.ran.count("?a") == 2
    assert node.ran.count("?b") == 1
    assert result.pending == (before,)


def test_once_one_of_several_is_answered_the_thread_waits_for_the_others(store: Checkpointer) -> None:
    runner = mapped(Asking(), store)
    first, second = runner.invoke({"items": ["?a", "?b"]}, thread_id="t").pending
    where = []
    for request in (first, second):
        runner.answer("t", request.id, "yes", step=request.step)
        info = runner.run_info("t")
        where.append((info.status, info.reason))
    assert where == [("waiting", "interrupt"), ("waiting", "paused")]


def test_one_that_ends_the_thread_by_its_deadline_withdraws_the_others(store: Checkpointer) -> None:
    def ask(state: Any, config: Any) -> None:
        terms = {"deadline": 1e-6} if config.index == 1 else {}
        config.interrupt({"kind": "ask", "title": config.item, **terms})

    runner = mapped(ask, store)
    waits = runner.invoke({"items": ["a", "b", "c"]}, thread_id="t")
    result = runner.invoke(thread_id="t") if waits.pending else waits
    assert (result.status, result.reason, result.pending) == ("failed", "deadline", ())
    entries = {one.request_id: one.kind for one in store.ledger("t")}
    asked = {one.note: one.request_id for one in store.ledger("t") if one.kind == "request"}
    assert {title: entries[wanted] for title, wanted in asked.items()} == {
        "a": "withdrawn",
        "b": "timeout",
        "c": "withdrawn",
    }
    assert runner.verify("t", strict=True).ok


def test_resuming_without_an_answer_runs_nothing(store: Checkpointer) -> None:
    node = Asking()
    runner = mapped(node, store)
    first = runner.invoke({"items": ["?a", "b"]}, thread_id="t")
    assert runner.invoke(thread_id="t").pending == first.pending
    assert len(node.ran) == 2


def test_a_join_that_is_settled_withdraws_the_questions_that_still_wait(store: Checkpointer) -> None:
    runner = mapped(Asking(), store, join=quorum(2))
    runner.invoke({"items": ["?a", "b", "?c"]}, thread_id="t")
    late = pending(runner)["scan[2]"]
    answer(runner, "scan[0]", "yes")
    result = runner.invoke(thread_id="t")
    assert (result.status, result["log"]) == ("completed", [["?a", "yes", None], ["b", None]])
    assert statuses(runner) == {"scan[0]": "ok", "scan[1]": "ok", "scan[2]": "cancelled"}
    assert [one.kind for one in store.ledger("t") if one.request_id == late.id] == ["request", "withdrawn"]
    with pytest.raises(AnswerRefused):
        runner.answer("t", late.id, "too late", step=late.step)


def test_an_edit_keeps_the_answers_and_makes_what_was_done_run_again(store: Checkpointer) -> None:
    runner = mapped(Asking(), store)
    runner.invoke({"items": ["?a", "b", "?c"]}, thread_id="t")
    answer(runner, "scan[0]", "yes")
    runner.update_state("t", {"last": "edited"})
    answer(runner, "scan[2]", "no")
    log = runner.invoke(thread_id="t")["log"]
    assert log == [["?a", "yes", "edited"], ["b", "edited"], ["?c", "no", "edited"]]


def test_another_item_at_its_place_makes_a_new_branch(store: Checkpointer) -> None:
    runner = mapped(Asking(), store)
    runner.invoke({"items": ["?a", "?b"]}, thread_id="t")
    answer(runner, "scan[0]", "about a")
    runner.update_state("t", {"items": ["?z", "?b"]})
    assert [one.title for one in runner.invoke(thread_id="t").pending] == ["?z", "?b"]


def test_members_of_a_parallel_ask_too(store: Checkpointer) -> None:
    runner = grouped(
        store,
        a=lambda _s, c: {"log": c.interrupt("a?")},
        b=lambda _s, c: {"log": c.interrupt("b?")},
    )
    runner.invoke(thread_id="t")
    answer(runner, "group/b", "from b")
    answer(runner, "group/a", "from a")
    assert runner.invoke(thread_id="t")["log"] == ["from a", "from b"]


def test_a_question_made_obsolete_by_an_edit_is_withdrawn(store: Checkpointer) -> None:
    runner = mapped(Asking(), store)
    first, second = runner.invoke({"items": ["?a", "?b"]}, thread_id="t").pending
    runner.update_state("t", {"items": ["?a", "b"]})
    answer(runner, "scan[0]", "yes")
    result = runner.invoke(thread_id="t")
    assert (result.status, result["log"]) == ("completed", [["?a", "yes", None], ["b", None]])
    entries = [(one.request_id, one.kind) for one in store.ledger("t") if one.kind in ("answer", "withdrawn")]
    assert entries == [(first.id, "answer"), (second.id, "withdrawn")]
    assert runner.verify("t", strict=True).ok


def test_a_replaced_question_is_withdrawn(store: Checkpointer) -> None:
    runner = mapped(Asking(), store)
    _, second = runner.invoke({"items": ["?a", "?b"]}, thread_id="t").pending
    runner.update_state("t", {"items": ["?a", "b", "?c"]})
    answer(runner, "scan[0]", "yes")
    waits = runner.invoke(thread_id="t")
    assert [one.title for one in waits.pending] == ["?c"]
    entries = [one.request_id for one in store.ledger("t") if one.kind == "withdrawn"]
    assert entries == [second.id]
    with pytest.raises(AnswerRefused, match="withdrawn"):
        runner.answer("t", second.id, "too late", step=waits.step)
