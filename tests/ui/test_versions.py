"""A text beside its versions: which one it is compared with, and how the two stand."""

from __future__ import annotations

from itertools import pairwise

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


async def test_older_and_newer_versions_stand_beside_the_text_and_w_puts_both_in_one():
    async with live(thrice(), inputs={}, size=(200, 60)) as it:
        await it.press("c")
        await it.shows("WAITING")
        await it.press("d")
        await it.shows("Is it good?", "takes it back", "draft, side by side")
        await it.shows("step 2, by write2", "step 3, by write3")
        await it.press("{")
        await it.shows("step 1, by write1", "step 3, by write3", "a jar")
        await it.press("}")
        await it.shows("step 2, by write2")
        await it.gone("a jar")
        await it.press("w")
        await it.gone("side by side")
        await it.press("w")
        await it.shows("draft, side by side")
