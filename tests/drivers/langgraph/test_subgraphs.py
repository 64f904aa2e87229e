"""Subgraphs: stepped into, edited inside, and threads of their own in the mirror."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import Any

import pytest

pytest.importorskip("langgraph", reason="the extra `langgraph` is not installed")

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from hitl_tui.drivers.langgraph.hub import LangGraphHub
from hitl_tui.engine.commands import Answer, Cancel, Fork, Start, Step, UpdateState
from hitl_tui.engine.log.store import all_threads
from hitl_tui.errors import UsageError
from hitl_tui.verbs.actions import BY_ID
from hitl_tui.view.session import ViewSession
from tests.drivers.langgraph.conftest import Hubs
from tests.drivers.langgraph.graphs import PAUSE, Ran, State, nested, paused_inside, team_of, two_teams
from tests.support.watching import Watcher


def rows(hub: LangGraphHub) -> list[str]:
    """The names of the threads inside `t`."""
    return sorted(row.info.thread_id for row in all_threads(hub.mirror.store, within="t"))


async def inside(hubs: Hubs, saver: Any, ran: Ran) -> tuple[Watcher, Watcher]:
    """A thread that was stepped into its subgraph, and the thread of that."""
    hub = hubs.over(team_of(ran).compile(checkpointer=saver))
    outer = await Watcher.open(await hub.begin("t", "ann"))
    await outer.driver.execute(Start({"log": ["in"]}))
    await outer.step()
    await outer.step(into=True)
    child = (await outer.driver.snapshot()).unfinished
    assert child is not None
    return outer, await Watcher.open(await hub.open(child.child))


async def test_a_subgraph_is_stepped_into_and_through_and_its_end_is_its_parents_step(
    hubs: Hubs, saver: Any
) -> None:
    ran: Ran = []
    outer, inner = await inside(hubs, saver, ran)
    assert ran == []
    view = await inner.check()
    assert [owner.node for owner in view.owners] == ["team"]
    assert (view.progress.head, view.progress.next_node, view.values["draft"]) == (0, "gather", "given")
    assert (await outer.check()).progress.status == "waiting"
    await inner.step()
    assert (ran, (await inner.check()).progress.next_node) == (["gather"], "ask")
    await inner.step()
    view = await inner.check()
    (request,) = view.progress.pending
    assert (request.node, request.payload) == ("ask", "inside?")
    (asked,) = (await outer.check()).progress.pending
    assert (asked.id, asked.path) == (request.id, "team/ask")
    await inner.driver.execute(Answer(request.id, "yes", request.step, "ann"))
    await inner.step()
    view = await inner.check()
    assert (view.progress.status, view.values["log"]) == ("completed", ["in", "gather", "ask yes"])
    view = await outer.check()
    assert (view.progress.pending, view.progress.next_node) == ((), "team")
    await outer.step()
    view = await outer.check()
    assert view.progress.status == "completed"
    assert [branch.thread for branch in view.checkpoints[-1].branches] == [inner.driver.thread_id]
    assert ran == ["gather", "ask", "ask"]
    for watcher in (outer, inner):
        assert (await watcher.driver.check("log", lambda _done, _all: None)).mismatches == ()


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("langgraph._internal._replay") is None,
    reason="this LangGraph begins a subgraph anew at each step of a fork",
)
async def test_a_fork_is_stepped_through_its_subgraph_as_its_parent_is(hubs: Hubs, saver: Any) -> None:
    ran: Ran = []
    outer, inner = await inside(hubs, saver, ran)
    await outer.run()
    (asked,) = (await outer.check()).progress.pending
    await outer.driver.execute(Answer(asked.id, "yes", asked.step, "ann"))
    await outer.run()
    await outer.driver.execute(Fork(1, "f"))
    ran.clear()
    hub = hubs.opened[0]
    fork = await Watcher.open(await hub.open("f"))
    for expected in ([], ["gather"], ["gather", "ask"]):
        await fork.step(into=True)
        assert ran == expected
    threads = [name for name in rows(hub) if name != inner.driver.thread_id]
    child = (await fork.driver.snapshot()).unfinished
    assert child is not None
    assert threads == []
    assert [row.info.thread_id for row in all_threads(hub.mirror.store, within="f")] == [child.child]
    assert (await outer.check()).progress.status == "completed"
    assert (await fork.driver.check("log", lambda _done, _all: None)).mismatches == ()


@pytest.mark.slow
async def test_an_edit_inside_withdraws_what_was_asked_and_is_what_the_parent_gets(
    hubs: Hubs, saver: Any
) -> None:
    ran: Ran = []
    outer, inner = await inside(hubs, saver, ran)
    await inner.run()
    (request,) = (await inner.check()).progress.pending
    edit = UpdateState(
        {"draft": "edited"}, as_node="gather", expected_step=inner.view.progress.head, actor="ann"
    )
    preview = await inner.driver.preview(edit)
    assert (preview.next_node, preview.withdraws, dict(preview.problems)) == ("ask", ("inside?",), {})
    assert [(way.node, way.next_nodes) for way in preview.as_nodes][:2] == [("gather", ("ask",)), ("ask", ())]
    await inner.driver.execute(edit)
    assert (await inner.check()).progress.pending == ()
    assert (await outer.check()).progress.pending == ()
    assert [entry.kind for entry in inner.view.ledger][-2:] == ["update_state", "withdrawn"]
    await outer.run()
    (again,) = (await outer.check()).progress.pending
    assert again.id != request.id
    await outer.driver.execute(Answer(again.id, "yes", again.step, "ann"))
    await outer.run()
    view = await outer.check()
    assert (view.progress.status, view.values["draft"]) == ("completed", "edited")
    assert (await inner.check()).progress.status == "completed"


async def test_threads_inside_are_found_again_by_the_checkpoints_alone(hubs: Hubs, saver: Any) -> None:
    ran: Ran = []
    outer, inner = await inside(hubs, saver, ran)
    await outer.run()
    (request,) = (await outer.check()).progress.pending
    await outer.driver.execute(Answer(request.id, "yes", request.step, "ann"))
    await outer.run()
    hub = hubs.over(team_of(ran).compile(checkpointer=saver))
    again = await Watcher.open(await hub.open("t"))
    (branch,) = again.view.checkpoints[-1].branches
    assert branch.thread == inner.driver.thread_id
    child = await Watcher.open(await hub.open(branch.thread))
    assert child.view.values == (await inner.check()).values
    steps = [(step.origin, step.node, step.source) for step in child.view.checkpoints]
    assert steps == [(step.origin, step.node, step.source) for step in inner.view.checkpoints]
    assert (await again.driver.check("log", lambda _done, _all: None)).mismatches == ()


async def test_what_a_thread_inside_can_not_do_is_said(hubs: Hubs, saver: Any) -> None:
    outer, inner = await inside(hubs, saver, [])
    assert "fork the one that it runs for" in inner.driver.refusal(Fork)
    assert "cancel that one" in inner.driver.refusal(Cancel)
    await outer.run()
    (request,) = (await outer.check()).progress.pending
    await outer.driver.execute(Answer(request.id, "yes", request.step, "ann"))
    await outer.run()
    await inner.driver.snapshot()
    assert "nobody takes" in inner.driver.refusal(Step)
    with pytest.raises(UsageError, match="is read-only"):
        await inner.driver.execute(UpdateState({"draft": "late"}, actor="ann"))


@pytest.mark.slow
async def test_the_parallel_subgraph_waits_while_one_is_stepped_through(hubs: Hubs, saver: Any) -> None:
    ran: Ran = []
    hub = hubs.over(two_teams(ran).compile(checkpointer=saver))
    outer = await Watcher.open(await hub.begin("t", "ann"))
    await outer.driver.execute(Start({"log": ["in"]}))
    await outer.step(into=True)
    assert ran == []
    names = rows(hub)
    first, second = [await Watcher.open(await hub.open(name)) for name in names]
    await first.step()
    await first.step()
    assert (await first.check()).progress.status == "completed"
    assert ((await second.check()).progress.head, ran) == (0, ["a one", "a two"])
    await outer.step()
    assert sorted(ran) == ["a one", "a two", "b one", "b two"]
    view = await outer.check()
    assert [branch.thread for branch in view.checkpoints[-1].branches] == names
    assert (await second.check()).progress.status == "completed"


@pytest.mark.slow
async def test_a_subgraph_inside_a_subgraph_is_stepped_into(hubs: Hubs, saver: Any) -> None:
    ran: Ran = []
    hub = hubs.over(nested(ran).compile(checkpointer=saver))
    outer = await Watcher.open(await hub.begin("t", "ann"))
    await outer.driver.execute(Start({"log": ["in"]}))
    watchers = [outer]
    for _ in range(2):
        await watchers[-1].step(into=True)
        unfinished = (await watchers[-1].driver.snapshot()).unfinished
        assert unfinished is not None
        watchers.append(await Watcher.open(await hub.open(unfinished.child)))
    middle, inmost = watchers[1:]
    await inmost.step()
    assert (ran, (await inmost.check()).progress.next_node) == (["one"], "two")
    await inmost.driver.execute(UpdateState({"draft": "deep"}, as_node="one", actor="ann"))
    await inmost.run()
    assert (await inmost.check()).progress.status == "completed"
    await middle.step()
    assert (await middle.check()).values["draft"] == "deep"
    await outer.run()
    assert (await outer.check()).values["draft"] == "deep"
    assert ran == ["one", "two"]
    assert (await outer.driver.check("log", lambda _done, _all: None)).mismatches == ()


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_pause_stops_inside_a_subgraph_after_the_superstep_in_flight(
    hubs: Hubs, saver: Any, asynchronous: bool
) -> None:
    ran: Ran = []
    hub = hubs.over(paused_inside(ran, asynchronous).compile(checkpointer=saver))
    outer = await Watcher.open(await hub.begin("t", "ann"))
    await outer.driver.execute(Start({"log": ["in"]}))
    PAUSE["driver"] = (outer.driver, asyncio.get_running_loop())
    await outer.run()
    view = await outer.check()
    assert (ran, view.progress.status, view.progress.reason) == (["one"], "waiting", "paused")
    unfinished = (await outer.driver.snapshot()).unfinished
    assert unfinished is not None
    inner = await Watcher.open(await hub.open(unfinished.child))
    assert inner.view.progress.next_node == "two"
    await outer.run()
    assert ((await outer.check()).progress.status, ran) == ("completed", ["one", "two"])


@pytest.mark.parametrize(("checkpointer", "words"), [(False, "keeps nothing"), (True, "one state for all")])
async def test_an_opaque_subgraph_says_why_and_runs_as_one_step(
    hubs: Hubs, saver: Any, checkpointer: bool, words: str
) -> None:
    ran: Ran = []
    hub = hubs.over(nested(ran, checkpointer=checkpointer).compile(checkpointer=saver))
    outer = await Watcher.open(await hub.begin("t", "ann"))
    node = outer.view.graph.node("middle")
    assert node is not None
    assert words in node.closed
    await outer.driver.execute(Start({"log": ["in"]}))
    session = await ViewSession.open(hub, outer.driver)
    assert words in BY_ID["run.into"].disabled_reason(session.situation)
    await outer.step(into=True)
    assert (await outer.check()).progress.status == "completed"
    assert (await outer.driver.snapshot()).unfinished is None


async def test_a_subgraph_thread_whose_node_continued_elsewhere_is_over(hubs: Hubs) -> None:
    leave: Any = Command(goto="next", graph=Command.PARENT, update={"log": ["left"]})
    inner = StateGraph(State).add_node("work", lambda _state: leave).add_edge(START, "work").compile()
    graph = StateGraph(State).add_node("team", inner, destinations=("next",)).add_edge(START, "team")
    graph.add_node("next", lambda _state: {"log": ["next"]})
    hub = hubs.over(graph.compile(checkpointer=InMemorySaver()))
    outer = await Watcher.open(await hub.begin("t", "ann"))
    await outer.driver.execute(Start({"log": []}))
    await outer.run()
    assert outer.view.values["log"] == ["left", "next"]
    (row,) = await hub.threads(within="t")
    assert (row.status, row.reason) == ("completed", "end")
    opened = await Watcher.open(await hub.open(row.info.thread_id))
    assert opened.view.progress.status == "completed", "looking at it changes nothing"
