"""What any picture of a graph keeps to: nodes, edges and labels once, nothing over anything else."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitl_tui.engine.graph.description import EdgeInfo, GraphInfo, NodeInfo
from hitl_tui.engine.graph.drawing import RunMarks
from hitl_tui.view.cells import cells
from hitl_tui.view.glyphs import plain_chars
from hitl_tui.view.graph_layout import EdgePath, Layout, Point
from hitl_tui.view.graph_svg import graph_svg
from hitl_tui.view.graph_text import Picture, draw, edge_labels, text_layout
from hitl_tui.view.graph_tracks import Link, Tracks
from tests.tools.draw_graphs import named_graphs

NAMES = (
    "sequential", "advisor", "debate", "supervisor", "planner", "fan-out of 8", "router of 3", "router of 8",
    "two nested loops", "branches", "forty nodes",
)  # fmt: skip
WIDTHS = (24, 40, 60)


@cache
def named() -> dict[str, GraphInfo]:
    return named_graphs()


@st.composite
def graphs(draw: st.DrawFn) -> GraphInfo:
    """Any graph that can be declared: every node is reached, routes carry keys."""
    count = draw(st.integers(1, 9))
    names = [f"n{index}" + "x" * draw(st.integers(0, 6)) for index in range(count)]
    edges = [EdgeInfo("START", names[0], "")]
    for at, name in enumerate(names[1:], 1):
        edges.append(
            EdgeInfo(names[draw(st.integers(0, at - 1))], name, draw(st.sampled_from(["", "go", "onward"])))
        )
    ends = st.tuples(st.sampled_from(names), st.sampled_from([*names, "END"]))
    for source, target in draw(st.lists(ends, max_size=12)):
        edges.append(EdgeInfo(source, target, draw(st.sampled_from(["", "x", "again", "by the way"]))))
    free = ("*",), ("*",)
    return GraphInfo("any", tuple(NodeInfo(name, *free) for name in names), tuple(edges), (), ())


def layouts(info: GraphInfo, width: int) -> list[Layout]:
    """Its layouts in boxes and in rows, where there are any."""
    names = tuple(node.name for node in info.nodes)
    found = [text_layout(info.edges, names, (), (), width, boxed=boxed) for boxed in (True, False)]
    return [layout for layout in found if layout is not None]


def line_cells(route: EdgePath) -> set[Point]:
    """All cells of an edge, its ends included."""
    points = set(route.points)
    for (x1, y1), (x2, y2) in itertools.pairwise(route.points):
        assert x1 == x2 or y1 == y2
        points |= {
            (x, y) for x in range(min(x1, x2), max(x1, x2) + 1) for y in range(min(y1, y2), max(y1, y2) + 1)
        }
    return points


def borders(info: GraphInfo, layout: Layout, name: str) -> set[Point]:
    box = layout.boxes[name]
    return {
        (x, y)
        for x in range(box.x, box.right + 1)
        for y in range(box.y, box.bottom + 1)
        if x in (box.x, box.right) or y in (box.y, box.bottom)
    }


def check(info: GraphInfo, layout: Layout, width: int) -> None:
    labels = edge_labels(info.edges)
    expected = {name for pair in labels for name in pair} | {node.name for node in info.nodes}
    assert set(layout.boxes) == expected
    assert [route.pair for route in layout.routes] == list(labels)
    assert layout.width <= width
    taken: dict[Point, str] = {}

    def occupy(at: Point, what: str) -> None:
        assert 0 <= at[0] < layout.width
        assert 0 <= at[1] < layout.height
        assert at not in taken, f"{what} over {taken[at]} at {at}"
        taken[at] = what

    for name, box in layout.boxes.items():
        for x in range(box.x, box.right + 1):
            for y in range(box.y, box.bottom + 1):
                occupy((x, y), f"box {name}")
    lines: set[Point] = set()
    for route in layout.routes:
        ends = {route.points[0], route.points[-1]}
        assert route.points[0] in borders(info, layout, route.source)
        assert route.points[-1] in borders(info, layout, route.target)
        assert not {at for at in line_cells(route) - ends if at in taken}, route
        lines |= line_cells(route) - ends
    for route in layout.routes:
        whole = labels[route.pair]
        assert route.label == whole or (route.label.endswith("…") and whole.startswith(route.label[:-1]))
        assert bool(route.label) == bool(whole)
        for by in range(cells(route.label)):
            at = route.label_at[0] + by, route.label_at[1]
            assert at not in lines, f"{route.label} over a line"
            occupy(at, f"label {route.label}")
    check_apart(layout)


def check_apart(layout: Layout) -> None:
    """Lines run along each other only where they begin or end at one node."""
    steps: dict[tuple[Point, Point], EdgePath] = {}
    for route in layout.routes:
        for (x1, y1), (x2, y2) in itertools.pairwise(route.points):
            dx, dy = (x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1)
            for by in range(abs(x2 - x1) + abs(y2 - y1)):
                one, other = sorted([(x1 + dx * by, y1 + dy * by), (x1 + dx * (by + 1), y1 + dy * (by + 1))])
                before = steps.setdefault((one, other), route)
                assert before.source == route.source or before.target == route.target, (before, route)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_named_graphs_are_boxes_without_a_crossing_and_with_whole_labels(name: str, width: int):
    info = named()[name]
    picture = draw(info.edges, [node.name for node in info.nodes], RunMarks(), width, 400)
    assert picture.layout is not None
    assert picture.layout == layouts(info, width - 1)[0]  # in boxes
    assert picture.layout.crossings == 0
    assert all(route.label == edge_labels(info.edges)[route.pair] for route in picture.layout.routes)
    for layout in layouts(info, width - 1):
        check(info, layout, width - 1)


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(8, 70))
@pytest.mark.slow
def test_boxes_and_lines_do_not_overlap(info: GraphInfo, width: int):
    for layout in layouts(info, width):
        check(info, layout, width)


@settings(max_examples=25, deadline=None)
@given(graphs(), st.sampled_from((10, 24, 40, 60)), st.sampled_from((6, 20, 400)))
@pytest.mark.slow
def test_a_picture_keeps_to_its_width_has_every_node_once_and_is_the_same_again(
    info: GraphInfo, width: int, height: int
):
    names = [node.name for node in info.nodes]
    look = RunMarks(names[-1], dict.fromkeys(names, 12), frozenset({("START", names[0])}), {names[0]: "x"})
    picture = draw(info.edges, names, look, width, height)
    rows = ["".join(piece for piece, _ in row) for row in picture.rows]
    assert all(cells(row) <= width for row in rows)
    assert "▶" in "".join(rows)
    assert set(picture.node_rows) >= set(names)
    if picture.layout is not None:
        on_rows = [rows[at] for name, at in picture.node_rows.items() if name in ("START", "END")]
        assert all("START" in row or "END" in row for row in on_rows)
    text_layout.cache_clear()
    assert draw(info.edges, names, look, width, height) == picture


@pytest.mark.parametrize("name", NAMES)
def test_both_painters_draw_the_same_edges_and_labels(name: str):
    info = named()[name]
    root = ET.fromstring(graph_svg(info))
    space = "{http://www.w3.org/2000/svg}"
    lines = [one for one in root.iter(f"{space}path") if one.get("class", "").startswith("edge")]
    labels = [one.text for one in root.iter(f"{space}text") if one.get("class") == "label"]
    picture = draw(info.edges, [node.name for node in info.nodes], RunMarks(), 60, 400)
    assert picture.layout is not None
    assert len(lines) == len(picture.layout.routes)
    assert sorted(map(str, labels)) == sorted(route.label for route in picture.layout.routes if route.label)


def test_the_list_has_every_edge_once():
    info = named()["planner"]
    picture = draw(info.edges, [node.name for node in info.nodes], RunMarks(), 12, 400)
    shown = lines_of(picture)
    assert picture.plain
    assert sum("→" in line for line in shown) == len(info.edges)
    assert [line.strip() for line in shown if "→" not in line] == [
        "START", "planner", "dispatcher", "researcher", "writer", "evaluator", "END",
    ]  # fmt: skip


def test_in_ascii_every_cell_stays_where_it_was():
    info = named()["planner"]
    for line in lines_of(draw(info.edges, [node.name for node in info.nodes], RunMarks("writer"), 40, 400)):
        plain = plain_chars(line, "ascii")
        assert plain.isascii()
        assert len(plain) == len(line)


def test_edges_that_change_places_between_two_layers_do_not_run_over_each_other():
    links = [Link("a", "c", 2, 8), Link("b", "d", 8, 2)]
    tracks = Tracks(links)
    one, other = (tracks.corners(link) for link in links)
    assert tracks.count == 3
    assert {len(one), len(other)} == {2, 4}  # one of them turns aside once more


def test_a_branch_that_is_crossed_by_none_stays_beside_the_others():
    info = named()["branches"]
    layout = layouts(info, 60)[0]
    assert layout.boxes["bill"].y == layout.boxes["help"].y
    assert layout.boxes["bill"].right < layout.boxes["help"].x
    assert layout.boxes["pay"].x == layout.boxes["bill"].x


def lines_of(picture: Picture) -> list[str]:
    return ["".join(piece for piece, _ in row).rstrip() for row in picture.rows]
