"""On a high screen no pane stands empty: what went before fills the rows that the shown step leaves."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.lines import LineView
from tests.ui.harness import Screen, live


def scored() -> GraphRunner:
    """Twelve steps with a number, a list that grows, and a private text."""

    def score(state: Any) -> dict[str, Any]:
        n = state["n"] + 1
        return {"n": n, "score": n / 10, "facts": [f"fact {n} of a source"]}

    channels = {
        "n": Channel(0),
        "score": Channel(0.0),
        "facts": Channel([], reducer="extend"),
        "token": Channel("sesame " * 9, visibility="private"),
    }
    graph = StateGraph(channels, name="scores")
    graph.add_node("score", score).add_edge(START, "score")
    graph.add_conditional_edge("score", lambda state: str(state["n"] < 12), {"True": "score", "False": END})
    return graph.compile(checkpointer=MemoryCheckpointer())


def filled(it: Screen, name: str) -> float:
    """The share of a pane's rows that say something."""
    pane = it.run.query_one(f"#{name}", LineView)
    rows = range(pane.scrollable_content_region.height)
    said = sum(bool("".join(span.text for span in pane.visible_row(y).line).strip()) for y in rows)
    return said / len(rows)


async def test_a_short_value_has_its_versions_and_the_long_values_below_it():
    async with live(scored(), inputs={}, size=(200, 60)) as it:
        await it.press("c")
        await it.shows("step 12")
        it.run.query_one(ChannelsPane).select("score", picked=True)
        await it.shows(
            "versions, newest first", "12  score  1.2", " 3  score  0.3", "── facts ──", "fact 7 of"
        )
        assert "sesame" not in it.text()
        await it.press("[")
        await it.shows("Channels at step 11")
        await it.gone("12  score  1.2")
        await it.shows("11  score  1.1")


async def test_the_changes_of_earlier_steps_stand_below_those_of_the_shown_one():
    async with live(scored(), inputs={}, size=(200, 60)) as it:
        await it.press("c")
        await it.shows("What step 12 changed", "step 11  score", "1.0 → 1.1")
        await it.press("[")
        await it.shows("What step 11 changed", "step 10  score")
        await it.gone("step 11  score")


@pytest.mark.parametrize("channel", ["n", "score", "facts"])
async def test_no_pane_is_emptier_than_seven_rows_of_ten(channel: str):
    async with live(scored(), inputs={}, size=(200, 60)) as it:
        await it.press("c")
        await it.shows("step 12")
        it.run.query_one(ChannelsPane).select(channel, picked=True)
        for name in ("graph", "channels", "value", "lens"):
            await it.until(lambda name=name: filled(it, name) >= 0.3, f"{name} being filled")


async def test_a_lower_screen_has_the_shown_step_alone():
    async with live(scored(), inputs={}, size=(200, 40)) as it:
        await it.press("c")
        await it.shows("step 12")
        it.run.query_one(ChannelsPane).select("score", picked=True)
        await it.shows("What step 12 changed", "score")
        assert "versions, newest first" not in it.text()
        assert "step 11  score" not in it.text()
