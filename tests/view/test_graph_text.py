"""The picture of a graph as text."""

from __future__ import annotations

import itertools

import pytest

from hitl_tui.engine.graph.description import EdgeInfo, NodeKind
from hitl_tui.engine.graph.drawing import RunMarks
from hitl_tui.view.graph_layout import run_order
from hitl_tui.view.graph_text import Picture, draw

ADVISOR = [
    EdgeInfo("START", "worker", ""),
    EdgeInfo("worker", "advisor", ""),
    EdgeInfo("advisor", "END", "approved"),
    EdgeInfo("advisor", "worker", "revise"),
]


def text(picture: Picture) -> str:
    return "\n".join("".join(piece for piece, _ in row).rstrip() for row in picture.rows)


def test_nodes_are_in_the_order_of_the_run():
    assert run_order(ADVISOR) == ["START", "worker", "advisor", "END"]


def test_no_count_is_placed_at_an_edge_or_at_the_end():
    edges = [
        EdgeInfo("START", "assistant", ""),
        EdgeInfo("assistant", "tools", "tools"),
        EdgeInfo("assistant", "END", "END"),
        EdgeInfo("tools", "assistant", ""),
    ]
    rows = text(draw(edges, [], RunMarks("END", {"assistant": 2, "tools": 1}), 40, 40)).splitlines()
    (counted,) = [row for row in rows if "×1" in row]
    assert "END" not in counted
    assert "×1╯" in counted


def test_boxes_where_there_is_room():
    look = RunMarks("advisor", {"worker": 2, "advisor": 2}, frozenset({("worker", "advisor")}))
    assert text(draw(ADVISOR, [], look, 26, 30)) == "\n".join(
        [
            "    START",
            "      │",
            " ╭────▼────╮",
            " │ worker  │◀──╮",
            " ╰────┬────╯   │",
            "   ×2 │        │ revise",
            " ╭────▼────╮   │",
            " │▶advisor ├───╯",
            " ╰────┬────╯",
            "   ×2 │ approved",
            "     END",
        ]
    )


def test_a_box_without_an_outgoing_edge_is_whole():
    look = RunMarks(visits={"worker": 2})
    assert text(draw([EdgeInfo("START", "worker", "")], [], look, 26, 30)) == "\n".join(
        ["    START", "      │", " ╭────▼───╮", " │ worker │", " ╰────────╯", "   ×2"]
    )


def test_parallel_nodes_are_side_by_side_if_there_is_room_and_share_a_lane_back():
    edges = [EdgeInfo("START", "manager", ""), EdgeInfo("manager", "researcher", "researcher")]
    edges += [EdgeInfo("researcher", "manager", ""), EdgeInfo("manager", "writer", "writer")]
    edges += [EdgeInfo("writer", "manager", ""), EdgeInfo("manager", "END", "DONE")]
    look = RunMarks("writer", {"manager": 3, "researcher": 2}, breakpoints={"manager": True})
    assert text(draw(edges, [], look, 40, 30)) == "\n".join(
        [
            "                 START",
            "                   │",
            "            ╭──────▼─────╮",
            "            ● manager    │◀───────────╮",
            "            ╰──────┬─────╯            │",
            "                ×3 │                  │",
            "  ╭────────┬───────┴───────╮          │",
            "  │        │ researcher    │ writer   │",
            "  │ ╭──────▼─────╮  ╭──────▼─────╮    │",
            "  │ │ researcher │  │▶writer     ├────┤",
            "  │ ╰──────┬─────╯  ╰────────────╯    │",
            "  │     ×2 │                          │",
            "  │        ╰──────────────────────────╯",
            "  │ DONE",
            " END",
        ]
    )


def test_one_row_a_node_where_it_is_low():
    shown = text(draw(ADVISOR, [], RunMarks("advisor"), 26, 8))
    assert "▶ advisor" in shown
    assert "╭" not in shown.splitlines()[0]
    assert len(shown.splitlines()) == 7


def test_a_breakpoint_is_shown_left_of_a_row():
    look = RunMarks("advisor", {"worker": 1}, breakpoints={"worker": True, "advisor": False})
    rows = text(draw(ADVISOR, [], look, 26, 8)).splitlines()
    assert rows[2].startswith("●● worker ×1")
    assert rows[4].startswith("○▶ advisor")


def test_a_loop_on_one_node_is_drawn():
    edges = [EdgeInfo("START", "a", ""), EdgeInfo("a", "a", "again"), EdgeInfo("a", "END", "ok")]
    assert "◀" in text(draw(edges, [], RunMarks(), 24, 20))


def test_a_list_where_the_lanes_do_not_fit():
    edges = [EdgeInfo("START", "hub", "")]
    for name in (f"{letter}_with_a_long_name" for letter in "abcdefghij"):
        edges += [EdgeInfo("hub", name, name), EdgeInfo(name, "hub", "")]
    picture = draw(edges, [], RunMarks("hub"), 20, 30)
    assert picture.plain
    assert "▶ hub" in text(picture)


@pytest.mark.parametrize("count", [1, 5, 60, 200])
@pytest.mark.parametrize("width", [10, 24, 60])
def test_any_graph_keeps_to_its_width(count: int, width: int):
    names = [f"node{index}" for index in range(count)]
    edges = [EdgeInfo("START", names[0], "")]
    for index, name in enumerate(names):
        edges.append(EdgeInfo(name, names[(index + 1) % count], "next"))
        edges.append(EdgeInfo(name, names[index // 2], "back"))
        edges.append(EdgeInfo(name, "END", "done"))
    picture = draw(edges, names, RunMarks(names[-1], dict.fromkeys(names, 3)), width, 30)
    assert all(len("".join(piece for piece, _ in row)) <= width for row in picture.rows)
    assert all(
        any(name[: width - 8] in "".join(p for p, _ in row) for row in picture.rows) for name in names[:3]
    )


def test_maps_parallels_and_subgraphs_have_frames_of_their_own():
    names = ["START", "scan", "review", "team", "END"]
    edges = [EdgeInfo(one, two, "") for one, two in itertools.pairwise(names)]
    edges.append(EdgeInfo("team", "scan", "again"))
    kinds: dict[str, NodeKind] = {"scan": "map", "review": "parallel", "team": "subgraph"}
    assert text(draw(edges, [], RunMarks("team"), 30, 30, kinds=kinds)) == "\n".join(
        [
            "    START",
            "      │",
            " ╭────▼───╮╮",
            " │ scan   ││◀──╮",
            " ╰────┬───╯╯   │",
            "      │        │",
            " ┎────▼───┒    │",
            " ┃ review ┃    │ again",
            " ┖────┬───┚    │",
            "      │        │",
            " ╔════▼═══╗    │",
            " ║▶team   ╟────╯",
            " ╚════╤═══╝",
            "      │",
            "     END",
        ]
    )
    low = text(draw(edges, [], RunMarks("team"), 30, 9, kinds=kinds))
    assert [word in low for word in ("scan map", "review parallel", "team subgraph")] == [True] * 3
