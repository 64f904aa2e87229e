"""Forks: another way on from any step, with the parent untouched."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitl_tui import (
    END,
    START,
    AnswerRefused,
    Channel,
    Gate,
    GateChoice,
    GraphRunner,
    MemoryCheckpointer,
    SchemaMismatch,
    StateGraph,
    UsageError,
    append,
    max_turns,
    text_match,
)
from hitl_tui.engine.thread.hashes import chained
from hitl_tui.errors import UnknownThread
from hitl_tui.stores import Checkpointer
from tests.support.flows import (
    check_log,
    head_hash,
    ledger_of,
    line,
    pending_id,
    review_loop,
    say,
)
from tests.support.spec import spec

pytestmark = spec("11")

GATE = Gate(
    "check",
    title="verdict",
    choices=[GateChoice("accept", "ok"), GateChoice("approve", "ok", values={"verdict": "approved"})],
)


def everything(store: Checkpointer, thread: str) -> Any:
    """All that a store holds of a thread."""
    cursor = store.cursor(thread)
    assert cursor is not None
    return (
        store.info(thread),
        cursor,
        store.checkpoints(thread, None, 1000),
        list(store.records(thread, 0, cursor.head)),
        store.ledger(thread),
    )


def three_rounds(store: Checkpointer) -> GraphRunner:
    """A finished thread "t" of seven steps: input, then write and check three times."""

    def check(state: Any, config: Any) -> dict[str, Any]:
        return {"log": f"check {state['draft']}", "verdict": "approved" if state["n"] >= 3 else "revise"}

    runner = review_loop(store, {"check": check})
    assert runner.invoke({"log": "go"}, thread_id="t").step == 6
    return runner


@pytest.mark.parametrize("step", range(7))
def test_a_fork_at_any_step_reaches_the_parent_s_final_state(store: Checkpointer, step: int) -> None:
    runner = three_rounds(store)
    before = everything(store, "t")
    state = runner.get_state("t", step)
    assert runner.fork("t", step, "f") == "f"
    assert runner.get_state("f") == state
    check_log(runner, "f")
    result = runner.invoke(thread_id="f")
    assert (result.status, result.reason) == ("completed", "end")
    assert head_hash(runner, "f") == head_hash(runner, "t")
    assert everything(store, "t") == before
    check_log(runner, "f")


def test_it_shares_the_parent_s_log_without_copying(store: Checkpointer) -> None:
    runner = three_rounds(store)
    runner.fork("t", 4, "f", actor="ann")
    shared = list(store.records("f", 0, 4))
    assert shared == list(store.records("t", 0, 4))
    assert {record.thread_id for record in shared} == {"t"}
    assert [point.thread_id for point in store.checkpoints("f", None, 100)] == ["t"] * 5
    runner.invoke(thread_id="f")
    own = [record for record in store.records("f", 0, 99) if record.thread_id == "f"]
    assert own[0].seq == shared[-1].seq + 1
    fork = store.info("f")
    assert fork is not None
    assert own[0].prev_record_hash == chained(shared[-1].record_hash, fork.facts_hash)
    point = store.checkpoint("f", 5)
    assert point is not None
    assert (point.parent_thread, point.parent_step) == ("t", 4)


def test_lineage(store: Checkpointer) -> None:
    runner = three_rounds(store)
    runner.fork("t", 2, "f", actor="ann", note="another way")
    info = store.info("f")
    assert info is not None
    assert (info.parent, info.fork_step, info.created_by, info.graph_name) == ("t", 2, "ann", "review")
    assert [child.thread_id for child in store.children("t")] == ["f"]
    entry = ledger_of(store, "f", "fork")[0]
    assert (entry.actor, entry.note, entry.data) == ("ann", "another way", {"parent": "t", "step": 2})


def test_a_fork_of_a_fork_of_a_shared_step_and_of_an_own_one(store: Checkpointer) -> None:
    runner = three_rounds(store)
    runner.fork("t", 4, "f")
    runner.update_state("f", {"draft": "f's own"})
    runner.fork("f", 5, "own")
    runner.fork("f", 2, "shared")
    assert runner.get_state("own")["draft"] == "f's own"
    assert runner.get_state("shared") == runner.get_state("t", 2)
    for name in ("own", "shared"):
        assert runner.invoke(thread_id=name).status == "completed"
        check_log(runner, name)
    assert head_hash(runner, "shared") == head_hash(runner, "t")


def test_parent_and_fork_continue_independently(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"), say("three"), interrupt_after=["a"])
    runner.invoke({}, thread_id="t")
    runner.fork("t", 1, "f")
    runner.update_state("t", {"draft": "parent's"})
    runner.update_state("f", {"draft": "fork's"})
    runner.invoke(thread_id="t")
    assert (runner.get_state("t")["draft"], runner.get_state("f")["draft"]) == ("parent's", "fork's")
    assert runner.history("f")[0].step == 2
    check_log(runner, "t")
    check_log(runner, "f")


def test_changes_of_a_fork_are_a_step_and_can_change_the_route(store: Checkpointer) -> None:
    runner = three_rounds(store)
    runner.fork("t", 2, "f", changes={"verdict": "approved"}, actor="ann", note="good enough")
    point = runner.history("f")[0]
    assert (point.step, point.source, point.actor, point.note) == (3, "fork", "ann", "good enough")
    records = list(store.records("f", 3, 3))
    assert [(one.channel, one.op, one.source) for one in records] == [("verdict", "set", "fork")]
    result = runner.invoke(thread_id="f")
    assert (result.status, result["n"]) == ("completed", 1)
    check_log(runner, "f")


def test_changes_at_the_end_reopen_a_conditional_end(store: Checkpointer) -> None:
    runner = three_rounds(store)
    runner.fork("t", 6, "f", changes={"verdict": "revise"})
    assert runner.open("f").progress.next_node == "write"
    assert runner.step(thread_id="f")["n"] == 4


@pytest.mark.parametrize(
    ("changes", "error"), [({"verdict": "maybe"}, SchemaMismatch), ({"draf": "x"}, Exception)]
)
def test_changes_that_do_not_fit_make_no_fork(store: Checkpointer, changes: Any, error: Any) -> None:
    runner = three_rounds(store)
    with pytest.raises(error):
        runner.fork("t", 2, "f", changes=changes)
    assert store.info("f") is None


def test_no_such_step_thread_or_a_taken_name(store: Checkpointer) -> None:
    runner = three_rounds(store)
    for step in (-1, 7, 99):
        with pytest.raises(UnknownThread):
            runner.fork("t", step, "f")
    with pytest.raises(UnknownThread):
        runner.fork("none", 0, "f")
    with pytest.raises(UsageError):
        runner.fork("t", 2, "t")
    assert store.info("f") is None


def test_a_pending_request_is_asked_again_under_a_new_id(store: Checkpointer) -> None:
    runner = review_loop(store, interrupt_after=[GATE])
    runner.invoke({}, thread_id="t")
    wanted = pending_id(runner, "t")
    runner.fork("t", 2, "f")
    again = runner.open("f").cursor
    assert (again.status, again.reason, again.pending[0].title) == ("waiting", "approval", "verdict")
    assert again.pending[0].id != wanted
    with pytest.raises(AnswerRefused):
        runner.answer("f", wanted, "approve", step=2)
    runner.answer("f", again.pending[0].id, "approve", step=2)
    assert runner.invoke(thread_id="f").status == "completed"
    assert (pending_id(runner, "t"), runner.get_state("t")["verdict"]) == (wanted, "revise")


def test_forking_where_a_decision_was_made_asks_again(store: Checkpointer) -> None:
    runner = review_loop(store, interrupt_after=[GATE])
    runner.invoke({}, thread_id="t")
    runner.answer("t", pending_id(runner, "t"), "approve", step=2)
    runner.invoke(thread_id="t")
    runner.fork("t", 2, "before")
    runner.fork("t", 3, "after")
    assert [one.title for one in runner.open("before").cursor.pending] == ["verdict"]
    assert runner.open("after").cursor.pending == ()
    runner.answer("before", pending_id(runner, "before"), "accept", step=2)
    assert runner.invoke(thread_id="before")["n"] == 2
    assert runner.invoke(thread_id="after").status == "completed"
    for name in ("before", "after"):
        check_log(runner, name)


@pytest.mark.parametrize("when", ["interrupt_before", "inside"])
def test_questions_before_and_inside_nodes_come_up_again_in_the_fork(store: Checkpointer, when: str) -> None:
    def node(state: Any, config: Any) -> dict[str, Any]:
        return {"log": config.interrupt("x?") if when == "inside" else "two"}

    gate = Gate("b", title="go?", choices=[GateChoice("yes", "yes")])
    runner = line(store, say("one"), node, interrupt_before=[gate] if when != "inside" else [])
    runner.invoke({}, thread_id="t")
    wanted = pending_id(runner, "t")
    runner.fork("t", 1, "f")
    result = runner.invoke(thread_id="f")
    assert result.status == "waiting"
    assert result.pending[0].id != wanted
    runner.answer("f", result.pending[0].id, "yes", step=1)
    assert runner.invoke(thread_id="f").status == "completed"
    assert pending_id(runner, "t") == wanted
    check_log(runner, "f")


def test_a_fork_of_a_running_thread_leaves_it_alone(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"))
    for _ in runner.stream({}, thread_id="t"):
        if store.info("f") is None:
            runner.fork("t", 1, "f")
    assert runner.open("t").cursor.status == "completed"
    assert list(runner.invoke(thread_id="f")["log"]) == ["one", "two"]


def test_totals_and_visits_are_those_up_to_the_step(store: Checkpointer) -> None:
    runner = three_rounds(store)
    runner.fork("t", 3, "f")
    cursor = runner.open("f").cursor
    assert (cursor.visits, cursor.iteration) == ({"write": 2, "check": 1}, 3)


def test_agents_of_a_fork_have_histories_of_their_own(store: Checkpointer) -> None:
    from hitl_tui import Agent, ScriptedModel

    agent = Agent("a", ScriptedModel(lambda messages: str(len(messages)), pace=0))

    def talk(state: Any, config: Any) -> dict[str, Any]:
        return {"log": config.agents["a"].chat("hello")}

    runner = line(store, talk, talk, talk, agents={"a": agent})
    runner.step({}, thread_id="t")
    runner.step(thread_id="t")
    runner.fork("t", 2, "f")
    assert list(runner.invoke(thread_id="f")["log"]) == ["1", "3", "1"]
    assert list(runner.invoke(thread_id="t")["log"]) == ["1", "3", "5"]


def what_for(store: Checkpointer) -> GraphRunner:
    """Writes down what it was asked to do, and goes on to a second node for one goal alone."""
    return (
        StateGraph({"done": Channel([], reducer="append")})
        .add_node("work", lambda state: {"done": [state["goal"], state["constraints"]]})
        .add_node("more", lambda state: {"done": "more"})
        .add_edge(START, "work")
        .add_conditional_edge("work", lambda s: s["goal"] == "win", {True: "more", False: END})
        .add_edge("more", END)
        .compile(checkpointer=store)
    )


@pytest.mark.parametrize(
    ("step", "goal", "constraints"),
    [(0, None, None), (2, "win", ["short"]), (3, "win", ["short"]), (5, "rest", ["short"])],
    ids=["before there was a goal", "at the first goal", "behind its first node", "at the second goal"],
)
def test_a_fork_has_the_goal_and_constraints_of_its_step(
    store: Checkpointer, step: int, goal: str | None, constraints: list[str] | None
) -> None:
    runner = what_for(store)
    runner.invoke({}, thread_id="t")
    runner.invoke({"goal": "win", "constraints": ["short"]}, thread_id="t")
    runner.invoke({"goal": "rest"}, thread_id="t")
    runner.fork("t", step, "f")
    info = runner.run_info("f")
    assert (info.goal, info.constraints) == (goal, constraints)
    runner.invoke(thread_id="f", resume="entry")
    assert [goal, constraints] in runner.get_state("f")["done"]
    assert runner.run_info("t").goal == "rest"
    for thread in ("t", "f"):
        assert runner.replay(thread).mismatches == ()
        assert runner.verify(thread, strict=True).mismatches == ()


def test_goal_and_constraints_are_in_the_ledger_with_the_step_they_came_with(store: Checkpointer) -> None:
    runner = what_for(store)
    runner.invoke({"goal": "rest"}, thread_id="t")
    runner.invoke({"constraints": ["short"]}, thread_id="t")
    entries = [(entry.step, entry.data) for entry in store.ledger("t") if entry.kind == "input"]
    assert entries == [(0, {"goal": "rest"}), (2, {"constraints": ["short"]})]


@given(
    updates=st.lists(st.tuples(st.integers(-3, 3), st.text("ab", max_size=2)), min_size=1, max_size=5),
    data=st.data(),
)
@pytest.mark.slow
def test_a_fork_without_changes_reaches_the_parent_s_state_hash_whatever_the_nodes_write(
    updates: list[tuple[int, str]], data: st.DataObject
) -> None:
    channels = {
        "sum": Channel(0, reducer="sum"),
        "texts": Channel([], reducer="set_union"),
        "newest": Channel([], reducer="last_n(2)"),
        "last": Channel(None),
    }
    graph = StateGraph(channels)
    names = [f"n{place}" for place in range(len(updates))]
    for name, (number, text) in zip(names, updates, strict=True):
        update = {"sum": number, "texts": [text], "newest": text, "last": number}
        graph.add_node(name, lambda state, config, update=update: update)
    for source, target in pairwise([START, *names, END]):
        graph.add_edge(source, target)
    runner = graph.compile(checkpointer=MemoryCheckpointer())
    runner.invoke(thread_id="t")
    runner.fork("t", data.draw(st.integers(0, len(updates)), "step"), "f")
    runner.invoke(thread_id="f")
    assert head_hash(runner, "f") == head_hash(runner, "t")


def test_raised_limits_apply_to_a_fork(store: Checkpointer) -> None:
    runner = three_rounds(store)
    runner.extend_limits("t", max_iterations=99, max_tokens=7)
    runner.fork("t", 2, "f")
    limits = runner.run_info("f").limits
    assert (limits.max_iterations, limits.max_tokens) == (99, 7)


def test_an_input_for_a_fork_of_a_run_that_a_condition_ended_begins_a_new_invocation(
    store: Checkpointer,
) -> None:
    graph = StateGraph({"log": Channel([], reducer=append())}, name="chat")
    graph.add_node("reply", lambda state: {"log": "done" if len(state["log"]) == 1 else "more"})
    graph.add_edge(START, "reply").add_edge("reply", "reply")
    runner = graph.compile(checkpointer=store, termination=text_match("done", "log") | max_turns(2))
    assert runner.invoke({"log": "first"}, thread_id="t").reason == "termination"
    runner.fork("t", 1, "f", actor="ann")
    assert runner.invoke({"log": "second"}, thread_id="f")["log"] == [
        "first",
        "done",
        "second",
        "more",
        "more",
    ]
    runner.fork("t", 1, "again", actor="ann")
    assert runner.invoke(thread_id="again")["log"] == ["first", "done"]
