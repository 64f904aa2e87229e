"""Subgraph: what is refused when a graph is built."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    Channel,
    GraphInvalid,
    MemoryCheckpointer,
    StateGraph,
    UsageError,
)
from tests.engine.nodes.subgraphs import INNER, OUTER, inner, outer
from tests.support.spec import spec

pytestmark = spec("7")


class TestBuilding:
    def test_cycles_are_refused(self) -> None:
        one, two = StateGraph(INNER, name="one"), StateGraph(INNER, name="two")
        for graph, other in ((one, two), (two, one)):
            graph.add_subgraph("sub", other, inputs={}, outputs={}).add_edge(START, "sub").add_edge(
                "sub", END
            )
        with pytest.raises(GraphInvalid, match="'one' is a subgraph of itself"):
            one.compile()

    @pytest.mark.parametrize("name", ["a\x1b[2J", "a\nb", "a\x9b"], ids=ascii)
    def test_a_name_that_no_thread_can_have_is_refused(self, name: str) -> None:
        with pytest.raises(GraphInvalid, match="its name goes into those of its threads"):
            StateGraph(OUTER).add_subgraph(name, inner(), inputs={}, outputs={})

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
        ("inputs", "outputs", "message"),
        [
            ({"tusk": "question"}, {}, "inputs: there is no channel 'tusk'"),
            ({"task": "query"}, {}, "inputs, inside: there is no channel 'query'"),
            ({}, {"graft": "results"}, "outputs, inside: there is no channel 'graft'"),
            ({}, {"draft": "result"}, "outputs: there is no channel 'result'"),
            (["task"], {}, "inputs is"),
        ],
    )
    def test_channels_that_are_not_there_are_refused(self, inputs: Any, outputs: Any, message: str) -> None:
        with pytest.raises(GraphInvalid, match=message):
            (
                StateGraph(OUTER)
                .add_subgraph("team", inner(), inputs=inputs, outputs=outputs)
                .add_edge(START, "team")
                .add_edge("team", END)
                .compile()
            )

    def test_a_child_that_waits_for_humans_needs_a_store(self) -> None:
        child = inner().compile(checkpointer=MemoryCheckpointer(), interrupt_after=["n1"])
        with pytest.raises(UsageError, match="needs a store"):
            outer(child).invoke()

    def test_a_child_that_asks_about_taint_needs_a_store(self) -> None:
        child = StateGraph(INNER).add_node("n", lambda _s: None, on_taint="approve")
        child.add_edge(START, "n").add_edge("n", END)
        with pytest.raises(UsageError, match=r"of node 'n' inside subgraph 'team' needs a store"):
            outer(child).invoke()

    @pytest.mark.parametrize("kind", ["map", "parallel"])
    def test_branches_that_ask_about_taint_need_a_store(self, kind: str) -> None:
        graph = StateGraph({"items": Channel([], reducer="overwrite")})
        if kind == "map":
            graph.add_map("step", over="items", node=lambda _s: None, on_taint="approve")
        else:
            graph.add_node("one", lambda _s: None, on_taint="approve").add_node("two", lambda _s: None)
            graph.add_parallel("step", ["one", "two"])
        graph.add_edge(START, "step").add_edge("step", END)
        with pytest.raises(UsageError, match=r"on_taint='approve' of node .* needs a store"):
            graph.compile().invoke()

    def test_a_graph_that_does_not_fit_is_named(self) -> None:
        with pytest.raises(GraphInvalid, match="subgraph 'team': no edge leads from START"):
            outer(StateGraph(INNER).add_node("n", lambda _s: None))
