"""Agents through the driver: descriptions, other settings, forgetting; stored and emitted."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, StateGraph
from hitl_tui.agents import Agent, ScriptedModel
from hitl_tui.engine.commands import ClearTurns, ConfigureAgents, Fork, Start
from hitl_tui.errors import UsageError
from hitl_tui.stores import Checkpointer
from tests.drivers.conftest import Bench


def chat(store: Checkpointer) -> GraphRunner:
    """Two steps of one agent that remembers."""

    async def ask(_state: Any, config: Any) -> Any:
        return {"out": await config.agents["worker"].achat("go")}

    agent = Agent("worker", ScriptedModel(lambda messages: str(len(messages)), pace=0))
    return (
        StateGraph({"out": Channel("")})
        .add_node("one", ask)
        .add_node("two", ask)
        .add_edge(START, "one")
        .add_edge("one", "two")
        .add_edge("two", END)
        .compile(checkpointer=store, agents={"worker": agent})
    )


async def test_turns_are_shown_and_can_be_forgotten(bench: Bench) -> None:
    watcher = await bench.watch(chat(bench.store))
    driver = watcher.driver
    await driver.execute(Start({}))
    await watcher.step()
    (before,) = await driver.agents()
    assert [turn["content"] for turn in before.turns] == ["go", "1"]
    assert (before.calls, before.history) == (1, None)
    assert await driver.execute(ClearTurns("worker", actor="ann")) == 2
    (after,) = await driver.agents()
    assert after.turns == ()
    await watcher.step()
    assert (await driver.snapshot()).values["out"] == "1"
    entries = [entry for entry in bench.store.ledger("t") if entry.kind == "agent"]
    assert [(entry.actor, entry.data) for entry in entries] == [("ann", {"agent": "worker", "forgot": 2})]


async def test_settings_are_kept_and_a_fork_takes_its_own(bench: Bench) -> None:
    driver = (await bench.watch(chat(bench.store))).driver
    await driver.execute(Start({}))
    await driver.execute(ConfigureAgents({"worker": {"temperature": 0.5}}, actor="ann"))
    assert [(one.temperature, one.changed) for one in await driver.agents()] == [(0.5, ("temperature",))]
    await driver.execute(Fork(0, "f", agents={"worker": {"instructions": "Be brief."}}))
    (forked,) = await (await bench.watch(chat(bench.store), "f")).driver.agents()
    assert forked.instructions == "Be brief."
    (reopened,) = await (await bench.watch(chat(bench.store))).driver.agents()
    assert reopened.temperature == 0.5


async def test_what_can_not_be_is_refused(bench: Bench) -> None:
    driver = (await bench.watch(chat(bench.store))).driver
    with pytest.raises(UsageError, match="no step yet"):
        await driver.execute(ConfigureAgents({"worker": {"temperature": 0.5}}))
    await driver.execute(Start({}))
    with pytest.raises(UsageError, match="no agent 'judge'"):
        await driver.execute(ConfigureAgents({"judge": {}}))
    with pytest.raises(UsageError, match="no agent 'judge'"):
        await driver.preview(ConfigureAgents({"judge": {}}))
    with pytest.raises(UsageError, match="no agent 'judge' with turns"):
        await driver.execute(ClearTurns("judge"))


async def test_all_agents_change_in_one_commit_or_none_does(bench: Bench) -> None:
    driver = (await bench.watch(chat(bench.store))).driver
    await driver.execute(Start({}))
    both = ConfigureAgents({"worker": {"temperature": 0.5}, "judge": {"temperature": 0}})
    with pytest.raises(UsageError, match="no agent 'judge'"):
        await driver.execute(both)
    assert [one.changed for one in await driver.agents()] == [()]


@pytest.mark.slow
async def test_a_change_that_would_break_an_agent_is_reported_before_it_is_made(bench: Bench) -> None:
    driver = (await bench.watch(chat(bench.store))).driver
    await driver.execute(Start({}))
    preview = await driver.preview(ConfigureAgents({"worker": {"model": "nope/x"}}))
    assert "unknown provider" in preview.problems["worker"]
    assert (await driver.preview(ConfigureAgents({"worker": {"temperature": 0.5}}))).problems == {}
    assert [one.changed for one in await driver.agents()] == [()]
