"""Rollback as docs/spec/rollback.md specifies it, over all stores."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    Channel,
    GraphInvalid,
    GraphRunner,
    NodeFailed,
    NodeResult,
    RetryPolicy,
    StateGraph,
    ThreadBusy,
    UsageError,
    open_store,
)
from hitl_tui.engine.commands import Rollback
from hitl_tui.engine.log.events import AttemptFailed, NodeStarted, RunEnded, RunStarted, StepCommitted
from hitl_tui.engine.run.rollback import RollbackLoop
from hitl_tui.stores import Checkpointer
from tests.engine.run.booking import World, booked, graph, states, trip
from tests.support.flows import check_log, ledger_of
from tests.support.spec import spec

pytestmark = spec("13")


@pytest.fixture
def world() -> World:
    return World()


class TestEntries:
    def test_a_node_may_return_a_compensation_and_the_entry_is_stored_in_the_same_commit(
        self, store: Checkpointer, world: World
    ) -> None:
        booked(store, world)
        point = store.checkpoint("t", 2)
        assert point is not None
        assert [(one.handler, one.args) for one in point.compensations] == [
            ("cancel_hotel", {"ref": "hotel-2"})
        ]

    def test_run_info_shows_the_entries_in_the_order_in_which_they_would_run(
        self, store: Checkpointer, world: World
    ) -> None:
        entries = booked(store, world).run_info("t").rollback
        assert [(one.node, one.step, one.handler, one.args, one.state) for one in entries] == [
            ("car", 3, "cancel_car", {"ref": "car-3"}, "open"),
            ("hotel", 2, "cancel_hotel", {"ref": "hotel-2"}, "open"),
            ("flight", 1, "cancel_flight", {"ref": "flight-1"}, "open"),
        ]

    def test_entries_survive_a_restart(self, tmp_path: Any, world: World) -> None:
        path = str(tmp_path / "runs.db")
        first = open_store(path)
        booked(first, world)
        first.close()
        second = open_store(path)
        assert trip(second, world).rollback("t").ok
        assert [place for place, _ in world.calls] == ["car", "hotel", "flight"]
        second.close()

    def test_a_failed_attempt_leaves_no_entry(self, store: Checkpointer, world: World) -> None:
        made = graph(world)
        failing = NodeResult(status="failed", compensation=("cancel_car", 1))
        made.add_node("pay", lambda state, config: failing)
        made._edges[-1] = ("car", "pay")
        runner = made.add_edge("pay", END).compile(checkpointer=store)
        with pytest.raises(NodeFailed):
            runner.invoke(thread_id="t")
        assert len(runner.run_info("t").rollback) == 3

    @pytest.mark.parametrize(
        ("compensation", "message"),
        [
            (("cancel_cra", 1), "no compensation handler 'cancel_cra'"),
            (("cancel_car",), r"compensation is .*give a pair \(handler, args\)"),
            ("cancel_car", r"compensation is .*give a pair \(handler, args\)"),
            (("cancel_car", object()), "compensation"),
        ],
        ids=["an unknown handler", "no args", "no pair", "args that are no JSON"],
    )
    def test_a_wrong_compensation_fails_the_node(
        self, store: Checkpointer, world: World, compensation: Any, message: str
    ) -> None:
        runner = (
            StateGraph({"n": Channel(0)})
            .add_node("n", lambda state, config: NodeResult({"n": 1}, compensation=compensation))
            .add_compensation("cancel_car", world.handler("car"))
            .add_edge(START, "n")
            .add_edge("n", END)
            .compile(checkpointer=store)
        )
        with pytest.raises(NodeFailed, match=message):
            runner.invoke(thread_id="t")
        assert runner.get_state("t") == {"n": 0}


class TestHandlers:
    @pytest.mark.parametrize(
        ("name", "function", "message"),
        [
            ("", lambda s, c, a: None, "not allowed"),
            ("x", 3, "is a whole number"),
            ("x", lambda s, c: None, "must take"),
        ],
        ids=["no name", "no function", "two arguments"],
    )
    def test_a_handler_is_checked_when_it_is_registered(self, name: str, function: Any, message: str) -> None:
        with pytest.raises(GraphInvalid, match=message):
            StateGraph({"n": Channel(0)}).add_compensation(name, function)

    def test_a_name_is_registered_once(self, world: World) -> None:
        with pytest.raises(GraphInvalid, match="added twice"):
            graph(world).add_compensation("cancel_car", world.handler("car"))

    def test_handlers_run_in_strict_last_in_first_out_order_with_their_args(
        self, store: Checkpointer, world: World
    ) -> None:
        report = booked(store, world).rollback("t", actor="ann", note="no trip")
        assert world.calls == [
            ("car", {"ref": "car-3"}),
            ("hotel", {"ref": "hotel-2"}),
            ("flight", {"ref": "flight-1"}),
        ]
        assert (report.status, report.reason, report.ok) == ("cancelled", "rolled_back", True)
        assert states(report.entries) == {"car": "done", "hotel": "done", "flight": "done"}

    def test_what_a_handler_changes_is_one_committed_step_of_source_rollback(
        self, store: Checkpointer, world: World
    ) -> None:
        runner = booked(store, world)
        runner.rollback("t", actor="ann", note="no trip")
        points = runner.history("t")[:3][::-1]
        assert [(one.step, one.node, one.source, one.actor, one.note) for one in points] == [
            (4, "<rollback>/car", "rollback", "ann", "no trip"),
            (5, "<rollback>/hotel", "rollback", "ann", "no trip"),
            (6, "<rollback>/flight", "rollback", "ann", "no trip"),
        ]
        assert [record.source for record in store.records("t", 4, 6)] == ["rollback"] * 6
        assert runner.get_state("t")["booked"] == {"flight": None, "hotel": None, "car": None}
        check_log(runner, "t")
        assert runner.verify("t", strict=True).mismatches == ()

    def test_an_async_handler_that_changes_nothing_is_a_step_too(self, store: Checkpointer) -> None:
        done: list[Any] = []

        async def undo(state: Any, config: Any, args: Any) -> None:
            await asyncio.sleep(0)
            done.append(args)

        runner = (
            StateGraph({"n": Channel(0)})
            .add_node("n", lambda state, config: NodeResult(compensation=("undo", [1])))
            .add_compensation("undo", undo)
            .add_edge(START, "n")
            .add_edge("n", END)
            .compile(checkpointer=store)
        )
        runner.invoke(thread_id="t")
        assert runner.rollback("t").step == 2
        assert done == [[1]]

    def test_its_idempotency_key_is_the_entry_s_own(self, store: Checkpointer, world: World) -> None:
        runner = booked(store, world)
        world.broken = {"hotel"}
        runner.rollback("t")
        world.broken.clear()
        runner.rollback("t")
        keys = [config.idempotency_key for config in world.configs]
        places = [place for place, _ in world.calls]
        assert places == ["car", "hotel", "flight", "hotel"]
        assert keys[1] == keys[3]
        assert len(set(keys)) == 3
        assert [config.attempt for config in world.configs] == [1, 1, 1, 2]

    def test_its_retry_policy_holds(self, store: Checkpointer, world: World) -> None:
        runner = booked(store, world, retry=RetryPolicy(max_attempts=2, wait=0))
        world.broken = {"hotel"}
        report = runner.rollback("t")
        assert [place for place, _ in world.calls] == ["car", "hotel", "hotel", "flight"]
        assert "after 2 attempts" in report.entries[1].error

    def test_one_that_asks_a_human_fails(self, store: Checkpointer, world: World) -> None:
        made = graph(world)
        made._compensations.pop("cancel_hotel")
        made.add_compensation("cancel_hotel", lambda state, config, args: config.interrupt("sure?"))
        runner = made.compile(checkpointer=store)
        runner.invoke(thread_id="t")
        report = runner.rollback("t")
        assert states(report.entries) == {"car": "done", "hotel": "failed", "flight": "done"}
        assert "asks a human" in report.entries[1].error
        assert runner.open("t").cursor.pending == ()

    def test_one_that_returns_a_compensation_fails(self, store: Checkpointer, world: World) -> None:
        made = graph(world, without="car")
        again = NodeResult(compensation=("cancel_hotel", 1))
        runner = made.add_compensation("cancel_car", lambda s, c, a: again).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        assert states(runner.rollback("t").entries)["car"] == "failed"


class TestFailing:
    @pytest.fixture
    def failed(self, store: Checkpointer, world: World) -> GraphRunner:
        runner = booked(store, world)
        world.broken = {"hotel"}
        runner.rollback("t", actor="ann")
        return runner

    def test_a_failing_handler_is_recorded_and_the_others_still_run(
        self, failed: GraphRunner, store: Checkpointer, world: World
    ) -> None:
        assert [place for place, _ in world.calls] == ["car", "hotel", "flight"]
        entry = ledger_of(store, "t", "undo_failed")[0]
        assert (entry.data["node"], entry.data["handler"], entry.actor) == ("hotel", "cancel_hotel", "ann")
        assert "hotel is down" in (entry.note or "")

    def test_the_thread_ends_failed_with_the_entries_that_remain(self, failed: GraphRunner) -> None:
        info = failed.run_info("t")
        assert (info.status, info.reason) == ("failed", "node_error")
        assert states(info.rollback) == {"car": "done", "hotel": "failed", "flight": "done"}
        assert "hotel is down" in info.rollback[1].error
        error = failed.open("t").cursor.error
        assert error is not None
        assert error.message.startswith("1 could not be undone: <rollback>/hotel: ")

    def test_what_remains_can_be_rolled_back_later(self, failed: GraphRunner, world: World) -> None:
        world.broken.clear()
        report = failed.rollback("t")
        assert [place for place, _ in world.calls] == ["car", "hotel", "flight", "hotel"]
        assert (report.status, report.reason, report.ok) == ("cancelled", "rolled_back", True)
        check_log(failed, "t")

    def test_what_was_undone_is_never_run_twice(self, failed: GraphRunner, world: World) -> None:
        world.broken.clear()
        failed.rollback("t")
        head = failed.rollback("t").step
        assert len(world.calls) == 4
        assert failed.open("t").cursor.head == head

    def test_a_handler_that_the_graph_lost_is_named_and_recorded_as_failing(
        self, store: Checkpointer, world: World
    ) -> None:
        booked(store, world)
        report = trip(store, world, without="hotel").rollback("t")
        assert [place for place, _ in world.calls] == ["car", "flight"]
        assert states(report.entries)["hotel"] == "failed"
        assert "no compensation handler 'cancel_hotel'" in report.entries[1].error

    def test_a_thread_in_rollback_can_only_continue_the_rollback(self, failed: GraphRunner) -> None:
        for continue_thread in (
            lambda: failed.invoke(thread_id="t"),
            lambda: failed.step(thread_id="t"),
            lambda: failed.invoke({"log": "more"}, thread_id="t"),
        ):
            with pytest.raises(UsageError, match="is being rolled back"):
                continue_thread()
        assert failed.invoke(thread_id="t", resume="entry").status == "completed"


class TestWhen:
    def test_a_failed_run_is_rolled_back(self, store: Checkpointer, world: World) -> None:
        def full(state: Any, config: Any) -> None:
            raise RuntimeError("no car left")

        made = graph(world, without="car")
        made._nodes.pop("car")
        runner = made.add_node("car", full).compile(checkpointer=store)
        with pytest.raises(NodeFailed):
            runner.invoke(thread_id="t")
        report = runner.rollback("t")
        assert [place for place, _ in world.calls] == ["hotel", "flight"]
        assert (report.status, report.reason) == ("cancelled", "rolled_back")

    def test_a_waiting_run_is_rolled_back_and_its_requests_are_withdrawn(
        self, store: Checkpointer, world: World
    ) -> None:
        runner = graph(world).compile(checkpointer=store, interrupt_after=["hotel"])
        runner.invoke(thread_id="t")
        asked = runner.open("t").cursor.pending[0].id
        assert runner.rollback("t").status == "cancelled"
        assert runner.open("t").cursor.pending == ()
        assert [entry.request_id for entry in ledger_of(store, "t", "withdrawn")] == [asked]

    def test_it_is_refused_while_the_thread_runs(self, store: Checkpointer, world: World) -> None:
        runner = booked(store, world)
        with runner.open("t").writing(), pytest.raises(ThreadBusy):
            runner.rollback("t")
        assert world.calls == []

    def test_a_thread_with_nothing_to_undo_is_cancelled(self, store: Checkpointer, world: World) -> None:
        runner = trip(store, world)
        session = runner._prepare({"log": "go"}, "t", None, context=None)
        assert session.cursor.status == "pending"
        report = runner.rollback("t")
        assert (report.status, report.reason, report.entries) == ("cancelled", "rolled_back", ())

    def test_a_new_invocation_makes_new_entries_and_only_those_run(
        self, store: Checkpointer, world: World
    ) -> None:
        runner = booked(store, world)
        runner.rollback("t")
        world.calls.clear()
        runner.invoke({"log": "again"}, thread_id="t")
        report = runner.rollback("t")
        assert [place for place, _ in world.calls] == ["car", "hotel", "flight"]
        assert [entry.state for entry in report.entries] == ["done"] * 6


class TestForks:
    def test_a_fork_shows_its_parent_s_entries_and_cannot_execute_them(
        self, store: Checkpointer, world: World
    ) -> None:
        runner = booked(store, world)
        runner.fork("t", 2, "f")
        assert states(runner.run_info("f").rollback) == {"hotel": "inherited", "flight": "inherited"}
        runner.invoke(thread_id="f")
        report = runner.rollback("f")
        assert [place for place, _ in world.calls] == ["car"]
        assert states(report.entries) == {"car": "done", "hotel": "inherited", "flight": "inherited"}
        assert (report.status, report.reason) == ("cancelled", "rolled_back")
        assert states(runner.run_info("t").rollback) == {"car": "open", "hotel": "open", "flight": "open"}

    def test_a_fork_of_a_rolled_back_step_begins_again(self, store: Checkpointer, world: World) -> None:
        runner = booked(store, world)
        head = runner.rollback("t").step
        runner.fork("t", head, "f")
        assert runner.open("f").cursor.next_node == "flight"
        assert states(runner.run_info("f").rollback) == {"car": "done", "hotel": "done", "flight": "done"}
        assert runner.invoke(thread_id="f").status == "completed"


class TestEvents:
    def test_a_rollback_ends_with_exactly_one_terminal_event(self, store: Checkpointer, world: World) -> None:
        runner = booked(store, world)
        world.broken = {"hotel"}
        events: list[Any] = []
        runner.rollback("t", on_event=events.append)
        kinds = [
            type(event)
            for event in events
            if isinstance(event, (RunStarted, NodeStarted, StepCommitted, AttemptFailed, RunEnded))
        ]
        assert kinds == [
            RunStarted, NodeStarted, StepCommitted, NodeStarted, AttemptFailed, NodeStarted, StepCommitted,
            RunEnded,
        ]  # fmt: skip
        assert events[-1].progress.status == "failed"

    def test_a_pause_stops_between_two_handlers_and_the_next_rollback_continues(
        self, store: Checkpointer, world: World
    ) -> None:
        runner = booked(store, world)
        session = runner.open("t")

        async def some() -> None:
            rollback = RollbackLoop(session, Rollback())
            async for _ in rollback.steps():
                rollback.pause()

        asyncio.run(some())
        assert (session.cursor.status, session.cursor.reason) == ("waiting", "paused")
        assert [place for place, _ in world.calls] == ["car"]
        assert runner.rollback("t").ok
        assert [place for place, _ in world.calls] == ["car", "hotel", "flight"]
