"""Subgraph: a graph inside a node, on a thread of its own."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    StateGraph,
)
from hitl_tui.engine.log.events import ChildMoved, TextStreamed
from hitl_tui.engine.log.threads import Owner
from hitl_tui.stores import Checkpointer
from tests.engine.nodes.graphs import Events
from tests.engine.nodes.subgraphs import INNER, gated, inner, outer, two_deep
from tests.support.spec import spec

pytestmark = spec("7")


class TestRunning:
    def test_inputs_are_copied_in_and_outputs_go_through_the_parents_reducers(
        self, store: Checkpointer
    ) -> None:
        runner = outer(inner(), store)
        result = runner.invoke({"task": "why?", "notes": ["a", "b"]}, thread_id="t")
        assert (result.status, result["results"], result["answer"]) == ("completed", ["re: why?"], "re: why?")
        assert runner.get_state("t/team#1") == {
            "question": "why?",
            "seen": ["a", "b"],
            "draft": "re: why?",
        }
        assert runner.verify("t", strict=True).ok
        assert runner.verify("t/team#1", strict=True).ok

    def test_it_works_without_a_store(self) -> None:
        assert outer(inner()).invoke({"task": "why?"})["results"] == ["re: why?"]

    def test_all_else_of_the_child_is_its_own(self, store: Checkpointer) -> None:
        runner = outer(inner(lambda _s: {"draft": "d", "seen": "own"}), store)
        result = runner.invoke({"task": "why?", "notes": ["a"]}, thread_id="t")
        assert result["notes"] == ["a"]

    def test_the_step_of_the_parent_names_the_childs_thread(self, store: Checkpointer) -> None:
        runner = outer(inner(), store)
        runner.invoke({"task": "why?"}, thread_id="t")
        point = runner.history("t")[-2]
        assert (point.node, point.source, point.iteration) == ("team", "subgraph", 1)
        assert [(one.path, one.status, one.thread) for one in point.branches] == [
            ("team#1", "ok", "t/team#1")
        ]
        records = [(one.channel, one.path, one.source) for one in store.records("t", 1, 1)]
        assert records == [("results", "team#1", "subgraph")]

    def test_each_visit_has_its_own_thread_with_its_owner(self, store: Checkpointer) -> None:
        runner = outer(inner(), store, times=2)
        runner.invoke({"task": "why?"}, thread_id="t")
        owners = {line.info.thread_id: line.info.owner for line in store.threads()}
        assert owners == {"t": None, "t/team#1": Owner("t", "team"), "t/team#2": Owner("t", "team")}

    def test_goal_and_constraints_are_the_childs_too(self) -> None:
        runner = outer(inner(lambda s: {"draft": s["goal"]}))
        assert runner.invoke({"goal": "be brief"})["results"] == ["be brief"]

    def test_the_childs_events_name_their_place(self, store: Checkpointer) -> None:
        def node(_state: Any, config: Any) -> dict[str, Any]:
            config.emit("thinking")
            return {"draft": "d"}

        events = Events()
        outer(inner(node), store).invoke(thread_id="t", on_event=events)
        assert [(one.node, one.path, one.text) for one in events.of(TextStreamed)] == [
            ("team", "team/n1", "thinking")
        ]
        moved = [(one.thread_id, one.running) for one in events.of(ChildMoved)]
        assert ("t/team#1", "n1") in moved
        assert moved[-1] == ("t/team#1", "")

    def test_subgraphs_nest(self, store: Checkpointer) -> None:
        middle = (
            StateGraph(INNER, name="middle")
            .add_subgraph("deep", inner(), inputs={"question": "question"}, outputs={"draft": "draft"})
            .add_edge(START, "deep")
            .add_edge("deep", END)
        )
        runner = outer(middle, store)
        assert runner.invoke({"task": "why?"}, thread_id="t")["results"] == ["re: why?"]
        assert store.info("t/team#1/deep#1") is not None
        assert runner.get_state("t/team#1/deep#1")["draft"] == "re: why?"


LONG = "t" * 200


class TestLongNames:
    """Every id is one that a thread can have, however long those around it are."""

    def test_a_thread_with_the_longest_id_runs_its_subgraphs(self, store: Checkpointer) -> None:
        runner = two_deep(store)
        request = runner.invoke({"task": "why?"}, thread_id=LONG).pending[0]
        runner.answer(LONG, request.id, "so", step=request.step)
        assert runner.invoke(thread_id=LONG)["answer"] == "so"
        inside = runner.verify(LONG, strict=True).threads
        assert [len(name) for name in inside] == [200, 200]
        assert [name[-7:] for name in inside] == ["/team#1", "/deep#1"]
        assert {name: store.info(name).owner for name in inside} == {  # type: ignore[union-attr]
            inside[0]: Owner(LONG, "team"),
            inside[1]: Owner(inside[0], "deep"),
        }
        records = [(one.channel, one.path) for one in store.records(LONG, 1, 1)]
        assert records == [("results", "team#1")]

    def test_each_visit_has_its_own_thread(self, store: Checkpointer) -> None:
        runner = outer(inner(), store, times=11)
        runner.invoke({"task": "why?"}, thread_id=LONG)
        made = [one.thread for point in runner.history(LONG)[::-1] for one in point.branches]
        assert [name.rpartition("/")[2] for name in made] == [f"team#{n}" for n in range(1, 12)]
        assert len({*made}) == 11

    def test_ids_that_differ_in_what_is_left_out_stay_apart(self, store: Checkpointer) -> None:
        runner = outer(inner(), store)
        for end in "ab":
            runner.invoke({"task": end}, thread_id=LONG[:-1] + end)
            (name,) = runner.verify(LONG[:-1] + end).threads
            assert runner.get_state(name)["question"] == end

    @pytest.mark.slow
    def test_the_deepest_nesting_runs_whatever_its_nodes_are_called(self, store: Checkpointer) -> None:
        graph = inner()
        for _ in range(30):
            graph = (
                StateGraph(INNER, name="around")
                .add_subgraph("a desk", graph, inputs={"question": "question"}, outputs={"draft": "draft"})
                .add_edge(START, "a desk")
                .add_edge("a desk", END)
            )
        runner = outer(graph, store)
        assert runner.invoke({"task": "why?"}, thread_id="t")["answer"] == "re: why?"
        assert len(runner.verify("t", strict=True).threads) == 31

    def test_a_node_with_a_long_name_has_a_thread(self, store: Checkpointer) -> None:
        name = "n" * 300
        graph = (
            StateGraph(INNER)
            .add_subgraph(name, inner(), inputs={"question": "question"}, outputs={"draft": "draft"})
            .add_edge(START, name)
            .add_edge(name, END)
        )
        runner = graph.compile(checkpointer=store)
        assert runner.invoke({"question": "why?"}, thread_id="t")["draft"] == "re: why?"
        (inside,) = runner.verify("t", strict=True).threads
        assert (inside.partition("~")[0], inside.partition("/")[2]) == ("t", f"{'n' * 80}#1")


class TestForks:
    def test_a_fork_after_the_step_keeps_its_child(self, store: Checkpointer) -> None:
        runner = outer(inner(), store)
        runner.invoke({"task": "why?"}, thread_id="t")
        runner.fork("t", 1, "f")
        assert runner.invoke(thread_id="f")["answer"] == "re: why?"
        assert store.info("f/team#1") is None
        assert runner.history("f")[-2].branches[0].thread == "t/team#1"

    def test_a_fork_before_the_step_starts_its_own_child(self, store: Checkpointer) -> None:
        runner = gated(store)
        runner.invoke({"task": "why?"}, thread_id="t")
        runner.fork("t", 0, "f", changes={"task": "how?"})
        runner.invoke(thread_id="f")
        assert runner.get_state("f/team#1")["draft"] == "re: how?"
        assert runner.run_info("t/team#1").status == "waiting"
