"""Statuses and their reasons: which way leads where, and what resuming does from each."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import Gate, GateChoice, HitlError, NodeFailed, UsageError, max_turns
from hitl_tui.engine.commands import Start
from hitl_tui.engine.log.events import AttemptFailed, ProgressChanged, RunEnded, RunStarted
from hitl_tui.engine.log.records import Limits
from hitl_tui.stores import Checkpointer
from tests.support.flows import Desk, check_log, line, review_loop, say
from tests.support.spec import spec

pytestmark = spec("9")


def standing(runner: Any, thread: str = "t") -> tuple[str, str]:
    cursor = runner.open(thread).cursor
    return cursor.status, cursor.reason


def test_pending_then_running_then_completed_end(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"))
    desk = Desk(runner, "t")
    assert desk.session.progress.status == "pending"
    desk.do(Start({"log": "go"}))
    assert standing(runner) == ("pending", "")
    desk.run()
    assert standing(runner) == ("completed", "end")
    statuses = [event.progress.status for event in desk.events_of(ProgressChanged)]
    assert statuses == ["running"]
    check_log(runner, "t")


def test_completed_termination_differs_from_completed_end(store: Checkpointer) -> None:
    runner = review_loop(store, termination=max_turns(3))
    result = runner.invoke({"log": "go"}, thread_id="t")
    assert (result.status, result.reason, result["n"]) == ("completed", "termination", 2)


def test_waiting_interrupt_and_waiting_approval(store: Checkpointer) -> None:
    plain = line(store, say("one"), say("two"), interrupt_after=["a"])
    result = plain.invoke({}, thread_id="plain")
    assert (result.status, result.reason) == ("waiting", "interrupt")
    gate = Gate("a", title="good?", choices=[GateChoice("yes", "yes")])
    asked = line(store, say("one"), say("two"), interrupt_after=[gate]).invoke({}, thread_id="asked")
    assert (asked.status, asked.reason) == ("waiting", "approval")
    assert [request.title for request in asked.pending] == ["good?"]


def test_waiting_paused_after_one_step(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"))
    result = runner.step({}, thread_id="t")
    assert (result.status, result.reason, result.step) == ("waiting", "paused", 1)
    assert runner.invoke(thread_id="t").status == "completed"


@pytest.mark.parametrize(("on_limit", "status"), [("stop", "failed"), ("pause", "waiting")])
def test_a_limit_stops_or_waits(store: Checkpointer, on_limit: Any, status: str) -> None:
    runner = review_loop(store, limits=Limits(max_iterations=3))
    result = runner.invoke({}, thread_id="t", on_limit=on_limit)
    assert (result.status, result.reason, result["n"]) == (status, "limit", 2)
    again = runner.invoke(thread_id="t", on_limit=on_limit)
    assert (again.status, again.step) == (status, result.step)
    runner.extend_limits("t", max_iterations=4, actor="ann", note="one more")
    assert standing(runner) == ("waiting", "paused")
    more = runner.invoke(thread_id="t", on_limit=on_limit)
    assert (more.status, more.reason, more.step) == (status, "limit", result.step + 1)
    entry = next(entry for entry in store.ledger("t") if entry.kind == "extend")
    assert (entry.actor, entry.note, entry.data) == ("ann", "one more", {"max_iterations": [3, 4]})
    check_log(runner, "t")


def test_the_last_allowed_node_that_reaches_end_completes(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"), limits=Limits(max_iterations=2))
    assert runner.invoke({}, thread_id="t").status == "completed"


def test_failed_node_error_resumes_at_the_node_that_failed(store: Checkpointer) -> None:
    ran: list[str] = []
    broken = [True]

    def second(state: Any) -> dict[str, Any]:
        ran.append("b")
        if broken[0]:
            raise ValueError("no luck")
        return {"log": "two"}

    def first(state: Any) -> dict[str, Any]:
        ran.append("a")
        return {"log": "one"}

    runner = line(store, first, second)
    desk = Desk(runner, "t")
    desk.do(Start({}))
    desk.run()
    assert standing(runner) == ("failed", "node_error")
    assert desk.session.cursor.error is not None
    assert "'b', attempt 1" in desk.session.cursor.error.message
    assert "no luck" in desk.session.cursor.error.message
    assert (
        len(desk.events_of(AttemptFailed))
        == len(desk.events_of(RunStarted))
        == len(desk.events_of(RunEnded))
        == 1
    )
    broken[0] = False
    result = runner.invoke(thread_id="t")
    assert (result.status, ran, list(result["log"])) == ("completed", ["a", "b", "b"], ["one", "two"])
    assert runner.history("t")[0].attempt == 2
    check_log(runner, "t")


def test_invoke_raises_the_failure_and_keeps_the_thread(store: Checkpointer) -> None:
    def broken(state: Any) -> None:
        raise ValueError("no luck")

    runner = line(store, say("one"), broken)
    with pytest.raises(NodeFailed, match=r"node 'b', attempt 1: ValueError: no luck"):
        runner.invoke({}, thread_id="t")
    assert list(runner.get_state("t")["log"]) == ["one"]


def test_failed_dead_end(store: Checkpointer) -> None:
    from hitl_tui import START, StateGraph
    from tests.support.flows import channels

    runner = (
        StateGraph(channels())
        .add_node("only", say("one"))
        .add_edge(START, "only")
        .compile(checkpointer=store, termination=max_turns(5))
    )
    result = runner.invoke({}, thread_id="t")
    assert (result.status, result.reason, list(result["log"])) == ("failed", "dead_end", ["one"])


def test_a_route_with_an_unknown_key_fails_with_the_step_committed(store: Checkpointer) -> None:
    from hitl_tui import END, START, StateGraph
    from tests.support.flows import channels

    runner = (
        StateGraph(channels())
        .add_node("only", say("one"))
        .add_edge(START, "only")
        .add_conditional_edge("only", lambda state: state["draft"], {"x": END})
        .compile(checkpointer=store)
    )
    with pytest.raises(HitlError, match="returned ''") as caught:
        runner.invoke({}, thread_id="t")
    assert "'x'" in caught.value.hint
    assert list(runner.get_state("t")["log"]) == ["one"]
    runner.update_state("t", {"draft": "x"})
    result = runner.invoke(thread_id="t")
    assert (result.status, list(result["log"])) == ("completed", ["one"])


@pytest.mark.parametrize("when", ["pending", "waiting", "failed"])
def test_cancelled_user_from_anywhere(store: Checkpointer, when: str) -> None:
    def second(state: Any) -> dict[str, Any]:
        if when == "failed":
            raise ValueError("no luck")
        return {}

    runner = line(store, say("one"), second, interrupt_after=["a"])
    desk = Desk(runner, "t")
    desk.do(Start({}))
    for _ in range({"pending": 0, "waiting": 1, "failed": 2}[when]):
        desk.run()
    runner.cancel("t", actor="ann", note="enough")
    assert standing(runner) == ("cancelled", "user")
    before = runner.open("t").cursor
    result = runner.invoke(thread_id="t")
    assert (result.status, result.pending) == ("cancelled", ())
    assert runner.open("t").cursor == before
    with pytest.raises(UsageError, match="cancelled already"):
        runner.cancel("t")
    check_log(runner, "t")


def test_a_cancelled_thread_continues_only_by_input_as_node_or_fork(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"), interrupt_after=["a"])
    for name in ("input", "edit", "fork"):
        runner.invoke({}, thread_id=name)
        runner.cancel(name)
    again = runner.invoke({"log": "again"}, thread_id="input")
    assert (again.status, runner.run_info("input").invocation) == ("waiting", 2)
    runner.update_state("edit", {}, as_node="a")
    assert list(runner.invoke(thread_id="edit")["log"]) == ["one", "two"]
    runner.fork("fork", 1, "fork-b")
    assert runner.invoke(thread_id="fork-b").status == "completed"
    assert standing(runner, "fork") == ("cancelled", "user")


def test_every_stream_ends_with_one_terminal_event(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"), say("three"))
    for taken in range(5):
        events: list[Any] = []
        for place, _ in enumerate(runner.stream({}, thread_id=f"t{taken}", on_event=events.append)):
            if place == taken:
                break
        assert [type(event) for event in events].count(RunEnded) == 1
        assert isinstance(events[-1], RunEnded)
        left_early = taken < 2
        assert standing(runner, f"t{taken}") == (
            ("waiting", "paused") if left_early else ("completed", "end")
        )


def test_a_result_distinguishes_done_waiting_limit_and_failure(store: Checkpointer) -> None:
    def broken(state: Any) -> None:
        raise ValueError

    found = {
        line(store, say("x")).invoke({}).status + "/done",
        line(store, say("x"), say("y"), interrupt_after=["a"]).invoke({}).status + "/human",
        review_loop(store, limits=Limits(max_iterations=1)).invoke({}).reason + "/limit",
    }
    assert found == {"completed/done", "waiting/human", "limit/limit"}
    with pytest.raises(NodeFailed):
        line(store, broken).invoke({})
