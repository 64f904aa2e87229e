"""Subgraph: a child that waits for a human, answered from above and on its own."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import (
    AnswerRefused,
    Gate,
    GateChoice,
    UsageError,
)
from hitl_tui.engine.commands.answering import expire
from hitl_tui.engine.thread.session import now_us
from hitl_tui.stores import Checkpointer
from tests.engine.nodes.subgraphs import gated, inner, outer, two_deep
from tests.support.spec import spec

pytestmark = spec("7")


class TestWaiting:
    def test_the_parent_waits_with_the_childs_request(self, store: Checkpointer) -> None:
        result = gated(store).invoke({"task": "why?"}, thread_id="t")
        (request,) = result.pending
        assert (result.status, request.title, request.node) == ("waiting", "is it good?", "team")
        assert (request.path, request.thread, request.step) == ("team/n1", "t/team#1", 0)
        assert request.payload == {"draft": "re: why?"}

    def test_an_answer_through_the_parent_goes_to_the_child(self, store: Checkpointer) -> None:
        runner = gated(store)
        (request,) = runner.invoke({"task": "why?"}, thread_id="t").pending
        redo = {"choice": "redo", "text": "better"}
        runner.answer("t", request.id, redo, step=request.step, actor="ann")
        assert runner.run_info("t/team#1").status == "completed"
        assert runner.get_state("t/team#1")["draft"] == "better"
        assert runner.invoke(thread_id="t")["results"] == ["better"]
        for thread in ("t", "t/team#1"):
            assert [one.actor for one in store.ledger(thread) if one.kind == "answer"] == ["ann"]

    def test_an_answer_in_the_child_lets_the_parent_continue(self, store: Checkpointer) -> None:
        runner = gated(store)
        runner.invoke({"task": "why?"}, thread_id="t")
        (own,) = runner.open("t/team#1").cursor.pending
        runner.answer("t/team#1", own.id, "ok", step=own.step)
        assert runner.invoke(thread_id="t")["results"] == ["re: why?"]

    def test_an_edit_of_the_child_is_used(self, store: Checkpointer) -> None:
        runner = gated(store)
        (request,) = runner.invoke({"task": "why?"}, thread_id="t").pending
        runner.update_state("t/team#1", {"draft": "edited"})
        with pytest.raises(AnswerRefused, match="no longer waits"):
            runner.answer("t", request.id, "ok", step=request.step)
        (again,) = runner.open("t").cursor.pending
        assert again.payload == {"draft": "edited"}
        runner.answer("t", again.id, "ok", step=again.step)
        assert runner.invoke(thread_id="t")["results"] == ["edited"]

    def test_what_is_refused_leaves_the_child_waiting(self, store: Checkpointer) -> None:
        runner = gated(store)
        first = runner.invoke({"task": "why?"}, thread_id="t")
        with pytest.raises(UsageError, match="unknown node 'nonesuch'"):
            runner.update_state("t", {}, as_node="nonesuch")
        with pytest.raises(UsageError, match="takes no input 'nonesuch'"):
            runner.invoke({"nonesuch": 1}, thread_id="t", resume="entry")
        assert runner.run_info("t/team#1").status == "waiting"
        assert runner.open("t").cursor.pending == first.pending

    def test_a_child_that_was_run_to_its_end_on_its_own_is_taken_as_it_is(self, store: Checkpointer) -> None:
        ran: list[int] = []

        def node(_state: Any, config: Any) -> dict[str, Any]:
            answer = config.interrupt("sure?")
            ran.append(1)
            return {"draft": answer}

        runner = outer(inner(node), store)
        runner.invoke(thread_id="t")
        (own,) = runner.open("t/team#1").cursor.pending
        runner.answer("t/team#1", own.id, "sure", step=own.step)
        assert runner.invoke(thread_id="t/team#1").status == "completed"
        assert runner.invoke(thread_id="t")["results"] == ["sure"]
        assert ran == [1]

    def test_resuming_without_an_answer_runs_nothing(self, store: Checkpointer) -> None:
        runner = gated(store)
        first = runner.invoke({"task": "why?"}, thread_id="t")
        version = store.cursor("t/team#1").version  # type: ignore[union-attr]
        assert runner.invoke(thread_id="t").pending == first.pending
        assert store.cursor("t/team#1").version == version  # type: ignore[union-attr]

    @pytest.mark.parametrize(
        ("on_timeout", "status", "reason", "inside"),
        [
            ("ok", "waiting", "paused", ("completed", "end")),
            (None, "failed", "deadline", ("failed", "deadline")),
        ],
        ids=["its answer for the deadline is given", "without one both threads fail by the deadline"],
    )
    def test_a_deadline_of_the_child_passes_on_the_parent(
        self, store: Checkpointer, on_timeout: Any, status: str, reason: str, inside: tuple[str, str]
    ) -> None:
        gate = Gate("n1", "good?", [GateChoice("ok", "good")], deadline=60, on_timeout=on_timeout)
        runner = outer(inner().compile(checkpointer=store, interrupt_after=[gate]), store)
        runner.invoke({"task": "why?"}, thread_id="t")
        session = runner.open("t")
        session.clock = lambda: now_us() + 120_000_000
        with session.writing():
            assert expire(session) is (status == "failed")
        info, inner_one = (runner.run_info(thread) for thread in ("t", "t/team#1"))
        assert (info.status, info.reason) == (status, reason)
        assert (inner_one.status, inner_one.reason) == inside
        if status == "waiting":
            assert runner.invoke(thread_id="t")["results"] == ["re: why?"]
        else:
            assert runner.invoke(thread_id="t").pending[0].title == "good?"

    def test_a_question_two_graphs_deep_is_answered_from_the_top(self, store: Checkpointer) -> None:
        runner = two_deep(store)
        (request,) = runner.invoke(thread_id="t").pending
        assert (request.path, request.thread) == ("team/deep/n1", "t/team#1")
        runner.answer("t", request.id, "yes", step=request.step)
        assert runner.invoke(thread_id="t")["results"] == ["yes"]

    def test_a_subgraph_that_a_route_leads_to_asks_at_its_own_node(self, store: Checkpointer) -> None:
        asks = inner(lambda _s, c: {"draft": c.interrupt("sure?")})
        runner = outer(asks, store, times=2)
        for visit in (1, 2):  # the second time the conditional edge after the other node leads there
            result = runner.invoke(thread_id="t")
            (request,) = result.pending
            assert (request.node, request.path, request.thread) == ("team", "team/n1", f"t/team#{visit}")
            assert runner.open("t").cursor.position == "node:team"
            runner.answer("t", request.id, f"yes {visit}", step=request.step)
        result = runner.invoke(thread_id="t")
        assert (result.status, result["results"]) == ("completed", ["yes 1", "yes 2"])
        assert runner.verify("t", strict=True).ok
        assert runner.replay("t").mismatches == ()

    def test_what_waits_in_a_subgraph_that_a_route_led_to_is_asked_again_in_a_fork(
        self, store: Checkpointer
    ) -> None:
        asks = inner(lambda _s, c: {"draft": c.interrupt("sure?")})
        runner = outer(asks, store, times=2)
        (request,) = runner.invoke(thread_id="t").pending
        runner.answer("t", request.id, "yes", step=request.step)
        step = runner.invoke(thread_id="t").step
        runner.fork("t", step, "f")
        (request,) = runner.invoke(thread_id="f").pending
        assert (request.path, request.thread) == ("team/n1", "f/team#2")
        runner.answer("f", request.id, "no", step=request.step)
        assert runner.invoke(thread_id="f")["results"] == ["yes", "no"]

    def test_a_plain_breakpoint_of_the_child_is_passed_by_resuming_the_parent(
        self, store: Checkpointer
    ) -> None:
        runner = outer(inner().compile(checkpointer=store, interrupt_before=["n1"]), store)
        assert runner.invoke(thread_id="t").reason == "interrupt"
        assert runner.invoke({"task": "x"}, thread_id="t").status == "completed"
