"""Run_info and cost_report."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import Channel, NodeFailed, NodeResult, RetryPolicy, UnknownThread, UsageError
from hitl_tui.engine.audit.costs import CostLine
from hitl_tui.engine.log.outcomes import ModelUse
from hitl_tui.engine.log.records import Limits
from hitl_tui.stores import Checkpointer
from tests.engine.building import chain, loop, returning
from tests.support.spec import spec

pytestmark = spec("5")

CHANNELS = {"n": Channel(0, reducer="sum")}


def using(*uses: ModelUse) -> Any:
    return returning(NodeResult({"n": 1}, usage=uses))


CHEAP = ModelUse("worker", "ollama", "llama", 100, 50, 0.0)
DEAR = ModelUse("advisor", "anthropic", "opus", 10, 5, 0.25)
UNPRICED = ModelUse("worker", "openai", "local", 7, 3, None)


class TestRunInfo:
    def test_of_a_completed_run(self, store: Checkpointer) -> None:
        limits = Limits(max_iterations=7, max_seconds=60)
        runner = chain(CHANNELS, using(CHEAP), using(DEAR), name="review").compile(
            checkpointer=store, limits=limits
        )
        runner.invoke({"goal": "win", "constraints": ["fair"], "n": 1}, thread_id="t")
        info = runner.run_info("t")
        assert (info.thread_id, info.graph_name, info.graph_digest) == ("t", "review", runner.graph.digest)
        assert (info.invocation, info.goal, info.constraints) == (1, "win", ["fair"])
        assert (info.status, info.reason) == ("completed", "end")
        assert (info.iteration_count, info.limits) == (2, limits)
        assert (info.visited_nodes, info.retry_count) == (("n1", "n2"), 0)
        assert (info.tokens_in, info.tokens_out, info.cost, info.cost_known) == (110, 55, 0.25, True)
        assert 0 <= info.active <= info.updated_at - info.created_at

    def test_of_a_failed_run(self, store: Checkpointer) -> None:
        retry = RetryPolicy(max_attempts=3, wait=0)
        runner = chain(CHANNELS, lambda s, c: 1 / 0, retry=retry).compile(checkpointer=store)
        with pytest.raises(NodeFailed):
            runner.invoke(thread_id="t")
        info = runner.run_info("t")
        assert (info.status, info.reason, info.retry_count) == ("failed", "node_error", 2)
        assert (info.iteration_count, info.visited_nodes) == (0, ())

    def test_counts_invocations_and_their_iterations(self, store: Checkpointer) -> None:
        runner = loop(CHANNELS, returning({"n": 1}), lambda state: state["n"] % 3, checkpointer=store)
        runner.invoke(thread_id="t")
        runner.invoke({"n": 1}, thread_id="t")
        info = runner.run_info("t")
        assert (info.invocation, info.iteration_count, info.visited_nodes) == (2, 2, ("n1",))

    def test_goal_and_constraints_outlive_a_restart(self, store: Checkpointer) -> None:
        node = lambda state, config: {"n": len(state["goal"])}  # noqa: E731
        runner = chain(CHANNELS, returning(None), node).compile(checkpointer=store)
        runner.step({"goal": "win"}, thread_id="t")
        again = chain(CHANNELS, returning(None), node).compile(checkpointer=store)
        assert again.invoke(thread_id="t")["n"] == 3
        assert again.run_info("t").goal == "win"

    def test_of_an_unknown_thread(self, store: Checkpointer) -> None:
        with pytest.raises(UnknownThread, match="'zap'"):
            chain(CHANNELS, returning(None)).compile(checkpointer=store).run_info("zap")


class TestCostReport:
    def test_is_by_agent_provider_and_model(self, store: Checkpointer) -> None:
        other = ModelUse("advisor", "anthropic", "haiku", 1, 1, 0.01)
        runner = chain(CHANNELS, using(CHEAP, DEAR), using(other, CHEAP)).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        assert list(runner.cost_report("t")) == [
            CostLine("worker", "ollama", "llama", 2, 200, 100, 0.0),
            CostLine("advisor", "anthropic", "opus", 1, 10, 5, 0.25),
            CostLine("advisor", "anthropic", "haiku", 1, 1, 1, 0.01),
        ]

    def test_a_call_of_unknown_price_makes_the_cost_of_its_line_unknown(self, store: Checkpointer) -> None:
        runner = chain(CHANNELS, using(UNPRICED, DEAR), using(UNPRICED)).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        assert [(line.model, line.cost) for line in runner.cost_report("t")] == [
            ("local", None),
            ("opus", 0.25),
        ]
        assert (runner.run_info("t").cost, runner.run_info("t").cost_known) == (0.25, False)

    def test_a_cost_once_unknown_stays_so_whatever_known_ones_are_added(self, store: Checkpointer) -> None:
        runner = chain(CHANNELS, using(UNPRICED, DEAR), using(DEAR)).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        assert runner.run_info("t").cost_known is False
        assert [point.cost for point in runner.history("t")] == [0.25, None, 0]

    def test_of_all_threads_counts_what_a_fork_shares_once(self, store: Checkpointer) -> None:
        runner = chain(CHANNELS, using(CHEAP), using(DEAR)).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        runner.fork("t", 1, "f")
        runner.invoke(thread_id="f")
        assert {line.agent: line.calls for line in runner.cost_report()} == {"worker": 1, "advisor": 2}
        assert [line.calls for line in runner.cost_report("f")] == [1, 1]

    @pytest.mark.parametrize("usage", [3, "free", [("worker", 1)]], ids=repr)
    def test_invalid_usage_fails_the_node(self, usage: Any) -> None:
        with pytest.raises(NodeFailed, match=r"NodeResult: usage(\[0\])? is ") as caught:
            chain(CHANNELS, lambda state, config: NodeResult(usage=usage)).compile().invoke()
        assert "ModelUse(agent, provider" in caught.value.hint

    def test_is_empty_where_no_model_was_called(self, store: Checkpointer) -> None:
        runner = chain(CHANNELS, returning(None)).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        assert list(runner.cost_report("t")) == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda r: r.run_info("t"),
        lambda r: r.cost_report("t"),
        lambda r: r.history("t"),
        lambda r: r.get_state("t"),
    ],
    ids=["run_info", "cost_report", "history", "get_state"],
)
def test_a_runner_without_a_store_says_that_it_stores_nothing(ask: Any) -> None:
    runner = chain(CHANNELS, returning(None)).compile()
    runner.invoke(thread_id="t")
    with pytest.raises(UsageError, match="keeps nothing") as caught:
        ask(runner)
    assert "checkpointer" in caught.value.hint
