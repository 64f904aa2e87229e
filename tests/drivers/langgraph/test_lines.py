"""The tree of a thread's checkpoints is shown as lines: the thread itself, and forks of it."""

from __future__ import annotations

import operator
from typing import Annotated, Any

import pytest
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from hitl_tui.engine.commands import Fork, Run, Start, Step, UpdateState
from hitl_tui.errors import StaleWriter
from hitl_tui.view.format import writer
from tests.drivers.langgraph.conftest import Hubs

CONFIG: Any = {"configurable": {"thread_id": "t"}}


class Words(TypedDict):
    words: Annotated[list[str], operator.add]
    last: str


def word(text: str) -> Any:
    def node(_state: Words) -> dict[str, Any]:
        return {"words": [text], "last": text}

    return node


def chain(saver: Any) -> Any:
    """Three nodes, one after the other."""
    graph = StateGraph(Words)
    for name in "abc":
        graph.add_node(name, word(name))
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    graph.add_edge("b", "c")
    graph.add_edge("c", END)
    return graph.compile(checkpointer=saver)


def _checkpoint(graph: Any, next_node: str) -> Any:
    """The config of the checkpoint before a node, the oldest of several."""
    states = [state for state in graph.get_state_history(CONFIG) if state.next == (next_node,)]
    return states[-1].config


async def test_a_replay_from_a_past_checkpoint_is_its_own_branch(saver: Any, hubs: Hubs) -> None:
    graph = chain(saver)
    graph.invoke({"words": []}, CONFIG)
    graph.invoke(None, _checkpoint(graph, "b"))
    watcher = await hubs.watch(graph)
    family = {each.thread_id: each for each in await watcher.driver.family()}
    (other,) = set(family) - {"t"}
    assert other.startswith("t~")
    assert (family[other].parent, family[other].fork_step) == ("t", 1)
    assert [step.node for step in family[other].checkpoints] == ["b", "c"]
    assert [step.node for step in family["t"].checkpoints] == ["", "a", "b", "c"]
    assert {each.summary.status for each in family.values()} == {"completed"}


async def test_an_edit_of_a_past_checkpoint_starts_its_own_branch(saver: Any, hubs: Hubs) -> None:
    graph = chain(saver)
    graph.invoke({"words": []}, CONFIG)
    graph.update_state(_checkpoint(graph, "c"), {"last": "edited"})
    hub = hubs.over(graph)
    await hub.open("t")
    (other,) = [row.info.thread_id for row in await hub.threads() if row.info.thread_id != "t"]
    driver = await hub.open(other)
    snapshot = await driver.snapshot()
    theirs = graph.get_state(CONFIG).values
    assert snapshot.values == theirs
    if theirs["words"] == ["a", "b", "c"]:
        pytest.skip("LangGraph 1.0 lets an edit of the past apply what its finished tasks had written")
    assert theirs == {"words": ["a", "b"], "last": "edited"}
    assert (snapshot.checkpoints[-1].source, snapshot.progress.next_node) == ("human", "c")
    assert [(each.op, each.before, each.after) for each in snapshot.updates] == [("set", "b", "edited")]


async def test_an_edit_that_was_not_made_here_is_another_programs_wherever_it_is_shown(
    saver: Any, hubs: Hubs
) -> None:
    graph = chain(saver)
    graph.invoke({"words": []}, CONFIG)
    watcher = await hubs.watch(graph)
    await watcher.driver.execute(UpdateState({"last": "mine"}, as_node="a", expected_step=3, actor="ann"))
    graph.update_state(CONFIG, {"last": "theirs"}, "a")
    with pytest.raises(StaleWriter, match="by update"):
        await watcher.driver.execute(Run())
    view = await watcher.check()
    assert [writer(point) for point in view.checkpoints][-2:] == ["ann", "another program"]
    assert [(entry.kind, entry.actor) for entry in view.ledger] == [("update_state", "ann")]
    await hubs.close()
    alone = await hubs.watch(graph)
    assert [point.actor for point in alone.view.checkpoints][-2:] == ["another program"] * 2


async def test_each_branch_continues_from_its_own_head(saver: Any, hubs: Hubs) -> None:
    graph = chain(saver)
    watcher = await hubs.watch(graph, mirror="mirror.db")
    await watcher.driver.execute(Start({"words": ["in"]}))
    await watcher.step()
    await watcher.driver.execute(Fork(1, "other", actor="ann"))
    await hubs.close()
    hub = hubs.over(graph, "mirror.db")
    first, other = await hub.open("t"), await hub.open("other")
    for driver, command in ((first, Step()), (other, Step()), (first, Run()), (other, Run())):
        since = (await driver.snapshot()).last_event
        await driver.execute(command)
        await driver.ended(since)
    assert (await first.snapshot()).progress.status == "completed"
    assert (await other.snapshot()).progress.status == "completed"
    assert [step.node for step in (await other.snapshot()).checkpoints] == ["", "a", "b", "c"]
    assert len({point.origin for d in (first, other) for point in (await d.snapshot()).checkpoints}) == 6
    again = hubs.over(graph)
    await again.open("t")
    assert len(await again.threads()) == 2


async def test_a_run_by_another_program_is_reported_before_anything_runs(saver: Any, hubs: Hubs) -> None:
    graph = chain(saver)
    watcher = await hubs.watch(graph)
    await watcher.driver.execute(Start({"words": []}))
    for _ in graph.stream(None, CONFIG, interrupt_after="*"):
        pass
    with pytest.raises(StaleWriter):
        await watcher.driver.execute(Run())
    assert graph.get_state(CONFIG).values["words"] == ["a"]


async def test_input_to_a_thread_that_has_ended_begins_another_invocation(saver: Any, hubs: Hubs) -> None:
    graph = chain(saver)
    watcher = await hubs.watch(graph)
    await watcher.driver.execute(Start({"words": ["one"]}))
    await watcher.run()
    assert await watcher.driver.execute(Start({"words": ["two"]})) == 4
    await watcher.run()
    view = await watcher.check()
    assert view.values["words"] == ["one", "a", "b", "c", "two", "a", "b", "c"]
    assert [step.invocation for step in view.checkpoints] == [1, 1, 1, 1, 2, 2, 2, 2]
    graph.invoke({"words": ["three"]}, CONFIG)
    again = await hubs.watch(graph)
    assert [step.source for step in again.view.checkpoints].count("input") == 3
    assert again.view.progress.invocation == 3
