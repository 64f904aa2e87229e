"""Prints the named graphs in 24, 40 and 60 columns, to be looked at.

python -m tests.tools.draw_graphs [NAME ...] [--height ROWS] [--svg FOLDER]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from hitl_tui.engine.graph.description import EdgeInfo, GraphInfo, NodeInfo
from hitl_tui.engine.graph.drawing import RunMarks
from hitl_tui.loading.sources import open_graph
from hitl_tui.stores import MemoryCheckpointer
from hitl_tui.view.graph_text import Picture, draw, text_layout

WORKFLOWS = ("sequential", "advisor", "debate", "supervisor", "planner")
WIDTHS = (24, 40, 60)


def graph(name: str, *ways: str) -> GraphInfo:
    """A graph of "a > b" and "a > b: label"."""
    edges = []
    for way in ways:
        path, _, label = way.partition(": ")
        source, target = path.split(" > ")
        edges.append(EdgeInfo(source, target, label))
    names = dict.fromkeys(name for edge in edges for name in (edge.source, edge.target))
    nodes = tuple(NodeInfo(one, ("*",), ("*",)) for one in names if one not in ("START", "END"))
    return GraphInfo(name, nodes, tuple(edges), (), ())


def fan_out(count: int = 8) -> GraphInfo:
    """A node that leads to many, all of which lead to one."""
    middle = [f"work_{index}" for index in range(1, count + 1)]
    ways = [f"split > {name}" for name in middle] + [f"{name} > join" for name in middle]
    return graph(f"fan-out of {count}", "START > split", *ways, "join > END")


def routed(count: int = 8) -> GraphInfo:
    """A router to many, all of which come back."""
    middle = [f"work_{index}" for index in range(1, count + 1)]
    ways = [f"desk > {name}: {name}" for name in middle] + [f"{name} > desk" for name in middle]
    return graph(f"router of {count}", "START > desk", *ways, "desk > END: done")


def nested_loops() -> GraphInfo:
    """A loop inside another one."""
    return graph(
        "two nested loops",
        "START > plan", "plan > write", "write > check", "check > write: again",
        "check > judge: fine", "judge > plan: replan", "judge > END: done",
    )  # fmt: skip


def side_by_side() -> GraphInfo:
    """Two branches of two nodes each, with a way out and a way back."""
    return graph(
        "branches",
        "START > sort", "sort > bill: invoice", "sort > help: question", "bill > pay", "help > reply",
        "pay > close", "reply > close", "reply > sort: wrong desk", "close > END",
    )  # fmt: skip


def forty() -> GraphInfo:
    """Eight stages of a few nodes each with loops, shortcuts and a common end: 40 nodes."""
    ways = ["START > s0_in"]
    for stage in range(8):
        at = f"s{stage}"
        ways += [f"{at}_in > {at}_a: left", f"{at}_in > {at}_b: right"]
        ways += [f"{at}_a > {at}_check", f"{at}_b > {at}_check"]
        ways += [f"{at}_check > {at}_in: again", f"{at}_check > {at}_out: ok"]
        ways += [f"{at}_out > s{stage + 1}_in" if stage < 7 else f"{at}_out > END"]
        ways += [f"{at}_check > END: stop"] if stage in (2, 5) else []
    return graph("forty nodes", *ways)


def named_graphs() -> dict[str, GraphInfo]:
    """All graphs that people look at."""
    graphs = {name: open_graph(name, MemoryCheckpointer(), {}).graph.info for name in WORKFLOWS}
    more = (fan_out(), routed(3), routed(), nested_loops(), side_by_side(), forty())
    return graphs | {info.name: info for info in more}


def text(picture: Picture) -> str:
    """The characters of a picture."""
    return "\n".join("".join(piece for piece, _ in row).rstrip() for row in picture.rows)


def main() -> None:
    """Print them, or write them as SVG."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--height", type=int, default=400)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--width", type=int, action="append")
    options = parser.parse_args()
    for name, info in named_graphs().items():
        if options.names and name not in options.names:
            continue
        if options.svg:
            from hitl_tui.view.graph_svg import graph_svg

            (options.svg / f"{name.replace(' ', '-')}.svg").write_text(graph_svg(info), encoding="utf-8")
            continue
        names = [node.name for node in info.nodes]
        visits = {name: at + 1 for at, name in enumerate(names) if at % 2}
        look = RunMarks(
            names[1], visits, frozenset((e.source, e.target) for e in info.edges[:2]), {names[0]: ""}
        )
        for width in options.width or WIDTHS:
            text_layout.cache_clear()
            started = time.perf_counter()
            picture = draw(info.edges, names, look, width, options.height)
            took = (time.perf_counter() - started) * 1000
            crossings = picture.layout.crossings if picture.layout else "list,"
            print(f"\n{name}, {width} columns: {crossings} crossings, {took:.1f} ms\n{'=' * width}")
            print(text(picture))


if __name__ == "__main__":
    main()
