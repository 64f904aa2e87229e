"""Limits of a run, what a reached one does, and how a human extends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hitl_tui import Channel, Limits, NodeResult, UsageError
from hitl_tui.engine.commands import ExtendLimits, Start, execute
from hitl_tui.engine.log.events import Event, LimitNear, RunEnded, StepCommitted
from hitl_tui.engine.log.outcomes import ModelUse
from hitl_tui.engine.run.loop import RunLoop
from hitl_tui.engine.runner import GraphRunner, result_of
from hitl_tui.engine.thread.session import Session
from hitl_tui.stores import Checkpointer
from tests.engine.building import loop
from tests.support.spec import spec

pytestmark = spec("5")

CHANNELS = {"n": Channel(0, reducer="sum")}


def node(state: Any, config: Any) -> NodeResult:
    """Counts; spends 12 tokens and a quarter of a dollar."""
    return NodeResult({"n": 1}, usage=[ModelUse("a", "p", "m", 10, 2, 0.25)])


def until(n: int, limits: Limits | None = None, store: Any = None, **options: Any) -> GraphRunner:
    """A loop that reaches END once its node has run `n` times."""
    return loop(CHANNELS, node, lambda state: state["n"] < n, limits=limits, checkpointer=store, **options)


LIMITS = {
    "max_iterations": (Limits(max_iterations=3), 3, "3 iterations"),
    "max_tokens, reached exactly": (Limits(max_tokens=24), 2, "24 tokens"),
    "max_tokens, passed": (Limits(max_tokens=30), 3, "30 tokens"),
    "max_cost_usd": (Limits(max_cost_usd=0.5), 2, "$0.5"),
    "the first of several": (Limits(max_iterations=9, max_tokens=13, max_cost_usd=9), 2, "13 tokens"),
}


@pytest.mark.parametrize(("limits", "runs", "note"), LIMITS.values(), ids=LIMITS)
class TestReached:
    @spec("14")
    def test_stop_ends_the_run_as_failed_by_limit_and_returns_the_state(
        self, limits: Limits, runs: int, note: str, store: Checkpointer
    ) -> None:
        result = until(99, limits, store).invoke(thread_id="t")
        assert (result["n"], result.status, result.reason) == (runs, "failed", "limit")
        assert store.ledger("t")[-1].note == note

    @spec("14")
    def test_pause_waits_for_a_human(self, limits: Limits, runs: int, note: str, store: Checkpointer) -> None:
        result = until(99, limits, store).invoke(thread_id="t", on_limit="pause")
        assert (result["n"], result.status, result.reason) == (runs, "waiting", "limit")
        assert store.ledger("t")[-1].note == note

    def test_a_last_allowed_node_that_reaches_end_completes(
        self, limits: Limits, runs: int, note: str, store: Checkpointer
    ) -> None:
        result = until(runs, limits, store).invoke(thread_id="t")
        assert (result["n"], result.status, result.reason) == (runs, "completed", "end")

    @pytest.mark.parametrize("on_limit", ["stop", "pause"])
    def test_resuming_runs_nothing_at_the_limit(
        self, limits: Limits, runs: int, note: str, on_limit: Any, store: Checkpointer
    ) -> None:
        runner = until(99, limits, store)
        runner.invoke(thread_id="t", on_limit=on_limit)
        again = runner.invoke(thread_id="t", on_limit=on_limit)
        assert (again["n"], again.reason) == (runs, "limit")

    @pytest.mark.parametrize("on_limit", ["stop", "pause"])
    def test_a_person_can_raise_the_limit_and_the_thread_continues(
        self, limits: Limits, runs: int, note: str, on_limit: Any, store: Checkpointer
    ) -> None:
        runner = until(5, limits, store)
        runner.invoke(thread_id="t", on_limit=on_limit)
        runner.extend_limits(
            "t", max_iterations=99, max_tokens=None, max_cost_usd=99, actor="ann", note="worth it"
        )
        result = runner.invoke(thread_id="t")
        assert (result["n"], result.status) == (5, "completed")
        entry = next(entry for entry in store.ledger("t") if entry.kind == "extend")
        assert (entry.actor, entry.note) == ("ann", "worth it")
        assert entry.data["max_iterations"] == [limits.max_iterations, 99]


def test_the_default_is_25_iterations() -> None:
    result = until(99).invoke()
    assert (result["n"], result.status, result.reason) == (25, "failed", "limit")


def test_null_is_no_limit() -> None:
    assert until(60, Limits(max_iterations=None)).invoke()["n"] == 60


def test_invoke_may_set_the_iterations_itself(store: Checkpointer) -> None:
    result = until(99, Limits(max_iterations=50), store).invoke(thread_id="t", max_iterations=4)
    assert (result["n"], result.reason) == (4, "limit")


def test_what_invoke_sets_is_for_that_invocation_alone(store: Checkpointer) -> None:
    runner = until(30, Limits(max_iterations=9), store)
    limits: list[Any] = []
    result = runner.invoke(
        thread_id="t",
        max_iterations=2,
        on_event=lambda event: limits.append(getattr(event, "progress", None)),
    )
    assert (result["n"], result.status, result.reason) == (2, "failed", "limit")
    assert {progress.limits.max_iterations for progress in limits if progress} == {2}
    assert store.ledger("t")[-1].note == "2 iterations"
    assert runner.run_info("t").limits.max_iterations == 9
    assert runner.invoke(thread_id="t")["n"] == 9
    assert runner.invoke(thread_id="t", max_iterations=12)["n"] == 12
    assert runner.run_info("t").limits.max_iterations == 9


def test_a_new_invocation_counts_iterations_from_zero(store: Checkpointer) -> None:
    runner = until(2, Limits(max_iterations=2), store)
    assert runner.invoke(thread_id="t").status == "completed"
    again = runner.invoke({"n": -2}, thread_id="t")
    assert (again["n"], again.status) == (2, "completed")


def test_tokens_and_cost_add_up_over_resumes(store: Checkpointer) -> None:
    runner = until(99, Limits(max_tokens=36), store)
    runner.step(thread_id="t")
    runner.step(thread_id="t")
    assert runner.invoke(thread_id="t")["n"] == 3


@pytest.mark.parametrize("name", ["max_iteration", "tokens"])
def test_an_unknown_limit_is_refused_with_the_known_ones(name: str, store: Checkpointer) -> None:
    runner = until(1, None, store)
    runner.invoke(thread_id="t")
    with pytest.raises(UsageError, match=f"no limit '{name}'") as caught:
        runner.extend_limits("t", **{name: 3})
    assert "max_iterations, max_tokens, max_cost_usd, max_seconds" in caught.value.hint


NO_LIMITS = [("max_iterations", -1), ("max_iterations", 2.5), ("max_tokens", True), ("max_tokens", "10"),
             ("max_cost_usd", float("nan")), ("max_cost_usd", -0.1), ("max_seconds", float("inf")),
             ("max_seconds", "1 h")]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), NO_LIMITS, ids=str)
class TestWhatIsNoLimit:
    def test_is_refused_when_built(self, name: str, value: Any) -> None:
        with pytest.raises(UsageError, match=f"{name}=.* is not a limit"):
            Limits(**{name: value})

    def test_is_refused_as_an_extension_and_nothing_is_stored(
        self, name: str, value: Any, store: Checkpointer
    ) -> None:
        runner = until(9, store=store)
        runner.invoke(thread_id="t", max_iterations=2)
        before = (store.cursor("t"), store.ledger("t"))
        with pytest.raises(UsageError, match=name):
            runner.extend_limits("t", **{name: value})
        assert (store.cursor("t"), store.ledger("t")) == before


@pytest.mark.parametrize("value", [-1, True, "many"], ids=repr)
def test_iterations_of_an_invocation_that_are_no_limit_are_refused_before_it_begins(
    value: Any, store: Checkpointer
) -> None:
    with pytest.raises(UsageError, match=r"max_iterations=.* is not a limit"):
        until(1, store=store).invoke(thread_id="t", max_iterations=value)
    assert store.cursor("t") is None


def test_a_thread_that_a_limit_ended_is_paused_once_the_limit_is_raised(store: Checkpointer) -> None:
    runner = until(5, store=store)
    assert runner.invoke(thread_id="t", max_iterations=2).status == "failed"
    runner.extend_limits("t", max_iterations=99, actor="ann")
    info = runner.run_info("t")
    assert (info.status, info.reason) == ("waiting", "paused")


class Clock:
    """A clock that a node moves by ten seconds a run."""

    def __init__(self) -> None:
        self.now = 1_760_000_000_000_000

    def __call__(self) -> int:
        return self.now

    def node(self, state: Any, config: Any) -> dict[str, int]:
        self.now += 10_000_000
        return {"n": 1}


@pytest.fixture
def timed(store: Checkpointer) -> tuple[Clock, Callable[[int, float], Session]]:
    """A thread whose node takes ten seconds by its own clock."""
    clock = Clock()

    def make(n: int, seconds: float) -> Session:
        limits = Limits(max_seconds=seconds)
        runner = loop(CHANNELS, clock.node, lambda state: state["n"] < n, limits=limits, checkpointer=store)
        session = Session.new(runner.graph, store, "t", clock=clock)
        with session.writing():
            execute(session, Start())
        return session

    return clock, make


async def drain(run: RunLoop) -> None:
    async for _ in run.steps():
        pass


class TestSeconds:
    """Active time, across resumes."""

    async def test_is_checked_before_a_node(self, timed: Any) -> None:
        session = timed[1](99, 25)
        await drain(RunLoop(session))
        result = result_of(session)
        assert (result["n"], result.status, result.reason) == (3, "failed", "limit")
        assert session.cursor.active == 30_000_000

    async def test_a_last_allowed_node_that_reaches_end_completes(self, timed: Any) -> None:
        session = timed[1](3, 25)
        await drain(RunLoop(session))
        assert result_of(session).status == "completed"

    async def test_adds_up_over_resumes_and_leaves_out_the_time_between(self, timed: Any) -> None:
        clock, make = timed
        session = make(99, 25)
        for _ in range(2):
            await drain(RunLoop(session, once=True))
            clock.now += 3_600_000_000
        assert session.cursor.active == 20_000_000
        await drain(RunLoop(session, on_limit="pause"))
        result = result_of(session)
        assert (result["n"], result.status, result.reason) == (3, "waiting", "limit")

    async def test_can_be_extended(self, timed: Any) -> None:
        session = timed[1](4, 5)
        await drain(RunLoop(session))
        with session.writing():
            execute(session, ExtendLimits({"max_seconds": 100}))
        await drain(RunLoop(session))
        assert (result_of(session)["n"], result_of(session).status) == (4, "completed")


class TestAlerts:
    """Issue 4: told once at 50, 75, 90 and 100 per cent."""

    def alerts(self, events: list[Event]) -> list[tuple[str, int]]:
        return [(event.limit, event.percent) for event in events if isinstance(event, LimitNear)]

    @pytest.mark.parametrize(
        ("limits", "name"),
        [
            (Limits(max_iterations=20), "max_iterations"),
            (Limits(max_tokens=240, max_iterations=None), "max_tokens"),
            (Limits(max_cost_usd=5, max_iterations=None), "max_cost_usd"),
        ],
        ids=["iterations", "tokens", "cost"],
    )
    def test_each_percentage_is_reported_once(self, limits: Limits, name: str) -> None:
        events: list[Event] = []
        until(99, limits).invoke(on_event=events.append)
        assert self.alerts(events) == [(name, 50), (name, 75), (name, 90), (name, 100)]

    async def test_time_limits_are_reported_too(self, timed: Any) -> None:
        events: list[Event] = []
        session = timed[1](3, 32)
        session.sink = events.append
        await drain(RunLoop(session))
        assert [alert for alert in self.alerts(events) if alert[0] == "max_seconds"] == [
            ("max_seconds", 50),
            ("max_seconds", 90),
        ]

    def test_the_alert_comes_after_its_step_and_before_the_end(self) -> None:
        events: list[Event] = []
        until(99, Limits(max_iterations=2)).invoke(on_event=events.append)
        kinds = [type(event) for event in events if isinstance(event, (StepCommitted, LimitNear, RunEnded))]
        assert kinds == [StepCommitted, StepCommitted, LimitNear, StepCommitted, LimitNear, RunEnded]

    def test_only_the_highest_of_several_passed_percentages_is_reported(self) -> None:
        events: list[Event] = []
        until(1, Limits(max_tokens=13)).invoke(on_event=events.append)
        assert self.alerts(events) == [("max_tokens", 90)]

    def test_a_resumed_thread_repeats_no_alert_but_a_raised_limit_does(self, store: Checkpointer) -> None:
        runner = until(99, Limits(max_iterations=2), store)
        runner.invoke(thread_id="t")
        events: list[Event] = []
        runner.invoke(thread_id="t", on_event=events.append)
        assert self.alerts(events) == []
        runner.extend_limits("t", max_iterations=4, actor="ann")
        runner.invoke(thread_id="t", on_event=events.append)
        assert self.alerts(events) == [("max_iterations", 75), ("max_iterations", 100)]

    def test_without_a_limit_nothing_is_reported(self) -> None:
        events: list[Event] = []
        until(30, Limits(max_iterations=None)).invoke(on_event=events.append)
        assert self.alerts(events) == []
