"""The picture of a graph as SVG, and the way of a thread in all its pictures."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET

import pytest

from hitl_tui.engine.graph.description import EdgeInfo, GraphInfo
from hitl_tui.engine.graph.drawing import RunMarks, to_dot, to_mermaid
from hitl_tui.view.graph_svg import graph_svg

ADVISOR = (
    EdgeInfo("START", "worker", ""),
    EdgeInfo("worker", "advisor", ""),
    EdgeInfo("advisor", "END", "approved"),
    EdgeInfo("advisor", "worker", "revise"),
)
LOOK = RunMarks(
    "advisor", {"worker": 2, "advisor": 1}, frozenset({("START", "worker"), ("advisor", "worker")})
)


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


def test_the_path_of_a_thread_is_marked():
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
@pytest.mark.slow
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
    from hitl_tui.engine.graph.description import NodeInfo

    nodes = tuple(NodeInfo(name, ("*",), ("*",)) for name in ("worker", "advisor"))
    return GraphInfo("g", nodes, ADVISOR, (), ())


def composed() -> GraphInfo:
    """START -> scan (a map) -> review (a parallel of two) -> team (a subgraph, the advisor's) -> END."""
    from hitl_tui.engine.graph.description import NodeInfo

    free = ("*",), ("*",)
    members = tuple(NodeInfo(name, *free) for name in ("facts", "style"))
    nodes = (
        NodeInfo("scan", *free, kind="map", over="plan.steps", join="quorum(2)"),
        NodeInfo("review", *free, kind="parallel", join="all", members=members),
        NodeInfo("team", *free, kind="subgraph", graph=graph_with_nodes()),
    )
    names = ["START", *(node.name for node in nodes), "END"]
    edges = tuple(EdgeInfo(one, two, "") for one, two in itertools.pairwise(names))
    return GraphInfo("all", nodes, edges, (), ())


def boxes(svg: str) -> list[tuple[float, ...]]:
    """Left, top, width and height of each box."""
    root = ET.fromstring(svg)
    found = [one for one in root.iter("{http://www.w3.org/2000/svg}rect") if "node" in one.get("class", "")]
    return [tuple(float(one.get(name, "0")) for name in ("x", "y", "width", "height")) for one in found]


def test_each_kind_of_node_has_its_own_shape():
    svg = graph_svg(composed())
    start, back, between, scan, review, team, inner, end = boxes(svg)
    assert scan[0] < between[0] < back[0]  # a stack
    assert scan[1] > between[1] > back[1]
    assert {start[2], scan[2], review[2], team[2], end[2]} == {scan[2]}
    assert (inner[0] - team[0], team[2] - inner[2]) == (4, 8)  # a double border
    sides = [way for way in parts_of(svg, "path") if "inner" in way]
    assert len(sides) == 2
    words = [text for _, text in parts(svg, "text")]
    assert {"each of plan.steps, quorum(2)", "facts, style at once", "graph g"} <= set(words)
    assert "worker" not in words


def test_expanded_it_shows_what_is_inside_and_the_way_taken_there():
    look = RunMarks("END", {"team": 1}, inside={"team": LOOK})
    svg = graph_svg(composed(), look, expand=True)
    words = [text for _, text in parts(svg, "text")]
    assert {"facts", "style", "worker", "▶ advisor", "×2"} <= set(words)
    assert sum("taken" in kind and "edge" in kind for kind, _ in parts(svg, "path")) == 2
    within = [box for box in boxes(svg) if box[3] > 200]
    assert len(within) == 2  # the subgraph's, with its double border, is as high as what it holds


def test_mermaid_and_dot_mark_what_happened_inside_too():
    look = RunMarks("END", {"team": 1}, inside={"team": LOOK})
    mermaid, dot = to_mermaid(composed(), look), to_dot(composed(), look, expand=True)
    assert 'n3_1["worker ×2"]' in mermaid
    assert "class n3_1,n3 visited" in mermaid
    assert "class n3_2,n4 current" in mermaid
    assert "linkStyle 0,3 stroke" in mermaid  # those inside come first
    assert "subgraph cluster_n3 {" in dot
    assert 'label="team: g ×1"; peripheries=2; color="#0969da"; penwidth=2;' in dot
    assert "n2_1 -> n3_0 [ltail=cluster_n2, lhead=cluster_n3];" in dot


def parts_of(svg: str, kind: str) -> list[str]:
    return [name for name, _ in parts(svg, kind)]
