"""Breakpoints: where a run stops, what a condition may read, and what is told of one that can't be read."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import END, START, Channel, StateGraph, UsageError, append
from hitl_tui.drivers.breakpoints import NoSuchNode, read_breakpoint, stopped_by
from hitl_tui.drivers.expressions import ExpressionInvalid
from hitl_tui.engine.commands import Answer, Run, Start, UpdateState
from hitl_tui.stores import Checkpointer
from tests.drivers.conftest import Bench


def loop(store: Checkpointer | None, **options: Any) -> Any:
    """Counts `n` up in `count`, then looks in `check`, until `limit`; `key` is private."""
    channels = {
        "n": Channel(0),
        "limit": Channel(4),
        "notes": Channel([], reducer=append()),
        "key": Channel("x", visibility="private"),
    }
    graph = StateGraph(channels, name="loop")
    graph.add_node("count", lambda state: {"n": state["n"] + 1, "notes": f"now {state['n'] + 1}"})
    graph.add_node("check", lambda state: {})
    graph.add_edge(START, "count").add_edge("count", "check")
    graph.add_conditional_edge(
        "check", lambda state: "on" if state["n"] < state["limit"] else "off", {"on": "count", "off": END}
    )
    return graph.compile(checkpointer=store, **options)


def where(view: Any) -> tuple[int, str]:
    return view.progress.head, stopped_by(view.progress, view.ledger)


async def test_a_run_stops_before_the_node_and_goes_on_from_there(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({}))
    stops = {"check": ""}
    assert where(await watcher.run(stop_before=stops)) == (1, "breakpoint before check")
    assert where(await watcher.run(stop_before=stops)) == (3, "breakpoint before check")
    assert where(await watcher.run()) == (8, "")
    await watcher.check()


async def test_a_condition_is_looked_at_each_time_and_named_when_it_stops(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({}))
    view = await watcher.run(stop_before={"count": "n > 2", "check": "n == 99"})
    assert where(view) == (6, "breakpoint before count: n > 2")
    assert view.values["n"] == 3


async def test_a_run_that_has_not_begun_stops_before_its_very_first_node(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({}))
    stops = {"count": ""}
    assert where(await watcher.run(stop_before=stops)) == (0, "breakpoint before count")
    assert where(await watcher.run(stop_before=stops)) == (2, "breakpoint before count")


async def test_stepping_and_editing_there_does_not_make_it_stop_again(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({}))
    await watcher.step()
    assert where(await watcher.run(stop_before={"check": ""})) == (3, "breakpoint before check")
    await watcher.driver.execute(UpdateState({"limit": 9}, expected_step=3))
    view = await watcher.look()
    assert stopped_by(view.progress, view.ledger) == ""
    assert where(await watcher.run(stop_before={"check": ""}))[0] == 6


async def test_another_process_passes_what_this_one_stopped_at(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({}))
    await watcher.run(stop_before={"check": ""})
    other = await bench.watch(loop(bench.store))
    assert where(other.view) == (1, "breakpoint before check")
    assert where(await other.run(stop_before={"check": ""})) == (3, "breakpoint before check")


async def test_after_an_answer_the_next_node_is_stopped_before(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store, interrupt_after=["check"]))
    await watcher.driver.execute(Start({}))
    view = await watcher.run()
    request = view.progress.pending[0]
    await watcher.driver.execute(Answer(request.id, "continue", step=request.step))
    assert where(await watcher.run(stop_before={"count": ""})) == (2, "breakpoint before count")


async def test_a_condition_that_can_not_be_told_stops_and_says_so(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({}))
    view = await watcher.run(stop_before={"check": "notes > 2"})
    head, told = where(view)
    assert head == 1
    why = "a list can't be compared with a whole number, at column 7"
    assert told == f"breakpoint before check: notes > 2 (it can't be told: {why})"


async def test_one_that_can_not_be_is_refused_and_nothing_runs(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({}))
    with pytest.raises(NoSuchNode, match="did you mean 'check'"):
        await watcher.driver.execute(Run(stop_before={"chek": ""}))
    with pytest.raises(ExpressionInvalid):
        await watcher.driver.execute(Run(stop_before={"check": "n >"}))
    assert (await watcher.look()).progress.head == 0


def test_node_and_condition_in_one_word() -> None:
    graph = loop(None).graph.info
    assert read_breakpoint("check", graph) == ("check", "")
    assert read_breakpoint("check: n > 2", graph) == ("check", "n > 2")
    assert read_breakpoint("check:notes[1:2] == []", graph) == ("check", "notes[1:2] == []")
    with pytest.raises(UsageError):
        read_breakpoint("nowhere:n", graph)
