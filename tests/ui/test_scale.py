"""Large threads on screen: pages and windows everywhere, values fetched when they are shown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.drivers import reading
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.engine.log.records import Limits
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.graph import GraphPane
from tests.support import tape as tapes
from tests.ui.harness import Clock, Desk, booted

STEPS = 100_000


def large(nodes: int = 3, **channels: Channel) -> StateGraph:
    """A line of nodes; the first one fills what is large."""

    def fill(state: Any) -> dict[str, Any]:
        filled = {
            "text": "x" * 1_000_000 + "\n" * 5 + "words " * 700_000,
            "items": [{"n": n, "name": f"item {n}"} for n in range(50_000)],
        }
        return {name: value for name, value in filled.items() if name in state}

    graph = StateGraph({"n": Channel(0), **channels}, name="large")
    names = [f"node_{number}" for number in range(nodes)]
    for name in names:
        graph.add_node(name, fill if name == names[0] else lambda state: {"n": state["n"] + 1})
    for source, target in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(source, target)
    return graph


@asynccontextmanager
async def on_screen(runner: GraphRunner, thread: str = "t") -> AsyncIterator[Desk]:
    """The app on a real driver."""
    assert runner.store is not None
    hub = LocalHub(runner.store, lambda info: runner)

    async def open_driver() -> tuple[Hub, Driver]:
        return hub, await hub.new(thread, runner)

    app = HitlApp(AppStart(open_driver, "anna", None, False))
    async with booted(app) as pilot:
        it = Desk(app, pilot, None, Clock())  # type: ignore[arg-type]
        await it.until(lambda: app.run_screen is not None and app.run_screen.session is not None)
        yield it
        await hub.close()


@pytest.mark.slow
async def test_five_hundred_channels_are_scrolled_through():
    channels = {f"c{number}": Channel(number) for number in range(500)}
    async with on_screen(large(**channels).compile(checkpointer=MemoryCheckpointer())) as it:
        await it.press("s")
        await it.shows("node_1")
        it.run.query_one(ChannelsPane).focus()
        for _ in range(60):
            await it.press("pagedown")
        await it.until(lambda: it.run.query_one(ChannelsPane).selected == "c499")
        await it.shows("c499", "499")


@pytest.mark.parametrize(("channel", "seen"), [("text", "xxxxxxxx"), ("items", "item 0")])
@pytest.mark.slow
async def test_a_value_of_megabytes_is_shown_in_every_way(channel: str, seen: str):
    channels = {channel: Channel("" if channel == "text" else [], reducer="overwrite")}
    runner = large(**channels).compile(checkpointer=MemoryCheckpointer(), max_update_bytes=32_000_000)
    async with on_screen(runner) as it:
        await it.press("s")
        await it.shows("node_1 is next")
        it.run.query_one(ChannelsPane).select(channel)
        for key, mode in (("1", "text"), ("2", "diff"), ("3", "json")):
            await it.press(key)
            await it.shows(f"‹{mode}›", seen)
        await it.press("4")
        await it.shows("‹blame›", "1 node_0")
        await it.press("e")
        await it.shows("too large to edit here")
        await it.press("escape")
        await it.until(lambda: it.app.screen is it.run)


@pytest.mark.slow
async def test_a_graph_of_two_hundred_nodes_follows_the_run():
    async with on_screen(large(nodes=200).compile(checkpointer=MemoryCheckpointer())) as it:
        for number in range(1, 4):
            await it.press("s")
            await it.shows(f"node_{number} is next", f"Channels at step {number}")


@pytest.mark.slow
async def test_of_a_long_thread_only_pages_are_loaded():
    def tick(state: Any) -> dict[str, Any]:
        return {"n": state["n"] + 1}

    graph = StateGraph({"n": Channel(0)}, name="long")
    graph.add_node("tick", tick).add_edge(START, "tick")
    graph.add_conditional_edge("tick", lambda s: s["n"] < STEPS, {"true": "tick", "false": END})
    runner = graph.compile(checkpointer=MemoryCheckpointer(), limits=Limits(max_iterations=None))
    runner.invoke({}, thread_id="t")
    async with on_screen(runner) as it:
        await it.shows(f"Channels at step {STEPS}")
        assert len(it.session.view.checkpoints) <= 200
        await it.press("[")
        await it.shows(f"Channels at step {STEPS - 1}")
        await it.press("0", "[")
        await it.until(lambda: len(it.session.view.checkpoints) > 200)
        assert len(it.session.view.checkpoints) <= 500


@pytest.mark.slow
async def test_of_ten_thousand_threads_pages_are_fetched():
    asked: list[int] = []
    rows = [
        tapes.summary(f"thread-{number}", None, 0, 1, status="waiting", reason="approval")
        for number in range(10_000)
    ]

    class Many(LocalHub):
        async def threads(
            self, query: str = "", limit: int = 50, after: Any = None, *args: Any, **options: Any
        ) -> tuple[Any, ...]:
            asked.append(limit)
            begin = rows.index(after) + 1 if after else 0
            return tuple(row for row in rows[begin:] if query in row.info.thread_id)[:limit]

    runner = large().compile(checkpointer=MemoryCheckpointer())
    assert runner.store is not None
    hub = Many(runner.store, lambda info: runner)

    async def open_driver() -> tuple[Hub, Driver]:
        return hub, await hub.new("t", runner)

    app = HitlApp(AppStart(open_driver, "anna", None, False))
    async with booted(app) as pilot:
        it = Desk(app, pilot, None, Clock())  # type: ignore[arg-type]
        await it.until(lambda: app.run_screen is not None and app.run_screen.session is not None)
        await it.press("t")
        await it.shows("thread-0", "thread-20")
        for _ in range(12):
            await it.press("pagedown")
        await it.shows("thread-120")
        await it.press("/", *"9999")
        await it.shows("thread-9999")
        assert max(asked) <= 200
        await it.press("escape", "escape")
        await hub.close()


@pytest.mark.slow
async def test_a_channel_written_long_ago_says_so_and_is_rebuilt_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def tick(state: Any) -> dict[str, Any]:
        return {"n": state["n"] + 1, **({"text": "early"} if state["n"] in (0, 299) else {})}

    graph = StateGraph({"n": Channel(0), "text": Channel(""), "never": Channel("x")}, name="ticks")
    graph.add_node("tick", tick).add_edge(START, "tick")
    graph.add_conditional_edge("tick", lambda s: s["n"] < 300, {"true": "tick", "false": END})
    runner = graph.compile(checkpointer=MemoryCheckpointer(), limits=Limits(max_iterations=None))
    runner.invoke({}, thread_id="t")
    made: list[int] = []
    whole = reading.updates
    monkeypatch.setattr(
        reading, "updates", lambda *given, **named: made.append(given[2]) or whole(*given, **named)
    )
    async with on_screen(runner) as it:
        await it.shows("Channels at step 300")
        for channel in ("text", "never"):
            it.run.query_one(ChannelsPane).select(channel)
            await it.press("2")
            await it.shows(f"╭─ {channel} ", "unchanged since step 100 at least")
            await it.press("4")
            await it.shows("steps before 101 were not checked")
        assert made == [300]
        session = it.session
        while session.view.checkpoints[0].step > 150:
            await session.load_older()
        it.run.query_one(ChannelsPane).select("text")
        it.run.travel(("t", 150))
        await it.press("2")
        await it.shows("first written by tick at step 1")


@pytest.mark.slow
async def test_a_step_that_is_not_loaded_counts_its_nodes_and_says_which_one_came_next():
    graph = StateGraph({"n": Channel(0)}, name="long")
    graph.add_node("count", lambda state: {"n": state["n"] + 1}).add_node("look", lambda state: None)
    graph.add_edge(START, "count").add_edge("look", "count")
    graph.add_conditional_edge("count", lambda state: "look" if state["n"] < 150 else END, ["look", END])
    runner = graph.compile(checkpointer=MemoryCheckpointer(), limits=Limits(max_iterations=500))
    runner.invoke(thread_id="t")
    async with on_screen(runner) as it:
        for step in (99, 281):  # before the loaded ones, and among them
            it.run.travel(("t", step))
            pane = it.run.query_one(GraphPane)
            await it.until(lambda step=step: it.session.step_view.step == step)
            ran = {"count": step - step // 2, "look": step // 2}
            await it.until(lambda ran=ran, pane=pane: dict(pane._look.visits) == ran)
            assert pane._next == "look"
