"""SPEC 7, subgraph: a child that fails or is cancelled, limits and spending."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import (
    START,
    NodeFailed,
    NodeResult,
)
from hitl_tui.engine.outcomes import ModelUse
from hitl_tui.engine.records import Limits
from hitl_tui.stores import Checkpointer
from tests.engine_fanout.subgraphs import gated, inner, outer


class TestFailing:
    def test_a_failed_child_fails_the_node_and_resuming_goes_on_where_it_failed(
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
        runner.cancel("t/team#1")
        with pytest.raises(NodeFailed, match="'t/team#1' cancelled: user"):
            runner.invoke(thread_id="t")
        assert runner.invoke(thread_id="t").status == "waiting"
        assert runner.run_info("t/team#2").status == "waiting"

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
