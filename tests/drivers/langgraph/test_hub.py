"""Threads of a LangGraph graph are started from the list of them."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.langgraph.discovery import sync_threads
from hitl_tui.drivers.langgraph.sizes import UPKEEP_REFUSAL
from hitl_tui.engine.commands import Start
from hitl_tui.errors import UsageError
from hitl_tui.stores.deletion import DeletionPlan, Retention
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


@pytest.mark.parametrize("as_node", [None, "plan", "work", "ask", "__start__"])
@pytest.mark.parametrize("values", [{"items": ["x"], "n": 2}, None])
async def test_a_thread_that_was_only_edited_is_listed_and_opened(
    saver: Any, hubs: Hubs, as_node: str | None, values: dict[str, Any] | None
) -> None:
    graph = asking(saver)
    graph.update_state({"configurable": {"thread_id": "t"}}, values, as_node)
    hub = hubs.over(graph)
    await sync_threads(hub.mirror)
    assert [(row.info.thread_id, row.head) for row in await hub.threads()] == [("t", 0)]
    watcher = await Watcher.open(await hub.begin("t", "ann", at_once=True))
    following = dict.fromkeys(graph.get_state({"configurable": {"thread_id": "t"}}).next)
    assert (await watcher.check()).progress.next_node == ("+".join(following) or "END")


async def test_an_input_that_no_node_has_read_is_no_step_yet(saver: Any, hubs: Hubs) -> None:
    graph = asking(saver)
    graph.update_state({"configurable": {"thread_id": "t"}}, {"items": ["x"]}, "__input__")
    hub = hubs.over(graph)
    await sync_threads(hub.mirror)
    assert await hub.threads() == ()
    assert (await Watcher.open(await hub.begin("t", "ann"))).view.progress.head == -1


async def test_deleting_a_thread_leaves_langgraphs_checkpoints(saver: Any, hubs: Hubs) -> None:
    hub = hubs.over(asking(saver))
    await (await Watcher.open(await hub.begin("t"))).driver.execute(Start({"items": ["in"]}, actor="ann"))
    assert hub.upkeep_refusal == UPKEEP_REFUSAL
    for what in (["t"], Retention(older_than=0)):
        with pytest.raises(UsageError) as refused:
            await hub.plan_deletion(what, force=True)
        assert refused.value.hint == UPKEEP_REFUSAL
    with pytest.raises(UsageError):
        await hub.delete(DeletionPlan(()), actor="ann", note=None, on_batch=bool)
    with pytest.raises(UsageError):
        await hub.vacuum()
    assert [row.info.thread_id for row in await hub.threads()] == ["t"]
    assert [size.thread_id for size in (await hub.sizes())[0]] == ["t"]
