"""A rollback goes down into the threads of subgraphs, each at the place of its step."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, NodeFailed, NodeResult, StateGraph
from hitl_tui.engine.commands import Rollback
from hitl_tui.engine.log.events import ChildMoved
from hitl_tui.engine.log.outcomes import ModelUse
from hitl_tui.engine.run.rollback import RollbackLoop
from hitl_tui.stores import Checkpointer
from tests.engine.run.booking import World, book
from tests.engine.run.nested_trip import DESK, TEAM, nested, part
from tests.support.flows import check_log, ledger_of
from tests.support.spec import spec

pytestmark = [spec("7"), spec("13")]

ORDER = ["car", "taxi", "spa", "hotel", "flight"]
THREADS = ("t", TEAM, DESK)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def booked(store: Checkpointer, world: World) -> GraphRunner:
    runner = nested(store, world)
    assert runner.invoke({"note": "x"}, thread_id="t").status == "completed"
    return runner


def places(world: World) -> list[str]:
    return [place for place, _ in world.calls]


def standing(runner: GraphRunner, thread: str) -> tuple[str, str]:
    cursor = runner.open(thread).cursor
    return cursor.status, cursor.reason


def test_the_entries_of_the_threads_below_are_shown_at_the_place_of_their_step(booked: GraphRunner) -> None:
    assert [(one.thread, one.node, one.step, one.state) for one in booked.run_info("t").rollback] == [
        ("", "car", 3, "open"),
        (TEAM, "taxi", 3, "open"),
        (DESK, "spa", 1, "open"),
        (TEAM, "hotel", 1, "open"),
        ("", "flight", 1, "open"),
    ]


def test_handlers_run_last_in_first_out_over_the_whole_tree(booked: GraphRunner, world: World) -> None:
    report = booked.rollback("t", actor="ann", note="no trip")
    assert places(world) == ORDER
    assert report.ok
    assert {entry.state for entry in report.entries} == {"done"}
    assert [standing(booked, thread) for thread in THREADS] == [("cancelled", "rolled_back")] * 3


def test_a_handler_below_is_a_step_of_the_thread_below(booked: GraphRunner, store: Checkpointer) -> None:
    booked.rollback("t", actor="ann", note="no trip")
    assert [(one.node, one.source, one.actor, one.note) for one in booked.history(TEAM)[:2]] == [
        ("<rollback>/hotel", "rollback", "ann", "no trip"),
        ("<rollback>/taxi", "rollback", "ann", "no trip"),
    ]
    assert [one.node for one in booked.history("t")[:2]] == ["<rollback>/flight", "<rollback>/car"]
    assert booked.get_state(TEAM)["booked"] == {"hotel": None, "taxi": None}
    assert booked.get_state("t")["booked"] == {"flight": None, "car": None}
    assert [entry.data["node"] for entry in ledger_of(store, DESK, "undone")] == ["spa"]


def test_all_logs_verify_and_replay_afterwards(booked: GraphRunner) -> None:
    booked.rollback("t")
    for thread in THREADS:
        check_log(booked, thread)
        assert booked.verify(thread, strict=True).mismatches == ()
        assert booked.replay(thread).ok


def test_a_failing_handler_below_is_recorded_and_the_rest_still_run(
    booked: GraphRunner, world: World
) -> None:
    world.broken = {"spa"}
    report = booked.rollback("t")
    assert places(world) == ORDER
    assert not report.ok
    assert [standing(booked, thread)[0] for thread in THREADS] == ["failed"] * 3
    error = booked.open("t").cursor.error
    assert error is not None
    assert "<rollback>/spa of t/team#1/desk#1" in error.message
    assert "spa is down" in error.message


def test_what_remains_below_is_rolled_back_later(booked: GraphRunner, world: World) -> None:
    world.broken = {"spa"}
    booked.rollback("t")
    world.broken.clear()
    assert booked.rollback("t").ok
    assert places(world) == [*ORDER, "spa"]
    assert [standing(booked, thread) for thread in THREADS] == [("cancelled", "rolled_back")] * 3


def test_a_thread_below_that_was_rolled_back_by_itself_is_not_undone_again(
    booked: GraphRunner, world: World
) -> None:
    booked.rollback(TEAM)
    booked.rollback("t")
    assert places(world) == ["taxi", "spa", "hotel", "car", "flight"]


def test_a_second_rollback_changes_nothing(booked: GraphRunner, world: World) -> None:
    booked.rollback("t")
    versions = [booked.open(thread).cursor.version for thread in THREADS]
    booked.rollback("t")
    assert [booked.open(thread).cursor.version for thread in THREADS] == versions
    assert places(world) == ORDER


def test_a_fork_shows_what_threads_of_its_parent_did_and_cannot_undo_it(
    booked: GraphRunner, world: World
) -> None:
    booked.fork("t", 2, "f")
    shown = {one.node: one.state for one in booked.run_info("f").rollback}
    assert shown == dict.fromkeys(["taxi", "spa", "hotel", "flight"], "inherited")
    booked.invoke(thread_id="f")
    assert booked.rollback("f").status == "cancelled"
    assert places(world) == ["car"]
    assert standing(booked, TEAM) == ("completed", "end")


def test_a_visit_that_still_waits_is_undone_first_and_its_question_withdrawn(
    store: Checkpointer, world: World
) -> None:
    team = part(world, "team", ["hotel", "taxi"]).compile(checkpointer=store, interrupt_before=["taxi"])
    runner = _around(world, team, store)
    assert runner.invoke(thread_id="t").status == "waiting"
    runner.rollback("t")
    assert places(world) == ["hotel", "flight"]
    assert runner.open(TEAM).cursor.pending == ()
    assert standing(runner, TEAM) == standing(runner, "t") == ("cancelled", "rolled_back")


def test_a_visit_that_failed_is_undone_too(store: Checkpointer, world: World) -> None:
    def full(state: Any, config: Any) -> None:
        raise RuntimeError("no taxi left")

    team = part(world, "team", ["hotel"])
    team.add_node("taxi", full)
    team._edges[-1] = ("hotel", "taxi")
    runner = _around(world, team.add_edge("taxi", END), store)
    with pytest.raises(NodeFailed, match="no taxi left"):
        runner.invoke(thread_id="t")
    runner.rollback("t")
    assert places(world) == ["hotel", "flight"]


def test_a_cancelled_subgraph_thread_is_undone_from_its_start(store: Checkpointer, world: World) -> None:
    team = part(world, "team", ["hotel", "taxi"]).compile(checkpointer=store, interrupt_before=["taxi"])
    runner = _around(world, team, store)
    runner.invoke(thread_id="t")
    runner.update_state("t", {"note": "without a team"}, as_node="team")
    assert standing(runner, TEAM) == ("cancelled", "user")
    runner.invoke(thread_id="t")
    assert runner.rollback("t").ok
    assert places(world) == ["car", "hotel", "flight"]


def test_a_subgraph_thread_held_elsewhere_is_reported_and_the_rest_still_run(
    booked: GraphRunner, world: World
) -> None:
    with booked.open(TEAM).writing():
        report = booked.rollback("t")
    assert places(world) == ["car", "flight"]
    assert report.status == "failed"
    assert booked.rollback("t").ok
    assert places(world) == ["car", "flight", "taxi", "spa", "hotel"]


def test_a_subgraph_that_the_graph_lost_is_named(
    booked: GraphRunner, store: Checkpointer, world: World
) -> None:
    report = part(world, "trip", ["flight", "car"]).compile(checkpointer=store).rollback("t")
    error = booked.open("t").cursor.error
    assert not report.ok
    assert error is not None
    assert "no subgraph 'team'" in error.message


def test_a_pause_stops_between_two_handlers_below(booked: GraphRunner, world: World) -> None:
    session = booked.open("t")
    rollback = RollbackLoop(session, Rollback())

    def pause(event: Any) -> None:
        if isinstance(event, ChildMoved) and event.running == "<rollback>/spa":
            rollback.pause()

    session.sink = pause

    async def run() -> None:
        async for _ in rollback.steps():
            pass

    asyncio.run(run())
    assert places(world) == ["car", "taxi", "spa"]
    assert standing(booked, "t") == standing(booked, TEAM) == ("waiting", "paused")
    assert booked.rollback("t").ok
    assert places(world) == ORDER


def test_usage_of_a_nested_handler_counts_for_all_parents(store: Checkpointer, world: World) -> None:
    use = ModelUse("a", "p", "m", 10, 5, 0.5)
    team = StateGraph({"note": Channel("")}, name="team")
    team.add_node("hotel", lambda s, c: NodeResult(compensation=("undo", 1)))
    team.add_compensation("undo", lambda s, c, a: NodeResult(usage=(use,)))
    team.add_edge(START, "hotel").add_edge("hotel", END)
    runner = _around(world, team, store)
    runner.invoke(thread_id="t")
    runner.rollback("t")
    info = runner.run_info("t")
    assert (info.tokens_in, info.tokens_out, info.cost) == (10, 5, 0.5)


def test_the_entries_of_branches_are_named_by_their_branch(store: Checkpointer, world: World) -> None:
    made = (
        StateGraph({"log": Channel([], reducer="append"), "booked": Channel({}, reducer="merge")})
        .add_map("seat", over="log", node=book("seat"))
        .add_node("hotel", book("hotel"))
        .add_node("car", book("car"))
        .add_parallel("both", ["hotel", "car"])
        .add_edge(START, "seat")
        .add_edge("seat", "both")
        .add_edge("both", END)
    )
    for place in ("seat", "hotel", "car"):
        made.add_compensation(f"cancel_{place}", world.handler(place))
    runner = made.compile(checkpointer=store)
    runner.invoke({"log": ["a", "b"]}, thread_id="t")
    nodes = ["both/car", "both/hotel", "seat[1]", "seat[0]"]
    assert [one.node for one in runner.run_info("t").rollback] == nodes
    assert runner.rollback("t").ok
    assert [one.node for one in runner.history("t")[:4]][::-1] == [f"<rollback>/{node}" for node in nodes]
    assert len({config.idempotency_key for config in world.configs}) == 4
    assert runner.verify("t", strict=True).ok


def _around(world: World, team: Any, store: Checkpointer) -> GraphRunner:
    """flight, team, car."""
    made = part(world, "trip", ["flight"])
    made._edges[-1] = ("flight", "team")
    made.add_subgraph("team", team, inputs={"note": "note"}, outputs={"note": "note"})
    made.add_node("car", book("car")).add_compensation("cancel_car", world.handler("car"))
    return made.add_edge("team", "car").add_edge("car", END).compile(checkpointer=store)
