"""A text beside its versions: which one it is compared with, and how the two stand."""

from __future__ import annotations

from itertools import pairwise

import pytest

from hitl_tui import END, START, Channel, Gate, GateChoice, GraphRunner, MemoryCheckpointer, StateGraph
from tests.ui.harness import live

BASE = "A closure is a function together with the names it can see. "
DRAFTS = [BASE + "It keeps a jar.", BASE + "It keeps a lunch.", BASE + "It keeps a packed lunch."]


def thrice() -> GraphRunner:
    """A graph that writes three drafts, and asks about the last one."""
    graph = StateGraph({"draft": Channel("")}, name="thrice")
    for number, draft in enumerate(DRAFTS, 1):
        graph.add_node(f"write{number}", lambda state, draft=draft: {"draft": draft})
    graph.add_node("judge", lambda state: {})
    places = [START, "write1", "write2", "write3", "judge", END]
    for before, after in pairwise(places):
        graph.add_edge(before, after)
    ask = Gate("judge", title="Is it good?", subject="draft", choices=[GateChoice("approve", "take it", "a")])
    return graph.compile(checkpointer=MemoryCheckpointer(), interrupt_after=[ask])


@pytest.mark.slow
async def test_older_and_newer_versions_are_side_by_side_and_w_merges_them():
    async with live(thrice(), inputs={}, size=(200, 60)) as it:
        await it.press("c")
        await it.shows("WAITING")
        await it.shows("Is it good?", "undoes it", "draft, side by side")
        await it.shows("step 2, by write2", "step 3, by write3")
        await it.press("{")
        await it.shows("step 1, by write1", "step 3, by write3", "a jar")
        await it.press("}")
        await it.shows("step 2, by write2")
        await it.gone("a jar")
        await it.press("w")
        await it.gone("side by side")
        await it.press("{")
        await it.shows("draft, since step 1")
        await it.press("}")
        await it.gone("since step 1")
        await it.press("w")
        await it.shows("draft, side by side")


PARAGRAPHS = [
    "A closure is a function together with the names that it can see where it was written.",
    "In a kitchen you might say that a recipe is a function which remembers its kitchen.",
    "This matters because functions travel, and the place that made them is gone by then.",
]


def moving() -> GraphRunner:
    """A graph whose second draft has the last paragraph of the first one in front."""
    drafts = ["\n\n".join(PARAGRAPHS), "\n\n".join([PARAGRAPHS[2], *PARAGRAPHS[:2]])]
    graph = StateGraph({"draft": Channel("")}, name="moving")
    for number, draft in enumerate(drafts, 1):
        graph.add_node(f"write{number}", lambda state, draft=draft: {"draft": draft})
    for before, after in pairwise([START, "write1", "write2", END]):
        graph.add_edge(before, after)
    ask = Gate(
        "write2", title="Is it good?", subject="draft", choices=[GateChoice("approve", "take it", "a")]
    )
    return graph.compile(checkpointer=MemoryCheckpointer(), interrupt_after=[ask])


@pytest.mark.parametrize(
    "size",
    [
        pytest.param((80, 24), id="80x24"),
        pytest.param((120, 40), marks=pytest.mark.slow, id="120x40"),
        pytest.param((200, 60), marks=pytest.mark.slow, id="200x60"),
    ],
)
@pytest.mark.slow
async def test_card_and_value_show_a_moved_paragraph(
    size: tuple[int, int],
):
    async with live(moving(), inputs={}, size=size) as it:
        await it.press("c")
        await it.shows("WAITING", "Is it good?", "1 paragraph moved up since step 1")
        pane = it.run.query_one("#value")
        value = it.text().splitlines()[pane.region.y : pane.region.bottom]
        rows = [row[pane.region.x : pane.region.right] for row in value]
        assert any("↑ moved up" in row for row in rows), rows
        assert not any(row.lstrip("│ ").startswith(("+ ", "- ")) for row in rows), rows
