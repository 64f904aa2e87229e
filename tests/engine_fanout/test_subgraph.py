"""SPEC 7, subgraph: a graph inside a node, on a thread of its own."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    AnswerRefused,
    Channel,
    Gate,
    GateChoice,
    GraphInvalid,
    MemoryCheckpointer,
    NodeFailed,
    NodeResult,
    StateGraph,
)
from hitl_tui.engine.decisions import expire
from hitl_tui.engine.events import ChildMoved, TextStreamed
from hitl_tui.engine.outcomes import ModelUse
from hitl_tui.engine.records import Limits, Owner
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.session import now_us
from hitl_tui.stores import Checkpointer
from tests.engine_fanout.graphs import Events

OUTER = {
    "task": Channel("", reducer="overwrite"),
    "notes": Channel([], reducer="append"),
    "answer": Channel("", reducer="overwrite"),
    "again": Channel(0, reducer="sum"),
    "results": Channel([], reducer="append"),
}
INNER = {
    "question": Channel("", reducer="overwrite"),
    "seen": Channel([], reducer="append"),
    "draft": Channel("", reducer="overwrite"),
}


def inner(*nodes: Any) -> StateGraph:
    """A graph of one node after the other: n1, n2, …; by default n1 drafts an answer to the question."""
    graph = StateGraph(INNER, name="inner")
    functions = nodes or (lambda s: {"draft": f"re: {s['question']}"},)
    names = [f"n{place}" for place in range(1, len(functions) + 1)]
    for name, node in zip(names, functions, strict=True):
        graph.add_node(name, node)
    for source, target in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(source, target)
    return graph


def outer(graph: Any, store: Any = None, *, times: int = 1, **options: Any) -> GraphRunner:
    """START -> team (the subgraph) -> after -> END, `times` times."""
    return (
        StateGraph(OUTER, name="outer")
        .add_subgraph(
            "team",
            graph,
            inputs={"task": "question", "notes": "seen"},
            outputs={"draft": "results"},
        )
        .add_node("after", lambda s: {"again": 1, "answer": (s["results"] or [""])[-1]})
        .add_edge(START, "team")
        .add_edge("team", "after")
        .add_conditional_edge("after", lambda s: s["again"] < times, {"true": "team", "false": END})
        .compile(checkpointer=store, **options)
    )


def gated(store: Checkpointer) -> GraphRunner:
    """A subgraph that asks a human about its draft."""
    gate = Gate(
        "n1",
        "is it good?",
        [GateChoice("ok", "good"), GateChoice("redo", "write", values=lambda _s, words: {"draft": words})],
        subject="draft",
    )
    return outer(inner().compile(checkpointer=store, interrupt_after=[gate]), store)


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


class TestFailing:
    def test_a_failed_child_fails_the_node_and_resuming_goes_on_where_it_failed(
        self, store: Checkpointer
    ) -> None:
        ran: list[str] = []
        broken = True

        def first(_state: Any) -> dict[str, Any]:
            ran.append("first")
            return {"seen": "first"}

        def second(_state: Any) -> dict[str, Any]:
            ran.append("second")
            if broken:
                raise ValueError("the disk is full")
            return {"draft": "done"}

        runner = outer(inner(first, second), store)
        with pytest.raises(NodeFailed, match=r"node 'team', attempt 1: its thread 't/team#1' failed: .*disk"):
            runner.invoke(thread_id="t")
        assert runner.run_info("t").status == runner.run_info("t/team#1").status == "failed"
        broken = False
        assert runner.invoke(thread_id="t")["results"] == ["done"]
        assert ran == ["first", "second", "second"]
        assert store.info("t/team#2") is None

    def test_a_cancelled_child_fails_the_node_and_resuming_begins_another(self, store: Checkpointer) -> None:
        runner = gated(store)
        runner.invoke({"task": "why?"}, thread_id="t")
        runner.cancel("t/team#1")
        with pytest.raises(NodeFailed, match="'t/team#1' cancelled: user"):
            runner.invoke(thread_id="t")
        assert runner.invoke(thread_id="t").status == "waiting"
        assert runner.run_info("t/team#2").status == "waiting"

    def test_cancelling_the_parent_cancels_the_child(self, store: Checkpointer) -> None:
        runner = gated(store)
        runner.invoke({"task": "why?"}, thread_id="t")
        runner.cancel("t")
        assert runner.run_info("t/team#1").status == "cancelled"

    def test_leaving_the_visit_cancels_its_child_and_the_next_visit_has_another(
        self, store: Checkpointer
    ) -> None:
        runner = gated(store)
        runner.invoke({"task": "why?"}, thread_id="t")
        runner.update_state("t", {"task": "what?"}, as_node=START)
        runner.invoke(thread_id="t")
        assert runner.run_info("t/team#1").status == "cancelled"
        assert runner.get_state("t/team#2")["draft"] == "re: what?"

    @pytest.mark.parametrize(
        ("limits", "status"),
        [(Limits(max_iterations=3), "completed"), (Limits(max_iterations=2), "failed")],
        ids=["enough", "too few"],
    )
    def test_the_child_has_what_is_left_of_the_parents_limits(
        self, store: Checkpointer, limits: Limits, status: str
    ) -> None:
        nodes = [lambda _s: {"seen": "x"}] * 3
        runner = outer(inner(*nodes), store, limits=limits)
        result = runner.invoke(thread_id="t")
        assert (result.status, runner.run_info("t/team#1").status) == (status, status)
        if status == "failed":
            assert result.reason == runner.run_info("t/team#1").reason == "limit"
            runner.extend_limits("t", max_iterations=9)
            assert runner.invoke(thread_id="t").status == "completed"

    def test_spending_is_rolled_up_once(self, store: Checkpointer) -> None:
        use = ModelUse("writer", "p", "m", 100, 10, 0.5)

        def node(_state: Any, config: Any) -> NodeResult:
            config.interrupt("sure?")
            return NodeResult({"draft": "d"}, usage=[use])

        runner = outer(inner(node), store)
        request = runner.invoke(thread_id="t").pending[0]
        runner.answer("t", request.id, "yes", step=request.step)
        runner.invoke(thread_id="t")
        info = runner.run_info("t")
        assert (info.tokens_in, info.tokens_out, info.cost) == (100, 10, 0.5)
        assert [(line.agent, line.calls, line.cost) for line in runner.cost_report("t")] == [
            ("writer", 1, 0.5)
        ]


class TestWaiting:
    def test_the_parent_waits_with_the_childs_request(self, store: Checkpointer) -> None:
        result = gated(store).invoke({"task": "why?"}, thread_id="t")
        (request,) = result.pending
        assert (result.status, request.title, request.node) == ("waiting", "is it good?", "team")
        assert (request.path, request.thread, request.step) == ("team/n1", "t/team#1", 0)
        assert request.payload == {"draft": "re: why?"}

    def test_an_answer_through_the_parent_goes_to_the_child(self, store: Checkpointer) -> None:
        runner = gated(store)
        (request,) = runner.invoke({"task": "why?"}, thread_id="t").pending
        redo = {"choice": "redo", "text": "better"}
        runner.answer("t", request.id, redo, step=request.step, actor="ann")
        assert runner.run_info("t/team#1").status == "waiting"
        assert runner.get_state("t/team#1")["draft"] == "better"
        assert runner.invoke(thread_id="t")["results"] == ["better"]
        for thread in ("t", "t/team#1"):
            assert [one.actor for one in store.ledger(thread) if one.kind == "answer"] == ["ann"]

    def test_an_answer_on_the_child_itself_lets_the_parent_go_on(self, store: Checkpointer) -> None:
        runner = gated(store)
        runner.invoke({"task": "why?"}, thread_id="t")
        (own,) = runner.open("t/team#1").cursor.pending
        runner.answer("t/team#1", own.id, "ok", step=own.step)
        assert runner.invoke(thread_id="t")["results"] == ["re: why?"]

    def test_an_edit_of_the_child_is_what_goes_on(self, store: Checkpointer) -> None:
        runner = gated(store)
        (request,) = runner.invoke({"task": "why?"}, thread_id="t").pending
        runner.update_state("t/team#1", {"draft": "edited"})
        with pytest.raises(AnswerRefused, match="is now about step"):
            runner.answer("t", request.id, "ok", step=request.step)
        (again,) = runner.open("t").cursor.pending
        assert again.payload == {"draft": "edited"}
        runner.answer("t", again.id, "ok", step=again.step)
        assert runner.invoke(thread_id="t")["results"] == ["edited"]

    def test_a_child_that_was_run_to_its_end_on_its_own_is_taken_as_it_is(self, store: Checkpointer) -> None:
        ran: list[int] = []

        def node(_state: Any, config: Any) -> dict[str, Any]:
            answer = config.interrupt("sure?")
            ran.append(1)
            return {"draft": answer}

        runner = outer(inner(node), store)
        runner.invoke(thread_id="t")
        (own,) = runner.open("t/team#1").cursor.pending
        runner.answer("t/team#1", own.id, "sure", step=own.step)
        assert runner.invoke(thread_id="t/team#1").status == "completed"
        assert runner.invoke(thread_id="t")["results"] == ["sure"]
        assert ran == [1]

    def test_resuming_without_an_answer_runs_nothing(self, store: Checkpointer) -> None:
        runner = gated(store)
        first = runner.invoke({"task": "why?"}, thread_id="t")
        version = store.cursor("t/team#1").version  # type: ignore[union-attr]
        assert runner.invoke(thread_id="t").pending == first.pending
        assert store.cursor("t/team#1").version == version  # type: ignore[union-attr]

    @pytest.mark.parametrize(
        ("on_timeout", "status", "reason"),
        [("ok", "waiting", "paused"), (None, "failed", "deadline")],
        ids=["its answer for the deadline is given", "without one both threads fail by the deadline"],
    )
    def test_a_deadline_of_the_child_passes_on_the_parent(
        self, store: Checkpointer, on_timeout: Any, status: str, reason: str
    ) -> None:
        gate = Gate("n1", "good?", [GateChoice("ok", "good")], deadline=60, on_timeout=on_timeout)
        runner = outer(inner().compile(checkpointer=store, interrupt_after=[gate]), store)
        runner.invoke({"task": "why?"}, thread_id="t")
        session = runner.open("t")
        session.clock = lambda: now_us() + 120_000_000
        with session.writing():
            assert expire(session) is (status == "failed")
        for thread in ("t", "t/team#1"):
            info = runner.run_info(thread)
            assert (info.status, info.reason) == (status, reason)
        if status == "waiting":
            assert runner.invoke(thread_id="t")["results"] == ["re: why?"]
        else:
            assert runner.invoke(thread_id="t").pending[0].title == "good?"

    def test_a_question_two_graphs_deep_is_answered_from_the_top(self, store: Checkpointer) -> None:
        deep = inner(lambda _s, c: {"draft": c.interrupt("deep?")})
        middle = (
            StateGraph(INNER, name="middle")
            .add_subgraph("deep", deep, inputs={"question": "question"}, outputs={"draft": "draft"})
            .add_edge(START, "deep")
            .add_edge("deep", END)
        )
        runner = outer(middle, store)
        (request,) = runner.invoke(thread_id="t").pending
        assert (request.path, request.thread) == ("team/deep/n1", "t/team#1")
        runner.answer("t", request.id, "yes", step=request.step)
        assert runner.invoke(thread_id="t")["results"] == ["yes"]

    def test_a_plain_breakpoint_of_the_child_is_passed_by_resuming_the_parent(
        self, store: Checkpointer
    ) -> None:
        runner = outer(inner().compile(checkpointer=store, interrupt_before=["n1"]), store)
        assert runner.invoke(thread_id="t").reason == "interrupt"
        assert runner.invoke({"task": "x"}, thread_id="t").status == "completed"


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


class TestBuilding:
    def test_cycles_are_refused(self) -> None:
        one, two = StateGraph(INNER, name="one"), StateGraph(INNER, name="two")
        for graph, other in ((one, two), (two, one)):
            graph.add_subgraph("sub", other, inputs={}, outputs={}).add_edge(START, "sub").add_edge(
                "sub", END
            )
        with pytest.raises(GraphInvalid, match="'one' is a subgraph of itself"):
            one.compile()

    @pytest.mark.parametrize(("depth", "fits"), [(32, True), (33, False)])
    def test_subgraphs_are_at_most_32_deep(self, depth: int, fits: bool) -> None:
        graph: Any = inner()
        for _ in range(depth):
            graph = (
                StateGraph(INNER)
                .add_subgraph("s", graph, inputs={"question": "question"}, outputs={"draft": "draft"})
                .add_edge(START, "s")
                .add_edge("s", END)
            )
        if fits:
            assert graph.compile().invoke({"question": "why?"}, thread_id="t")["draft"] == "re: why?"
        else:
            with pytest.raises(GraphInvalid, match="nested 33 deep"):
                graph.compile()

    @pytest.mark.parametrize(
        ("inputs", "outputs", "told"),
        [
            ({"tusk": "question"}, {}, "inputs: there is no channel 'tusk'"),
            ({"task": "query"}, {}, "inputs, inside: there is no channel 'query'"),
            ({}, {"graft": "results"}, "outputs, inside: there is no channel 'graft'"),
            ({}, {"draft": "result"}, "outputs: there is no channel 'result'"),
            (["task"], {}, "inputs is"),
        ],
    )
    def test_channels_that_are_not_there_are_refused(self, inputs: Any, outputs: Any, told: str) -> None:
        with pytest.raises(GraphInvalid, match=told):
            (
                StateGraph(OUTER)
                .add_subgraph("team", inner(), inputs=inputs, outputs=outputs)
                .add_edge(START, "team")
                .add_edge("team", END)
                .compile()
            )

    def test_a_child_that_waits_for_humans_needs_a_store(self) -> None:
        child = inner().compile(checkpointer=MemoryCheckpointer(), interrupt_after=["n1"])
        with pytest.raises(GraphInvalid, match="interrupts need a checkpointer"):
            outer(child)

    def test_a_graph_that_does_not_fit_is_told_by_its_name(self) -> None:
        with pytest.raises(GraphInvalid, match="subgraph 'team': no edge leads from START"):
            outer(StateGraph(INNER).add_node("n", lambda _s: None))
