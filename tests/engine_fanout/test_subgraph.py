"""SPEC 7, subgraph: a graph inside a node, on a thread of its own."""

from __future__ import annotations

from typing import Any

from hitl_tui import (
    END,
    START,
    StateGraph,
)
from hitl_tui.engine.log.events import ChildMoved, TextStreamed
from hitl_tui.engine.log.threads import Owner
from hitl_tui.stores import Checkpointer
from tests.engine_fanout.graphs import Events
from tests.engine_fanout.subgraphs import INNER, gated, inner, outer


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

    def test_each_visit_has_a_thread_of_its_own_with_its_owner(self, store: Checkpointer) -> None:
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


class TestForks:
    def test_a_fork_after_the_step_keeps_its_child(self, store: Checkpointer) -> None:
        runner = outer(inner(), store)
        runner.invoke({"task": "why?"}, thread_id="t")
        runner.fork("t", 1, "f")
        assert runner.invoke(thread_id="f")["answer"] == "re: why?"
        assert store.info("f/team#1") is None
        assert runner.history("f")[-2].branches[0].thread == "t/team#1"

    def test_a_fork_before_the_step_begins_a_child_of_its_own(self, store: Checkpointer) -> None:
        runner = gated(store)
        runner.invoke({"task": "why?"}, thread_id="t")
        runner.fork("t", 0, "f", changes={"task": "how?"})
        runner.invoke(thread_id="f")
        assert runner.get_state("f/team#1")["draft"] == "re: how?"
        assert runner.run_info("t/team#1").status == "waiting"
