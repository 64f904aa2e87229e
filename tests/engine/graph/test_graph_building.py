"""A graph that can't be built says what is wrong and how to mend it."""

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
    GraphInvalid,
    GraphRunner,
    MemoryCheckpointer,
    RetryPolicy,
    StateGraph,
    custom_condition,
    max_turns,
    text_match,
)
from hitl_tui.engine.graph.description import InputField
from tests.support.spec import spec

pytestmark = spec("5")


def node(state: Any, config: Any) -> None:
    return None


def route(state: Any) -> str:
    return "x"


def graph(*names: str) -> StateGraph:
    """Nodes without edges."""
    made = StateGraph({"c": Channel(None)})
    for name in names:
        made.add_node(name, node)
    return made


def built(
    nodes: str, *edges: str, routes: Any = None, reads: Any = None, writes: Any = None, **options: Any
) -> Any:
    """A compiled graph: nodes and edges as words, routes as {node: targets}."""
    made = StateGraph({"c": Channel(None)})
    for name in nodes.split():
        made.add_node(name, node, reads=reads, writes=writes)
    for edge in edges:
        made.add_edge(*edge.split())
    for source, targets in (routes or {}).items():
        made.add_conditional_edge(source, route, targets)
    return made.compile(**options)


STORE = MemoryCheckpointer()
GATE = Gate("zap", "?", [GateChoice("ok", "ok")])
LINE = ("a", "START a", "a END")

BROKEN: dict[str, tuple[Callable[[], Any], str, str]] = {
    "reads that are a text": (lambda: built(*LINE, reads="c"), "reads='c' is a text", "reads=['c']"),
    "writes that are a text": (lambda: built(*LINE, writes="c"), "writes='c' is a text", "writes=['c']"),
    "a star in writes": (lambda: built(*LINE, writes=["*"]), "there is no channel '*'", "channels: c"),
    "an output that is no channel": (
        lambda: built(*LINE, output="zap"),
        "output: there is no channel 'zap'",
        "channels: c",
    ),
    "no edge from START": (
        lambda: built("a", "a END"),
        "no edge leads from START",
        'add_edge(START, "first")',
    ),
    "several edges from START": (
        lambda: built("a b", "START a", "START b", "a END"),
        "2 edges lead from START",
        "exactly one",
    ),
    "a conditional edge from START": (
        lambda: built("a", "a END", routes={START: {"x": "a"}}),
        "START can't have a conditional edge",
        "first node",
    ),
    "START straight to END": (lambda: built("", "START END"), "START leads straight to END", "add a node"),
    "an edge to an unknown node": (
        lambda: built("a", "START a", "a zap"),
        "unknown node 'zap'",
        "nodes: a, END",
    ),
    "an edge from an unknown node": (lambda: built(*LINE, "zap a"), "unknown node 'zap'", "nodes: a"),
    "an edge from END": (lambda: built(*LINE, "END a"), "unknown node 'END'", "nodes: a"),
    "an edge to START": (lambda: built("a", "START a", "a START"), "unknown node 'START'", "END"),
    "a route to an unknown node": (
        lambda: built("a", "START a", routes={"a": {"x": "zap", "y": END}}),
        "unknown node 'zap'",
        "nodes: a, END",
    ),
    "a route from an unknown node": (
        lambda: built(*LINE, routes={"zap": {"x": END}}),
        "unknown node 'zap'",
        "nodes: a",
    ),
    "a route without targets": (
        lambda: built("a", "START a", routes={"a": {}}),
        "no targets",
        "route_map",
    ),
    "a duplicate node": (lambda: built("a a"), "'a' was added twice", "own name"),
    "a duplicate edge": (lambda: built("a", "START a", "START a"), "was added twice", "remove one"),
    "two conditional edges": (
        lambda: graph("a").add_conditional_edge("a", route, [END]).add_conditional_edge("a", route, [END]),
        "two conditional edges",
        "one route_map",
    ),
    "a fixed and a conditional edge": (
        lambda: built(*LINE, routes={"a": {"x": END}}),
        "'a' has a fixed and a conditional edge",
        "keep one",
    ),
    "two fixed edges": (
        lambda: built("a b", "START a", "a END", "a b", "b END"),
        "'a' has 2 fixed edges",
        "add_conditional_edge",
    ),
    "an unreachable node": (
        lambda: built("a lost", "START a", "a END", "lost a"),
        "no path leads from START to 'lost'",
        "add an edge to it, or remove the node",
    ),
    "no path to END": (
        lambda: built("a b", "START a", "a b", "b a"),
        "no path leads to END",
        "termination condition",
    ),
    "an unknown node in interrupt_before": (
        lambda: built(*LINE, interrupt_before=["zap"], checkpointer=STORE),
        "interrupt_before names an unknown node 'zap'",
        "nodes: a",
    ),
    "an unknown node in interrupt_after": (
        lambda: built(*LINE, interrupt_after="zap", checkpointer=STORE),
        "interrupt_after names an unknown node 'zap'",
        "nodes: a",
    ),
    "a gate at an unknown node": (
        lambda: built(*LINE, interrupt_after=[GATE], checkpointer=STORE),
        "unknown node 'zap'",
        "nodes: a",
    ),
    "a node that is not a function": (
        lambda: StateGraph({}).add_node("a", "node"),  # type: ignore[arg-type]
        "node 'a' is text",
        "a function (state, config)",
    ),
    "a route that is not a function": (
        lambda: graph("a").add_conditional_edge("a", "x", {"x": END}),  # type: ignore[arg-type]
        "is not a function",
        "(state) -> key",
    ),
    "an unknown channel in reads": (
        lambda: built(*LINE, reads=["zap"]),
        "reads of node 'a': there is no channel 'zap'",
        "channels: c",
    ),
    "an unknown channel in a dotted read": (
        lambda: built(*LINE, reads=["zap.x"]),
        "reads of node 'a': there is no channel 'zap'",
        "channels: c",
    ),
    "an unknown channel in writes": (
        lambda: built(*LINE, writes=["zap"]),
        "writes of node 'a': there is no channel 'zap'",
        "channels: c",
    ),
    "an unknown channel in a termination": (
        lambda: built(*LINE, termination=max_turns(2) | text_match("x", "zap")),
        "there is no channel 'zap'",
        "channels: c",
    ),
    "an unknown channel of an input": (
        lambda: built(*LINE, inputs=[InputField("task", "zap", "?")]),
        "input 'task': there is no channel 'zap'",
        "channels: c",
    ),
}


