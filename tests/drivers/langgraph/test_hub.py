"""Threads of a LangGraph graph are begun from the list of them."""

from __future__ import annotations

from typing import Any

from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.commands import Start
from tests.drivers.langgraph.conftest import Hubs
from tests.drivers.langgraph.flows import asking
from tests.support.watching import Watcher


async def test_the_graph_is_known_and_begins_threads_that_nobody_has(saver: Any, hubs: Hubs) -> None:
    graph = asking(saver)
    hub: LocalHub = hubs.over(graph)
    (known,) = await hub.known_graphs()
    assert (known.name, known.origin) == ("graph", "the graph of these threads")
    first = await Watcher.open(await hub.start(known, "ann"))
    taken = f"{first.driver.thread_id.removesuffix('1')}2"
    graph.invoke({"items": ["theirs"]}, {"configurable": {"thread_id": taken}})
    await first.driver.execute(Start({"items": ["in"]}, actor="ann"))
    await first.run()
    assert (await first.check()).progress.pending
    second = await Watcher.open(await hub.start(known, "ann"))
    assert second.driver.thread_id == f"{taken.removesuffix('2')}3"
    assert second.view.progress.head == -1
    assert {row.info.thread_id for row in await hub.threads()} == {first.driver.thread_id, taken}
