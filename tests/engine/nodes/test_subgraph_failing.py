"""Subgraph: a child that fails or is cancelled, limits and spending."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import (
    START,
    AnswerRefused,
    NodeFailed,
    NodeResult,
)
from hitl_tui.engine.log.outcomes import ModelUse
from hitl_tui.engine.log.records import Limits
from hitl_tui.stores import Checkpointer
from tests.engine.nodes.subgraphs import gated, inner, outer, two_deep
from tests.support.spec import spec

pytestmark = spec("7")


class TestFailing:
    def test_a_failed_child_fails_the_node_and_resuming_continues_where_it_failed(
        self, store: Checkpointer
    ) -> None:
        ran: list[str] = []
        broken = True

        def first(_state: Any) -> dict[str, Any]:
            ran.append("first")
            return {"seen": "first"}

        def second(_state: Any) -> dict[str, Any]:
            ran.append("second")
            if broken:
                raise ValueError("the disk is full")
            return {"draft": "done"}

        runner = outer(inner(first, second), store)
        with pytest.raises(NodeFailed, match=r"node 'team', attempt 1: its thread 't/team#1' failed: .*disk"):
            runner.invoke(thread_id="t")
        assert runner.run_info("t").status == runner.run_info("t/team#1").status == "failed"
        broken = False
        assert runner.invoke(thread_id="t")["results"] == ["done"]
        assert ran == ["first", "second", "second"]
        assert store.info("t/team#2") is None

    def test_a_cancelled_child_fails_the_node_and_resuming_begins_another(self, store: Checkpointer) -> None:
        runner = gated(store)
        runner.invoke({"task": "why?"}, thread_id="t")
        runner.cancel("t/team#1", actor="ann", note="too late")
        with pytest.raises(NodeFailed, match="its thread 't/team#1' was cancelled by ann: too late"):
            runner.invoke(thread_id="t")
        assert runner.invoke(thread_id="t").status == "waiting"
        assert runner.run_info("t/team#2").status == "waiting"

    def test_an_answer_to_a_child_that_was_cancelled_is_refused_and_the_parent_has_failed(
        self, store: Checkpointer
    ) -> None:
        runner = gated(store)
        (request,) = runner.invoke({"task": "why?"}, thread_id="t").pending
        runner.cancel("t/team#1", actor="ann")
        with pytest.raises(AnswerRefused, match="no request"):
            runner.answer("t", request.id, "ok", step=request.step, actor="bob")
        cursor = runner.open("t").cursor
        assert (cursor.status, cursor.reason, cursor.pending) == ("failed", "node_error", ())
        assert cursor.error is not None
        assert cursor.error.message == "node 'team': its thread 't/team#1' was cancelled by ann"
        assert "another one" in cursor.error.hint
        assert [entry.note for entry in store.ledger("t") if entry.kind == "failed"] == [cursor.error.message]
        assert runner.invoke(thread_id="t").pending[0].thread == "t/team#2"
        assert runner.verify("t", strict=True).ok

    def test_a_grandchild_that_was_cancelled_fails_one_thread_after_the_other(
        self, store: Checkpointer
    ) -> None:
        runner = two_deep(store)
        (request,) = runner.invoke(thread_id="t").pending
        runner.cancel("t/team#1/deep#1", actor="ann")
        with pytest.raises(AnswerRefused, match="no request"):
            runner.answer("t", request.id, "yes", step=request.step)
        for thread in ("t", "t/team#1"):
            error = runner.open(thread).cursor.error
            assert error is not None
            assert "'t/team#1/deep#1' was cancelled by ann" in error.message
        (request,) = runner.invoke(thread_id="t").pending
        assert request.path == "team/deep/n1"
        runner.answer("t", request.id, "yes", step=request.step)
        assert runner.invoke(thread_id="t")["results"] == ["yes"]
        assert store.info("t/team#2") is None
        assert store.info("t/team#1/deep#2") is not None

    def test_cancelling_the_parent_cancels_the_child(self, store: Checkpointer) -> None:
        runner = gated(store)
        runner.invoke({"task": "why?"}, thread_id="t")
        runner.cancel("t")
        assert runner.run_info("t/team#1").status == "cancelled"

    def test_leaving_the_visit_cancels_its_child_and_the_next_visit_has_another(
        self, store: Checkpointer
    ) -> None:
        runner = gated(store)
        runner.invoke({"task": "why?"}, thread_id="t")
        runner.update_state("t", {"task": "what?"}, as_node=START)
        runner.invoke(thread_id="t")
        assert runner.run_info("t/team#1").status == "cancelled"
        assert runner.get_state("t/team#2")["draft"] == "re: what?"

    @pytest.mark.parametrize(
        ("limits", "status"),
        [(Limits(max_iterations=3), "completed"), (Limits(max_iterations=2), "failed")],
        ids=["enough", "too few"],
    )
    def test_the_child_has_what_is_left_of_the_parents_limits(
        self, store: Checkpointer, limits: Limits, status: str
    ) -> None:
        nodes = [lambda _s: {"seen": "x"}] * 3
        runner = outer(inner(*nodes), store, limits=limits)
        result = runner.invoke(thread_id="t")
        assert (result.status, runner.run_info("t/team#1").status) == (status, status)
        if status == "failed":
            assert result.reason == runner.run_info("t/team#1").reason == "limit"
            runner.extend_limits("t", max_iterations=9)
            assert runner.invoke(thread_id="t").status == "completed"

    @pytest.mark.parametrize("end", ["answered", "cancelled", "left by an edit"])
    def test_the_cost_report_is_complete_whatever_happens_to_a_waiting_child(
        self, store: Checkpointer, end: str
    ) -> None:
        use = ModelUse("writer", "p", "m", 100, 10, 0.5)
        drafts = lambda _state: NodeResult({"draft": "d"}, usage=[use])  # noqa: E731
        asks = lambda _state, config: {"seen": config.interrupt("sure?")}  # noqa: E731
        runner = outer(inner(drafts, asks), store)

        def spent() -> float:
            (line,) = runner.cost_report("t")
            assert line.cost == runner.cost_report("t").total.cost == runner.run_info("t").cost
            assert list(runner.cost_report()) == [line]
            return line.cost or 0.0

        request = runner.invoke(thread_id="t").pending[0]
        assert spent() == 0.5
        if end == "answered":
            runner.answer("t", request.id, "yes", step=request.step)
        elif end == "cancelled":
            runner.cancel("t/team#1")
            with pytest.raises(NodeFailed):
                runner.invoke(thread_id="t")
            assert spent() == 0.5
            request = runner.invoke(thread_id="t").pending[0]
            assert spent() == 1.0
            runner.answer("t", request.id, "yes", step=request.step)
        else:
            runner.update_state("t", {"answer": "mine"}, as_node="team")
            assert spent() == 0.5
        assert runner.invoke(thread_id="t").status == "completed"
        assert spent() == (1.0 if end == "cancelled" else 0.5)

    def test_spending_is_rolled_up_once(self, store: Checkpointer) -> None:
        use = ModelUse("writer", "p", "m", 100, 10, 0.5)

        def node(_state: Any, config: Any) -> NodeResult:
            config.interrupt("sure?")
            return NodeResult({"draft": "d"}, usage=[use])

        runner = outer(inner(node), store)
        request = runner.invoke(thread_id="t").pending[0]
        runner.answer("t", request.id, "yes", step=request.step)
        runner.invoke(thread_id="t")
        info = runner.run_info("t")
        assert (info.tokens_in, info.tokens_out, info.cost) == (100, 10, 0.5)
        assert [(line.agent, line.calls, line.cost) for line in runner.cost_report("t")] == [
            ("writer", 1, 0.5)
        ]
