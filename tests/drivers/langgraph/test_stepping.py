"""A compiled LangGraph graph is stepped, asked, answered, and opened again from its checkpoints alone."""

from __future__ import annotations

from typing import Any

from hitl_tui.engine.commands import Answer, Start
from tests.drivers.langgraph.conftest import Hubs
from tests.drivers.langgraph.flows import asking


async def _to_the_question(hubs: Hubs, graph: Any, mirror: str = "memory:") -> Any:
    watcher = await hubs.watch(graph, mirror=mirror)
    assert await watcher.driver.execute(Start({"items": ["in"]}, actor="ann")) == 0
    await watcher.check()
    await watcher.step()
    assert (await watcher.check()).progress.next_node == "work"
    await watcher.run()
    return watcher


async def test_each_task_of_a_superstep_is_reduced_in_its_order(saver: Any, hubs: Hubs) -> None:
    watcher = await _to_the_question(hubs, asking(saver))
    updates = (await watcher.driver.updates(0, 2))[2]
    assert [(each.path, each.reducer, each.update, len(each.after)) for each in updates] == [
        ("work[0]", "operator.add", ["work 0"], 3),
        ("work[1]", "operator.add", ["work 1"], 4),
    ]


async def test_a_question_is_answered_and_the_run_continues(saver: Any, hubs: Hubs) -> None:
    graph = asking(saver)
    watcher = await _to_the_question(hubs, graph)
    (request,) = (await watcher.check()).progress.pending
    assert (request.node, request.payload) == ("ask", "is it good?")
    await watcher.driver.execute(Answer(request.id, "yes", request.step, "ann"))
    await watcher.run()
    view = await watcher.check()
    assert (view.progress.status, view.progress.reason) == ("completed", "end")
    theirs = graph.get_state({"configurable": {"thread_id": "t"}}).values
    assert dict(await watcher.driver.state_at(3)) == theirs
    assert theirs["items"][-1] == "yes"


async def test_a_mirror_made_of_the_checkpoints_alone_is_the_same(saver: Any, hubs: Hubs) -> None:
    graph = asking(saver)
    watcher = await _to_the_question(hubs, graph)
    again = await hubs.watch(graph)
    assert again.view.values == watcher.view.values
    assert [step.origin for step in again.view.checkpoints] == [
        step.origin for step in watcher.view.checkpoints
    ]
    assert again.view.progress.pending[0].id == watcher.view.progress.pending[0].id
    assert (await again.driver.check("log", lambda _done, _all: None)).mismatches == ()


async def test_another_process_continues_from_the_existing_mirror(saver: Any, hubs: Hubs) -> None:
    graph = asking(saver)
    await _to_the_question(hubs, graph, "mirror.db")
    await hubs.close()
    again = await hubs.watch(graph, mirror="mirror.db")
    (request,) = again.view.progress.pending
    await again.driver.execute(Answer(request.id, "yes", request.step, "bob"))
    await again.run()
    assert (await again.check()).progress.status == "completed"
