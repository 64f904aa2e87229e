"""On a high screen no pane stands empty: what went before fills the rows that the shown step leaves."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.stream import StreamPane
from hitl_tui.view.spans import plain_text
from hitl_tui.workflows.demo import TASK, build
from tests.ui.harness import live, nothing_is_empty


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


@pytest.mark.slow
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


@pytest.mark.slow
async def test_changes_of_earlier_steps_are_shown_below_those_of_the_shown_step():
    async with live(scored(), inputs={}, size=(200, 60)) as it:
        await it.press("c")
        await it.shows("What step 12 changed", "step 11  score", "1.0 → 1.1")
        await it.press("[")
        await it.shows("What step 11 changed", "step 10  score")
        await it.gone("step 11  score")


@pytest.mark.slow
async def test_no_pane_is_emptier_than_seven_rows_of_ten_after_many_steps():
    async with live(scored(), inputs={}, size=(200, 60)) as it:
        await it.press("c")
        await it.shows("step 12")
        for channel in ("n", "score", "facts"):
            it.run.query_one(ChannelsPane).select(channel, picked=True)
            await nothing_is_empty(it)


@pytest.mark.slow
async def test_none_of_the_smallest_loop_before_its_first_step_after_it_and_at_its_end():
    graph = importlib.import_module("sample_graphs.counter").graph
    async with live(
        graph.compile(checkpointer=MemoryCheckpointer()), inputs={"limit": 3}, size=(200, 60)
    ) as it:
        await it.shows("READY", "counter.py:16 in increment(state)", "── reads", "where to stop. number")
        await nothing_is_empty(it)
        await it.press("s")
        await it.shows("step 1")
        await nothing_is_empty(it)
        await it.press("c")
        await it.shows("DONE")
        await nothing_is_empty(it)


@pytest.mark.slow
async def test_none_of_the_demo_at_rest_while_it_waits_on_its_card_and_at_its_end():
    runner = build(pace=0, checkpointer=MemoryCheckpointer())
    async with live(runner, inputs={"messages": [TASK]}, size=(200, 60)) as it:
        await it.shows("READY", "in work(state, config)", "in advise(state, config)")
        await nothing_is_empty(it)
        await it.press("s")
        await it.shows("step 1")
        await nothing_is_empty(it)
        await it.press("s")
        await it.shows("WAITING")
        await nothing_is_empty(it)
        await it.press("d")
        await it.shows("undoes it", "── the channels as declared")
        await nothing_is_empty(it, "channels", "value", "card", "timeline")
        await it.press("a")
        await it.shows("DONE")
        await nothing_is_empty(it)
        await it.press("[")
        await nothing_is_empty(it)


@pytest.mark.slow
async def test_none_while_a_node_takes_its_time_and_what_it_writes_is_followed_to_its_end():
    more, enough = threading.Event(), threading.Event()

    def write(state: Any, config: Any) -> dict[str, Any]:
        config.emit("the first line\n")
        more.wait(60)
        for n in range(100):
            config.emit(f"line {n}\n")
        enough.wait(60)
        return {"n": state["n"] + 1}

    graph = StateGraph({"n": Channel(0), "text": Channel("")}, name="slow").add_node("write", write)
    graph.add_edge(START, "write").add_edge("write", END)
    async with live(graph.compile(checkpointer=MemoryCheckpointer()), inputs={}, size=(200, 60)) as it:
        await it.press("c")
        await it.shows("RUNNING", "the first line", "── contract of write", "in write(state, config)")
        await nothing_is_empty(it)
        more.set()
        await it.shows("line 99")
        assert "── contract of write" not in it.text()
        enough.set()
        await it.shows("DONE")


@pytest.mark.slow
async def test_none_in_the_spotlight():
    async with live(scored(), inputs={}, size=(200, 60)) as it:
        await it.press("c")
        await it.shows("step 12")
        for pane in ("graph", "channels", "timeline", "value", "lens", "stream"):
            it.run.spotlight(pane)
            await nothing_is_empty(it, pane)
            it.run.spotlight("")
            await nothing_is_empty(it)


@pytest.mark.slow
async def test_the_graph_in_the_spotlight_has_below_it_what_is_declared_from_the_first_step_on():
    runner = build(pace=0, checkpointer=MemoryCheckpointer())
    async with live(runner, inputs={"messages": [TASK]}, size=(200, 60), ready="READY") as it:
        it.run.spotlight("graph")
        await it.shows("── the channels as declared", "── contract of worker", "── contract of advisor")
        await nothing_is_empty(it, "graph")
        await it.pilot.resize_terminal(120, 40)
        await it.gone("── contract of worker")


@pytest.mark.parametrize(
    "size",
    [pytest.param((200, 60), marks=pytest.mark.slow, id="200x60"), pytest.param((120, 40), id="120x40")],
)
@pytest.mark.slow
async def test_the_stream_in_the_spotlight_has_below_it_what_earlier_steps_wrote_and_what_they_changed(
    size: tuple[int, int],
):
    def say(state: Any, config: Any) -> dict[str, Any]:
        config.emit(f"counted to {state['n']}")
        return {"n": state["n"] + 1}

    graph = StateGraph({"n": Channel(0)}, name="says").add_node("say", say).add_edge(START, "say")
    graph.add_conditional_edge("say", lambda state: str(state["n"] < 9), {"True": "say", "False": END})
    runner = graph.compile(checkpointer=MemoryCheckpointer())
    runner.invoke({}, thread_id="t")
    async with live(runner, ready="DONE", size=size) as it:
        assert "counted to 7" not in it.text()
        it.run.spotlight("stream")
        await it.shows("counted to 8", "step 8  say", "counted to 7", "step 1  say", "counted to 0", "8 → 9")
        await nothing_is_empty(it, "stream")
        await it.press("[")
        await it.gone("counted to 8")
        await it.shows("counted to 7", "step 7  say", "7 → 8")
        it.run.spotlight("")
        await it.gone("counted to 6")


@pytest.mark.slow
async def test_a_short_search_result_leaves_room_for_the_steps_changes():
    async with live(scored(), inputs={}, size=(200, 60)) as it:
        await it.press("c")
        await it.shows("step 12")
        await it.press("/", *"fact 12")
        await it.shows("in 13 steps", "What step 12 changed", "step 11  score", "enter Go there")
        await nothing_is_empty(it, "search", "value", "lens", "stream")


@pytest.mark.slow
async def test_the_code_of_a_node_is_shown_below_its_output():
    graph = StateGraph({"n": Channel(0)}, name="says")

    def say(state: Any, config: Any) -> dict[str, Any]:
        config.emit("some words")
        return {"n": 1}

    runner = graph.add_node("say", say).add_edge(START, "say").add_edge("say", END)
    async with live(runner.compile(checkpointer=MemoryCheckpointer()), inputs={}, size=(200, 60)) as it:
        await it.press("c")
        await it.shows("DONE", "in say(state, config)")
        stream = it.run.query_one(StreamPane)
        lines = [plain_text(stream.line(row)) for row in range(4)]
        assert lines[:3] == ["say", "some words", ""]
        assert lines[3].endswith("in say(state, config)")


@pytest.mark.slow
async def test_without_the_graph_contracts_are_shown_instead_of_code():
    runner = scored()
    runner.invoke({}, thread_id="t")
    async with live(runner, ready="DONE", size=(200, 60)) as it:
        await it.shows("── contract of score", "step 12: wrote", "── the channels as declared")
        await nothing_is_empty(it)
        await it.press("E")
        await it.shows("no code of score is loaded")


@pytest.mark.slow
async def test_the_code_is_that_of_the_file_the_graph_was_loaded_from(tmp_path: Path):
    file = tmp_path / "steady.py"
    file.write_text("def read(state):\n    key = 'sk-abcdefghijklmnopqrstuvwx'\n    return {'n': 1}\n")
    space: dict[str, Any] = {}
    exec(compile(file.read_text(), file, "exec"), space)
    graph = StateGraph({"n": Channel(0)}, name="steady").add_node("read", space["read"])
    graph.add_edge(START, "read").add_edge("read", END)
    async with live(graph.compile(checkpointer=MemoryCheckpointer()), inputs={}, size=(200, 60)) as it:
        await it.shows("steady.py:1 in read(state)", "return {'n': 1}")
        assert "sk-abc" not in it.text()
        file.write_text("def read(state):\n    return {'n': 2}\n")
        await it.press("s")
        await it.shows("step 1", "return {'n': 1}")
        assert "{'n': 2}" not in it.text()


@pytest.mark.slow
async def test_at_the_steps_before_a_failure_the_rows_below_the_value_are_filled_too():
    graph = StateGraph({"n": Channel(1)}, name="fails").add_node("a", lambda state: {"n": 2})
    graph.add_node("b", lambda state: {"n": state["n"] / 0}).add_edge(START, "a").add_edge("a", "b")
    runner = graph.add_edge("b", END).compile(checkpointer=MemoryCheckpointer())
    async with live(runner, inputs={}, ready="READY", size=(200, 60)) as it:
        await it.press("c")
        await it.shows("Where b failed")
        await it.press("[")
        await it.shows("Channels at step 0")
        await nothing_is_empty(it, "value", "stream")


@pytest.mark.slow
async def test_at_120x40_a_value_of_one_word_leaves_its_rows_to_the_channels_and_a_long_one_takes_them_back():
    channels = {f"c{n}": Channel(n) for n in range(24)} | {"text": Channel("\n".join(["a line"] * 40))}
    graph = StateGraph(channels, name="many").add_node("a", lambda state: {"c0": 7})
    runner = graph.add_edge(START, "a").add_edge("a", END).compile(checkpointer=MemoryCheckpointer())
    async with live(runner, inputs={}, ready="READY") as it:
        await it.press("s")
        await it.shows("DONE")
        channels, value = it.run.query_one("#channels"), it.run.query_one("#value")
        it.run.query_one(ChannelsPane).select("c0", picked=True)
        await it.until(lambda: channels.size.height == 26, "all channels having a row")
        assert value.size.height < 5
        it.run.query_one(ChannelsPane).select("text", picked=True)
        await it.until(lambda: value.size.height > channels.size.height, "the text having its rows")


@pytest.mark.slow
async def test_a_lower_screen_has_the_shown_step_alone():
    async with live(scored(), inputs={}, size=(200, 40)) as it:
        await it.press("c")
        await it.shows("step 12")
        it.run.query_one(ChannelsPane).select("score", picked=True)
        await it.shows("What step 12 changed", "score")
        assert "versions, newest first" not in it.text()
        assert "step 11  score" not in it.text()
