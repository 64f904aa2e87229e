"""A failing node is tried again; only the successful attempt commits."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import Channel, NodeFailed, NodeResult, RetryPolicy
from hitl_tui.engine.log.events import NodeRetrying, NodeStarted, StepCommitted
from hitl_tui.engine.log.outcomes import ModelUse
from hitl_tui.engine.nodes.activity import current_activity
from hitl_tui.stores import Checkpointer
from tests.engine.building import chain
from tests.support.spec import spec

pytestmark = [spec("5"), spec("6")]

CHANNELS = {"log": Channel(reducer="append"), "n": Channel(0, reducer="sum", schema=int)}
USE = ModelUse("writer", "anthropic", "opus", 100, 10, 0.25)


def patient(attempts: int) -> RetryPolicy:
    return RetryPolicy(max_attempts=attempts, wait=0, jitter=0)


class Failing:
    """A node that fails until its last attempt, and pays for a model call each time."""

    def __init__(self, failures: int, error: Any = ValueError, pays: bool = False) -> None:
        self.failures = failures
        self.error = error
        self.pays = pays
        self.attempts: list[int] = []
        self.keys: set[str] = set()

    def __call__(self, state: Any, config: Any) -> dict[str, Any]:
        self.attempts.append(config.attempt)
        self.keys.add(config.idempotency_key)
        activity = current_activity.get()
        if self.pays and activity:
            activity.model_called(USE, 1)
        if len(self.attempts) <= self.failures:
            raise self.error(f"failure {len(self.attempts)}")
        return {"log": f"attempt {config.attempt}", "n": 1}


def test_only_the_successful_attempt_commits(store: Checkpointer) -> None:
    node = Failing(2)
    runner = chain(CHANNELS, node, retry=patient(3)).compile(checkpointer=store)
    result = runner.invoke(thread_id="t")
    assert dict(result) == {"log": ["attempt 3"], "n": 1}
    assert [(r.channel, r.attempt) for r in store.records("t", 0, 9)] == [("log", 3), ("n", 3)]
    checkpoint = store.checkpoint("t", 1)
    assert checkpoint is not None
    assert checkpoint.attempt == 3


def test_attempts_of_one_step_share_the_idempotency_key() -> None:
    node = Failing(2)
    chain(CHANNELS, node, retry=patient(3)).compile().invoke()
    assert node.attempts == [1, 2, 3]
    assert len(node.keys) == 1


def test_the_next_step_counts_its_attempts_from_1_again() -> None:
    second = Failing(0)
    chain(CHANNELS, Failing(2), second, retry=patient(3)).compile().invoke()
    assert second.attempts == [1]


def test_the_last_error_says_how_many_attempts_were_made(store: Checkpointer) -> None:
    node = Failing(9)
    runner = chain(CHANNELS, node, retry=patient(3)).compile(checkpointer=store)
    with pytest.raises(NodeFailed) as caught:
        runner.invoke(thread_id="t")
    assert caught.value.message == "node 'n1', attempt 3: ValueError: failure 3 (after 3 attempts)"
    assert node.attempts == [1, 2, 3]
    assert store.cursor("t").head == 0  # type: ignore[union-attr]
    assert list(store.records("t", 0, 9)) == []


def test_without_a_policy_a_node_has_one_attempt() -> None:
    node = Failing(1)
    with pytest.raises(NodeFailed) as caught:
        chain(CHANNELS, node).compile().invoke()
    assert node.attempts == [1]
    assert "after" not in caught.value.message


@pytest.mark.parametrize(
    "update",
    [{"n": "text"}, {"n": True}, {"log": object()}, {"n": 1.5}, 3, NodeResult(status="failed")],
    ids=["schema", "bool", "value", "whole value", "no mapping", "failed envelope"],
)
def test_a_bad_answer_is_retried_as_an_error_is(update: Any) -> None:
    answers = [update, {"n": 2}]
    result = chain(CHANNELS, lambda state, config: answers.pop(0), retry=patient(2)).compile().invoke()
    assert result["n"] == 2


@pytest.mark.parametrize(
    ("node", "match"),
    [
        (lambda state, config: state["n"], "not among the node's reads"),
        (lambda state, config: state["zap"], "no channel 'zap'"),
        (lambda state, config: {"n": 1}, "not among its writes"),
        (lambda state, config: {"zap": 1}, "which is not a channel"),
    ],
    ids=[
        "reading outside reads",
        "reading an undeclared channel",
        "writing outside writes",
        "writing an undeclared one",
    ],
)
def test_a_broken_contract_is_not_retried(node: Any, match: str) -> None:
    calls: list[int] = []

    def counted(state: Any, config: Any) -> Any:
        calls.append(config.attempt)
        return node(state, config)

    graph = chain(CHANNELS, counted, retry=patient(5), reads=["log"], writes=["log"])
    with pytest.raises(NodeFailed, match=match) as caught:
        graph.compile().invoke()
    assert calls == [1]
    assert "after" not in caught.value.message


class TestCost:
    """Failed attempts count towards cost."""

    def test_of_attempts_before_the_successful_one(self, store: Checkpointer) -> None:
        runner = chain(CHANNELS, Failing(2, pays=True), retry=patient(3)).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        info = runner.run_info("t")
        assert (info.tokens_in, info.tokens_out, info.cost) == (300, 30, 0.75)
        assert info.retry_count == 2
        line = runner.cost_report("t")[0]
        assert (line.agent, line.provider, line.model, line.calls) == ("writer", "anthropic", "opus", 3)
        assert (line.tokens_in, line.tokens_out, line.cost) == (300, 30, 0.75)

    def test_of_a_node_that_failed_permanently(self, store: Checkpointer) -> None:
        runner = chain(CHANNELS, Failing(9, pays=True), retry=patient(2)).compile(checkpointer=store)
        with pytest.raises(NodeFailed):
            runner.invoke(thread_id="t")
        info = runner.run_info("t")
        assert (info.tokens_in, info.tokens_out, info.cost) == (200, 20, 0.5)
        report = runner.cost_report("t")
        assert [(line.calls, line.cost) for line in report] == [(2, 0.5)]
        assert (report.steps, report.lost.calls, report.total.cost) == ((), 2, 0.5)


def test_each_retry_is_reported_with_its_attempt_and_wait() -> None:
    seen: list[Any] = []
    chain(CHANNELS, Failing(2), retry=patient(3)).compile().invoke(on_event=seen.append)
    events = [event for event in seen if isinstance(event, (NodeStarted, NodeRetrying, StepCommitted))][1:]
    assert [(type(event).__name__, getattr(event, "attempt", 0)) for event in events] == [
        ("NodeStarted", 1),
        ("NodeRetrying", 1),
        ("NodeStarted", 2),
        ("NodeRetrying", 2),
        ("NodeStarted", 3),
        ("StepCommitted", 0),
    ]
    retrying = [event for event in events if isinstance(event, NodeRetrying)]
    assert [(event.max_attempts, event.wait) for event in retrying] == [(3, 0), (3, 0)]
    assert "failure 1" in retrying[0].error


@pytest.mark.parametrize(
    ("policy", "waits"),
    [
        (RetryPolicy(wait=1, backoff=2, jitter=0), [1, 2, 4]),
        (RetryPolicy(wait=0.5, backoff=1, jitter=0), [0.5, 0.5, 0.5]),
        (RetryPolicy(wait=0, backoff=3, jitter=1), [0, 0, 0]),
    ],
    ids=["backoff", "no backoff", "no wait"],
)
def test_the_wait_grows_by_the_backoff(policy: RetryPolicy, waits: list[float]) -> None:
    assert [policy.wait_after(attempt) for attempt in (1, 2, 3)] == waits


def test_jitter_is_a_share_of_the_wait() -> None:
    policy = RetryPolicy(wait=10, backoff=1, jitter=0.2)
    waits = {policy.wait_after(1) for _ in range(50)}
    assert all(8 <= wait <= 12 for wait in waits)
    assert len(waits) > 1


def test_a_resumed_thread_may_make_as_many_attempts_again(store: Checkpointer) -> None:
    node = Failing(3)
    runner = chain(CHANNELS, node, retry=patient(2)).compile(checkpointer=store)
    with pytest.raises(NodeFailed, match="after 2 attempts"):
        runner.invoke(thread_id="t")
    assert runner.invoke(thread_id="t")["n"] == 1
    assert node.attempts == [1, 2, 3, 4]
