"""Pictures show what maps, parallels and subgraphs are made of."""

from __future__ import annotations

from typing import Any

from hitl_tui import END, START, GraphRunner, StateGraph, quorum
from tests.engine.nodes.graphs import CHANNELS
from tests.support.spec import spec

pytestmark = spec("7")


def node(_state: Any) -> None:
    return None


def drawn() -> GraphRunner:
    inner = (
        StateGraph(CHANNELS, name="inner")
        .add_node("deep", node)
        .add_edge(START, "deep")
        .add_edge("deep", END)
    )
    return (
        StateGraph(CHANNELS, name="all")
        .add_map("scan", over="plan.steps", node=node, join=quorum(2))
        .add_node("a", node)
        .add_node("b", node)
        .add_parallel("group", ["a", "b"])
        .add_subgraph("team", inner, inputs={}, outputs={})
        .add_edge(START, "scan")
        .add_edge("scan", "group")
        .add_edge("group", "team")
        .add_edge("team", END)
        .compile()
    )


def test_mermaid_frames_what_is_inside() -> None:
    assert drawn().to_mermaid() == (
        "flowchart TD\n"
        '    n0(["START"])\n'
        '    n1[["scan: each of plan.steps, quorum(2)"]]\n'
        '    subgraph n2 ["group: at once"]\n'
        '        n2_0["a"]\n'
        '        n2_1["b"]\n'
        "    end\n"
        '    subgraph n3 ["team: inner"]\n'
        '        n3_0(["START"])\n'
        '        n3_1["deep"]\n'
        '        n3_2(["END"])\n'
        "        n3_0 --> n3_1\n"
        "        n3_1 --> n3_2\n"
        "    end\n"
        '    n4(["END"])\n'
        "    n0 --> n1\n"
        "    n1 --> n2\n"
        "    n2 --> n3\n"
        "    n3 --> n4\n"
    )


def test_graphviz_says_it_in_labels() -> None:
    text = drawn().to_dot()
    assert 'n1 [label="scan: each of plan.steps, quorum(2)", shape=box3d];' in text
    assert 'n2 [label="group: at once (a, b)", shape=component];' in text
    assert 'n3 [label="team: inner", peripheries=2];' in text


def test_the_digest_follows_what_is_inside() -> None:
    other = StateGraph(CHANNELS, name="all").add_map("scan", over="items", node=node)
    assert drawn().graph.digest == drawn().graph.digest
    first = other.add_edge(START, "scan").add_edge("scan", END).compile().graph.digest
    second = (
        StateGraph(CHANNELS, name="all")
        .add_map("scan", over="items", node=node, join="first")
        .add_edge(START, "scan")
        .add_edge("scan", END)
        .compile()
        .graph.digest
    )
    assert first != second
