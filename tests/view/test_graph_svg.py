"""The picture of a graph as SVG, and the way of a thread in all its pictures."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from hitl_tui.engine.description import EdgeInfo, GraphInfo
from hitl_tui.engine.drawing import Look, to_dot, to_mermaid
from hitl_tui.view.graph_svg import graph_svg

ADVISOR = (
    EdgeInfo("START", "worker", ""),
    EdgeInfo("worker", "advisor", ""),
    EdgeInfo("advisor", "END", "approved"),
    EdgeInfo("advisor", "worker", "revise"),
)
LOOK = Look("advisor", {"worker": 2, "advisor": 1}, frozenset({("START", "worker"), ("advisor", "worker")}))


def graph(edges: tuple[EdgeInfo, ...] = ADVISOR, name: str = "g") -> GraphInfo:
    return GraphInfo(name, (), edges, (), ())


def parts(svg: str, kind: str) -> list[tuple[str, str]]:
    """The class and the text of each element of a kind."""
    root = ET.fromstring(svg)
    return [
        (one.get("class", ""), one.text or "") for one in root.iter(f"{{http://www.w3.org/2000/svg}}{kind}")
    ]


def test_nodes_in_the_order_of_the_run_with_labels_of_routes():
    svg = graph_svg(graph())
    words = [text for _, text in parts(svg, "text")]
    assert [one for one in words if one in ("START", "worker", "advisor", "END")] == [
        "START", "worker", "advisor", "END",
    ]  # fmt: skip
    assert {"approved", "revise"} <= set(words)
    assert not any("visited" in one or "taken" in one for one, _ in parts(svg, "rect") + parts(svg, "path"))
    assert "prefers-color-scheme: dark" in svg


def test_the_way_of_a_thread_is_marked():
    svg = graph_svg(graph(), LOOK)
    assert [one for one, _ in parts(svg, "rect")] == [
        "ground",
        "node",
        "node visited",
        "node current",
        "node",
    ]
    assert [text for kind, text in parts(svg, "text") if kind == "count"] == ["×2", "×1"]
    assert "▶ advisor" in [text for _, text in parts(svg, "text")]
    assert sum("taken" in one and "edge" in one for one, _ in parts(svg, "path")) == 2


def test_jumps_that_overlap_have_lanes_of_their_own():
    names = ["a", "b", "c", "d"]
    chain = [EdgeInfo(one, two, "") for one, two in zip(["START", *names], [*names, "END"], strict=True)]
    back = [EdgeInfo("d", "a", "far"), EdgeInfo("c", "b", "near"), EdgeInfo("b", "b", "again")]
    root = ET.fromstring(graph_svg(graph((*chain, *back))))
    ways = [one.get("d", "") for one in root.iter("{http://www.w3.org/2000/svg}path")]
    lanes = [way.split("H")[1].split("V")[0] for way in ways if way.count("H") == 2]
    assert len(set(lanes)) == len(lanes) == 3


def test_hostile_names_stay_text():
    evil = '</text><script>alert(1)</script>&"\x1b[2J'
    svg = graph_svg(graph((EdgeInfo("START", evil, evil), EdgeInfo(evil, "END", "")), name=evil))
    assert "<script" not in svg
    assert "\x1b" not in svg
    assert ET.fromstring(svg).tag.endswith("svg")


@pytest.mark.parametrize("count", [1, 200])
def test_any_graph_is_drawn(count: int):
    names = [f"node{index}" for index in range(count)]
    edges = [EdgeInfo("START", names[0], "")]
    for index, name in enumerate(names):
        edges += [EdgeInfo(name, names[(index + 1) % count], "next"), EdgeInfo(name, "END", "done")]
    assert len(parts(graph_svg(graph(tuple(edges))), "rect")) == count + 3


def test_mermaid_and_dot_mark_it_too():
    mermaid, dot = to_mermaid(graph_with_nodes(), LOOK), to_dot(graph_with_nodes(), LOOK)
    assert "worker ×2" in mermaid
    assert "linkStyle 0,3" in mermaid
    assert "class n2 current" in mermaid
    assert 'label="worker ×2", color="#0969da"' in dot
    assert 'label="advisor ×1", color="#bf8700", penwidth=4' in dot
    assert dot.count("penwidth=3") == 2
    assert "classDef" not in to_mermaid(graph_with_nodes())


def graph_with_nodes() -> GraphInfo:
    from hitl_tui.engine.description import NodeInfo

    nodes = tuple(NodeInfo(name, ("*",), ("*",)) for name in ("worker", "advisor"))
    return GraphInfo("g", nodes, ADVISOR, (), ())
