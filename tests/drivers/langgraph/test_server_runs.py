"""Runs on a LangGraph server end in the state in which the server's own run ends them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

pytest.importorskip("langgraph", reason="the extra `langgraph` is not installed")

from hitl_tui.drivers.langgraph.hub import LangGraphHub
from hitl_tui.drivers.langgraph.server import ServerGraph
from hitl_tui.drivers.langgraph.server_names import SERVER
from hitl_tui.engine.commands import Start
from hitl_tui.engine.log.events import NodeStarted, StepCommitted
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.errors import UsageError
from hitl_tui.stores import open_store
from tests.drivers.langgraph.final_states import by_langgraph, by_us
from tests.drivers.langgraph.graph_server import GraphServer, serving
from tests.drivers.langgraph.graphs_of_the_world import CASES, chain, note
from tests.support.watching import Watcher

THREAD = "11111111-2222-4333-8444-555555555555"
Run = Callable[[Watcher], Awaitable[Any]]


@contextmanager
def on_server(graph: Any) -> Iterator[tuple[GraphServer, ServerGraph]]:
    """A graph that is served, and as it is seen from here."""
    with serving(graph) as server:
        served = ServerGraph(server.url)
        try:
            yield server, served
        finally:
            served.close()


@asynccontextmanager
async def watching(server: GraphServer, store: Store, *, begins: bool = False) -> AsyncIterator[Watcher]:
    """A thread that a process of its own opens."""
    graph = ServerGraph(server.url)
    hub = LangGraphHub(graph, store, name="g", source={SERVER: server.url})
    try:
        driver = await (hub.begin(THREAD, "ann") if begins else hub.open(THREAD))
        yield await Watcher.open(driver)
    finally:
        await hub.close()
        graph.close()


def titles(view: Any) -> list[str]:
    return [request.title for request in view.progress.pending]


@pytest.mark.parametrize("run", [Watcher.run, Watcher.step], ids=["run", "step"])
async def test_a_stop_before_all_nodes_holds_though_no_drawing_shows_it(run: Run) -> None:
    store = open_store("memory:")
    with serving(chain({name: note(name) for name in "ab"}, interrupt_before="*")) as server:
        async with watching(server, store, begins=True) as watcher:
            await watcher.driver.execute(Start({"log": []}))
            view = await run(watcher)
            assert (titles(view), view.values["log"]) == (["stopped before a"], [])
            view = await run(watcher)
            assert (titles(view), view.values["log"]) == (["stopped before b"], ["a"])
        async with watching(server, store) as watcher:
            assert titles(await watcher.look()) == ["stopped before b"]
            view = await run(watcher)
            assert (view.progress.status, view.values["log"]) == ("completed", ["a", "b"])


ALL_WAYS = (
    "own memory", "own memory that asks", "stop before", "subgraph", "schemas", "private state", "entrypoint",
    "entrypoint that asks", "entrypoint that remembers", "state of one value",
)  # fmt: skip
ONE_RUN = (
    *ALL_WAYS, "chain", "stop after", "remaining steps", "recursion limit", "quiet change", "untracked",
    "failure",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "way"),
    [(name, way) for name in ALL_WAYS for way in ("step", "run")] + [(name, "headless") for name in ONE_RUN],
)
async def test_a_graph_on_a_server_ends_as_langgraph_ends_it(
    name: str, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES[name]
    with on_server(case.build()) as (_, served):
        assert await by_us(case._replace(build=lambda: served), way) == await by_langgraph(case)


async def test_an_unattended_run_is_one_run_of_the_server_and_each_superstep_is_shown_as_it_is_saved() -> (
    None
):
    with serving(chain({name: note(name) for name in "abc"})) as server:
        async with watching(server, open_store("memory:"), begins=True) as watcher:
            await watcher.driver.execute(Start({"log": []}, unattended=True))
            assert server.runs == []  # the run takes the input itself
            view = await watcher.run(unattended=True)
            assert (view.progress.status, view.values["log"]) == ("completed", ["a", "b", "c"])
            assert len(server.runs) == 1
            events = [
                (stamped.event.node, stamped.event.step)
                if isinstance(stamped.event, NodeStarted)
                else stamped.event.checkpoint.step
                for stamped in watcher.seen
                if isinstance(stamped.event, (NodeStarted, StepCommitted))
            ]
            await watcher.check()
    assert events == [0, ("a", 1), 1, ("b", 2), 2, ("c", 3), 3]


async def test_with_a_breakpoint_or_by_steps_the_input_is_a_step_of_its_own() -> None:
    with serving(chain({name: note(name) for name in "abc"})) as server:
        async with watching(server, open_store("memory:"), begins=True) as watcher:
            await watcher.driver.execute(Start({"log": []}, unattended=True))
            view = await watcher.run(breakpoints=(Breakpoint("before", "b"),), unattended=True)
            assert (view.progress.next_node, view.values["log"]) == ("b", ["a"])


async def test_a_graph_that_is_compiled_to_stop_after_all_nodes_stops_an_unattended_run() -> None:
    store = open_store("memory:")
    with serving(chain({name: note(name) for name in "ab"}, interrupt_after="*")) as server:
        async with watching(server, store, begins=True) as watcher:
            await watcher.driver.execute(Start({"log": []}, unattended=True))
            view = await watcher.run(unattended=True)
            assert (titles(view), view.values["log"]) == (["stopped before b"], ["a"])
        async with watching(server, store) as watcher:
            view = await watcher.run(unattended=True)
            assert (view.progress.status, view.values["log"]) == ("completed", ["a", "b"])


async def test_the_recursion_limit_of_a_graph_on_a_server_is_said_to_be_reached() -> None:
    with serving(CASES["recursion limit"].build()) as server:
        async with watching(server, open_store("memory:"), begins=True) as watcher:
            await watcher.driver.execute(Start({"log": []}, unattended=True))
            view = await watcher.run(unattended=True)
    assert (view.progress.status, view.progress.reason) == ("failed", "limit")


async def test_what_a_server_saved_is_shown_and_not_what_a_node_changed_in_place() -> None:
    with serving(CASES["quiet change"].build()) as server:
        async with watching(server, open_store("memory:"), begins=True) as watcher:
            await watcher.driver.execute(Start({"words": ["x"], "n": 0}))
            assert (await watcher.run()).values["words"] == ["x"]
            assert (await watcher.driver.check("log", lambda done, total: None)).mismatches == ()


async def test_an_entrypoint_on_a_server_asks_for_its_one_value_and_takes_no_other() -> None:
    with serving(CASES["entrypoint"].build()) as server:
        async with watching(server, open_store("memory:"), begins=True) as watcher:
            assert [field.name for field in (await watcher.driver.snapshot()).graph.inputs] == ["input"]
            with pytest.raises(UsageError, match="takes one input, 'input', not n"):
                await watcher.driver.execute(Start({"n": 3}))