@pytest.mark.parametrize(("build", "message", "hint"), BROKEN.values(), ids=BROKEN)
def test_an_invalid_graph_fails_with_a_message_and_a_hint(
    build: Callable[[], Any], message: str, hint: str
) -> None:
    with pytest.raises(GraphInvalid) as caught:
        build()
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("name", ["", "  ", START, END, "a:b", "a\ud800", 3, None], ids=ascii)
def test_a_name_no_node_can_have(name: Any) -> None:
    with pytest.raises(GraphInvalid, match="is not allowed"):
        graph(name)


@pytest.mark.parametrize("timeout", [0, -1, -0.5, float("nan")])
def test_a_timeout_is_above_zero(timeout: float) -> None:
    with pytest.raises(GraphInvalid, match=r"'a': timeout .* above 0 seconds"):
        StateGraph({}).add_node("a", node, timeout=timeout)


@pytest.mark.parametrize(
    "policy",
    [
        {"max_attempts": 0},
        {"max_attempts": 1.5},
        {"wait": -1},
        {"wait": float("nan")},
        {"wait": float("inf")},
        {"backoff": 0.5},
        {"backoff": float("nan")},
        {"jitter": 2},
        {"jitter": -0.1},
    ],
    ids=repr,
)
def test_an_invalid_retry_policy_is_refused(policy: dict[str, Any]) -> None:
    with pytest.raises(GraphInvalid, match="a retry needs"):
        RetryPolicy(**policy)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: max_turns(0), "max_turns"),
        (lambda: max_turns(True), "max_turns"),
        (lambda: text_match("(", "c"), "text_match"),
    ],
    ids=["max_turns(0)", "max_turns(True)", "a broken pattern"],
)
def test_an_invalid_termination_condition_is_refused(make: Callable[[], Any], match: str) -> None:
    with pytest.raises(GraphInvalid, match=match):
        make()


def test_all_calls_chain() -> None:
    made = StateGraph({"c": Channel(None)})
    assert made.add_node("a", node) is made
    assert made.add_edge(START, "a") is made
    assert made.add_conditional_edge("a", route, {"x": END}) is made
    assert isinstance(made.compile(), GraphRunner)


def test_no_path_to_end_is_allowed_with_a_termination_condition() -> None:
    made = graph("a", "b").add_edge(START, "a").add_edge("a", "b").add_edge("b", "a")
    result = made.compile(termination=max_turns(3)).invoke()
    assert (result.status, result.reason, result.step) == ("completed", "termination", 3)


def test_a_dead_end_is_allowed_with_a_termination_condition() -> None:
    made = graph("a").add_edge(START, "a")
    result = made.compile(termination=max_turns(1)).invoke()
    assert (result.status, result.reason) == ("completed", "termination")


def test_a_dead_end_fails_if_no_condition_holds() -> None:
    result = graph("a").add_edge(START, "a").compile(termination=custom_condition(lambda s: False)).invoke()
    assert (result.status, result.reason) == ("failed", "dead_end")


def test_a_compiled_graph_does_not_change_with_its_builder() -> None:
    made = graph("a").add_edge(START, "a").add_edge("a", END)
    runner = made.compile()
    made.add_node("later", node)
    assert [known.name for known in runner.graph.info.nodes] == ["a"]


class TestDigest:
    """The digest is of what a graph declares."""

    @staticmethod
    def digest(channel: Channel | None = None, target: str = END, **options: Any) -> str:
        made = StateGraph({"c": channel or Channel(None)}).add_node("a", node, **options).add_node("b", node)
        made.add_edge(START, "a").add_conditional_edge("a", route, {"x": "b", "y": target}).add_edge("b", END)
        return made.compile().graph.digest

    def test_is_the_same_for_the_same_graph(self) -> None:
        assert self.digest() == self.digest()

    @pytest.mark.parametrize(
        "changes",
        [
            {"channel": Channel(None, reducer="append")},
            {"channel": Channel(None, schema=str)},
            {"channel": Channel(None, visibility="private")},
            {"target": "a"},
            {"reads": []},
            {"reads": ["c"]},
            {"writes": []},
        ],
        ids=["reducer", "schema", "visibility", "route", "reads nothing", "reads", "writes nothing"],
    )
    def test_differs_by(self, changes: dict[str, Any]) -> None:
        assert self.digest(**changes) != self.digest()

    def test_shows_a_node_that_may_read_nothing_as_such(self) -> None:
        made = StateGraph({"c": Channel(None)}).add_node("a", node, reads=[], writes=["c"])
        info = made.add_edge(START, "a").add_edge("a", END).compile().graph.info
        assert (info.nodes[0].reads, info.nodes[0].writes) == ((), ("c",))
