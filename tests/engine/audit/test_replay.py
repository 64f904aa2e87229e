"""Replay: the graph runs again with what its nodes once returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    Channel,
    Gate,
    GateChoice,
    GraphRunner,
    NodeFailed,
    ReplayMismatch,
    StateGraph,
    max_turns,
)
from hitl_tui.engine.audit.replay import replay
from hitl_tui.stores import Checkpointer
from tests.engine.run.booking import World, booked
from tests.support.flows import review_loop
from tests.support.spec import spec

pytestmark = spec("12")


class Calls:
    """How often the functions of a graph ran."""

    def __init__(self) -> None:
        self.nodes = self.routes = 0


def highest(old: Any, new: Any) -> Any:
    return max(old or 0, new)


def lowest(old: Any, new: Any) -> Any:
    return min(old or 99, new)


def graph(
    store: Checkpointer,
    calls: Calls,
    *,
    stop: int = 6,
    best: Callable[[Any, Any], Any] = highest,
    names: tuple[str, str] = ("odd", "even"),
    reducer: str = "append",
    **options: Any,
) -> GraphRunner:
    """Two nodes that take turns until n is `stop`."""

    def node(state: Any, config: Any) -> dict[str, Any]:
        calls.nodes += 1
        return {"n": 1, "log": f"at {state['n']}", "best": state["n"] % 4}

    def way(state: Any) -> str:
        calls.routes += 1
        return "end" if state["n"] >= stop else "odd" if state["n"] % 2 else "even"

    made = StateGraph(
        {
            "n": Channel(0, reducer="sum"),
            "log": Channel([], reducer=reducer),
            "best": Channel(0, reducer=best),
        }
    )
    targets = {"odd": names[0], "even": names[1], "end": END}
    for name in names:
        made.add_node(name, node).add_conditional_edge(name, way, targets)
    return made.add_edge(START, names[1]).compile(checkpointer=store, **options)


class TestWhatIsServed:
    def test_results_are_served_without_calling_a_node_and_routes_are_run_for_real(
        self, store: Checkpointer
    ) -> None:
        calls = Calls()
        runner = graph(store, calls)
        runner.invoke(thread_id="t")
        before = (store.cursor("t"), store.ledger("t"), list(store.records("t", 0, 99)))
        calls.nodes = calls.routes = 0
        report = runner.replay("t")
        assert (report.ok, report.steps, report.nodes, report.records) == (True, 7, 6, 18)
        assert (calls.nodes, calls.routes) == (0, 6)
        assert before == (store.cursor("t"), store.ledger("t"), list(store.records("t", 0, 99)))

    def test_human_edits_answers_forks_and_new_invocations_are_served_as_recorded(
        self, store: Checkpointer
    ) -> None:
        gate = Gate(
            "check",
            title="verdict",
            choices=[
                GateChoice("accept", "ok"),
                GateChoice("approve", "ok", values={"verdict": "approved"}),
            ],
        )
        runner = review_loop(store, interrupt_after=[gate], interrupt_before=["check"])
        runner.invoke({"log": ["go"]}, thread_id="t")
        runner.update_state("t", {"draft": "mine"}, actor="ann")
        runner.invoke(thread_id="t")
        cursor = runner.open("t").cursor
        runner.answer("t", cursor.pending[0].id, "accept", step=cursor.head)
        runner.invoke(thread_id="t")
        runner.update_state("t", {"log": []}, as_node="write", actor="ann")
        runner.invoke(thread_id="t")
        runner.invoke(thread_id="t")
        cursor = runner.open("t").cursor
        runner.fork("t", cursor.head - 2, "f", changes={"verdict": "revise"}, actor="ann")
        runner.invoke({"log": "more"}, thread_id="f")
        runner.answer("t", cursor.pending[0].id, "approve", step=cursor.head)
        assert runner.invoke(thread_id="t").status == "completed"
        runner.invoke({"log": "again"}, thread_id="t")
        for thread in ("t", "f"):
            report = runner.replay(thread)
            assert report.mismatches == ()
            assert report.steps == runner.open(thread).cursor.head + 1

    def test_rollback_steps_are_served_as_recorded(self, store: Checkpointer) -> None:
        world = World()
        runner = booked(store, world)
        runner.rollback("t")
        world.calls.clear()
        assert runner.replay("t").ok
        runner.invoke({"log": "again"}, thread_id="t")
        assert runner.replay("t").nodes == 6
        assert world.calls == []

    @pytest.mark.parametrize("step", [4, 6], ids=["in the middle", "at the end"])
    def test_a_fork_of_a_rollback_begins_at_the_entry_and_is_replayed(
        self, store: Checkpointer, step: int
    ) -> None:
        runner = booked(store, World())
        runner.rollback("t")
        runner.fork("t", step, "f")
        assert runner.invoke(thread_id="f").status == "completed"
        assert runner.replay("f").nodes == 6

    def test_a_run_that_failed_and_continued_is_replayed(self, store: Checkpointer) -> None:
        broken = [True]

        def check(state: Any, config: Any) -> dict[str, Any]:
            if broken.pop() if broken else False:
                raise ValueError("once")
            return {"verdict": "approved"}

        runner = review_loop(store, {"check": check})
        with pytest.raises(NodeFailed):
            runner.invoke(thread_id="t")
        runner.invoke(thread_id="t")
        assert runner.replay("t").ok

    def test_one_that_a_termination_condition_ended_is_replayed(self, store: Checkpointer) -> None:
        runner = graph(store, Calls(), stop=99, termination=max_turns(4))
        assert runner.invoke(thread_id="t").reason == "termination"
        assert runner.replay("t").ok


class TestMismatches:
    def test_a_different_node_than_recorded_is_an_error_that_names_both(self, store: Checkpointer) -> None:
        graph(store, Calls()).invoke(thread_id="t")
        other = graph(store, Calls(), names=("strange", "even"))
        with pytest.raises(
            ReplayMismatch, match="step 2: the log has 'odd', the graph goes to 'strange'"
        ) as error:
            other.replay("t")
        assert (error.value.step, error.value.recorded, error.value.replayed) == (2, "'odd'", "'strange'")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"stop": 3}, "step 4: the log has 'odd', the graph goes to END"),
            ({"stop": 9}, "step 6: the log has END, the graph goes to 'even'"),
            (
                {"termination": max_turns(2)},
                r"step 3: the log has 'even', the graph goes to END \(2 turns\)",
            ),
        ],
        ids=["a route ends it earlier", "a route goes on", "a condition ends it earlier"],
    )
    def test_routes_and_conditions_that_decide_differently_are_reported(
        self, store: Checkpointer, options: dict[str, Any], message: str
    ) -> None:
        graph(store, Calls()).invoke(thread_id="t")
        with pytest.raises(ReplayMismatch, match=message):
            graph(store, Calls(), **options).replay("t")

    def test_a_route_that_now_raises_is_reported(self, store: Checkpointer) -> None:
        graph(store, Calls()).invoke(thread_id="t")
        other = graph(store, Calls())
        other.graph.routes["even"].targets.pop("odd")
        with pytest.raises(ReplayMismatch, match="an error: the routing function after node 'even'"):
            other.replay("t")

    def test_custom_reducers_whose_source_changed_are_named_once(self, store: Checkpointer) -> None:
        graph(store, Calls()).invoke(thread_id="t")
        report = graph(store, Calls(), best=lowest).replay("t")
        assert report.changed_reducers == ("best",)
        wrong = [(one.kind, one.channel, one.field) for one in report.mismatches if one.kind == "value"]
        assert wrong == [("value", "best", "next_hash")] * 4

    def test_another_reducer_is_named_and_each_value_it_changes(self, store: Checkpointer) -> None:
        graph(store, Calls()).invoke(thread_id="t")
        report = graph(store, Calls(), reducer="last_n(4)").replay("t")
        assert report.changed_reducers == ("log",)
        assert [(one.step, one.field) for one in report.mismatches if one.kind == "value"] == [
            (5, "next_hash"), (6, "next_hash"),
        ]  # fmt: skip

    def test_a_channel_that_the_graph_no_longer_has_is_reported(self, store: Checkpointer) -> None:
        graph(store, Calls()).invoke(thread_id="t")
        other = graph(store, Calls())
        other.graph.channels.pop("best")
        found = replay(store, other.graph, "t").mismatches
        assert {one.kind for one in found} == {"channel", "checkpoint"}
        assert [one.channel for one in found if one.kind == "channel"] == ["best"] * 6

    def test_replay_reports_its_progress(self, store: Checkpointer) -> None:
        runner = graph(store, Calls())
        runner.invoke(thread_id="t")
        progress: list[tuple[int, int]] = []
        replay(store, runner.graph, "t", lambda done, of: progress.append((done, of)))
        assert progress == [(0, 7), (7, 7)]


class TestOtherChannelsThanAtFirst:
    """The log says from which step on the graph had others."""

    @staticmethod
    def of(store: Checkpointer, **more: Channel) -> GraphRunner:
        """A graph that counts to six, in the channel `more`, too, where it has one."""
        counted = StateGraph({"n": Channel(0, reducer="sum"), **more})
        counted.add_node("count", lambda s: dict.fromkeys({"n", "more"}.intersection(s), 1))
        counted.add_conditional_edge("count", lambda s: s["n"] < 6, {"true": "count", "false": END})
        return counted.add_edge(START, "count").compile(checkpointer=store)

    def sum_of(self, default: int = 0) -> Channel:
        return Channel(default, reducer="sum")

    def test_a_channel_that_came_later_is_in_the_hashes_from_then_on(self, store: Checkpointer) -> None:
        self.of(store).step(thread_id="t")
        grown = self.of(store, more=self.sum_of(7))
        grown.step(thread_id="t")
        assert grown.replay("t").ok
        assert grown.invoke(thread_id="t")["more"] == 12
        assert grown.replay("t").mismatches == ()

    def test_one_that_it_had_for_a_while_is_served_as_recorded(self, store: Checkpointer) -> None:
        plain, grown = self.of(store), self.of(store, more=self.sum_of(7))
        plain.step(thread_id="t")
        for runner in (grown, grown, plain, grown):
            runner.step(thread_id="t")
        assert grown.get_state("t") == {"n": 5, "more": 8}, "it came back with its default"
        assert grown.replay("t").mismatches == ()
        plain.invoke(thread_id="t")
        for runner in (plain, grown):
            assert runner.replay("t").mismatches == ()

    def test_one_that_it_began_with_and_lost(self, store: Checkpointer) -> None:
        grown = self.of(store, more=self.sum_of(), never=Channel("as it was"))
        grown.step(thread_id="t")
        plain = self.of(store)
        plain.step(thread_id="t")
        assert plain.replay("t").mismatches == ()
        plain.fork("t", 1, "u")
        plain.invoke(thread_id="u")
        assert plain.replay("u").mismatches == ()

    def test_its_default_of_then_is_what_it_came_with(self, store: Checkpointer) -> None:
        self.of(store).step(thread_id="t")
        self.of(store, more=Channel(7, reducer="overwrite")).update_state("t", {"n": 2})
        assert self.of(store, more=Channel(9, reducer="overwrite")).replay("t").mismatches == ()

    def test_a_changed_value_is_still_reported(self, store: Checkpointer) -> None:
        self.of(store).step(thread_id="t")
        self.of(store, more=self.sum_of(7)).step(thread_id="t")
        found = self.of(store, more=Channel(7, reducer="max")).replay("t").mismatches
        assert [(one.kind, one.step, one.channel) for one in found] == [
            ("reducer", 2, "more"),
            ("value", 2, "more"),
        ]
