"""Other models, instructions and temperatures for a thread's agents, from its next step on or in a fork."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, SQLiteCheckpointer, StateGraph
from hitl_tui.agents import Agent, ScriptedModel
from hitl_tui.engine.state.reducers import extend
from hitl_tui.engine.thread.agent_settings import AgentInfo
from hitl_tui.errors import NodeFailed, UsageError
from tests.agents.conftest import KEY
from tests.support.openai_server import OpenAIServer
from tests.support.spec import spec

pytestmark = spec("11")


def build(store: Any, agent: Agent) -> GraphRunner:
    """Two steps, each a fresh question to the worker."""

    def ask(_state: Any, config: Any) -> Any:
        return {"out": config.agents["worker"].fresh().chat("go")}

    return (
        StateGraph({"out": Channel(""), "talk": Channel([], reducer=extend())})
        .add_node("one", ask)
        .add_node("two", ask)
        .add_edge(START, "one")
        .add_edge("one", "two")
        .add_edge("two", END)
        .compile(checkpointer=store, agents={"worker": agent}, interrupt_after=["one"])
    )


@pytest.fixture
def agent(server: OpenAIServer) -> Agent:
    return Agent(
        "worker", "openai/first", "Be brief.", temperature=0.7, api_base=server.api_base, api_key=KEY
    )


@pytest.fixture
def runner(agent: Agent) -> GraphRunner:
    made = build(MemoryCheckpointer(), agent)
    made.invoke({}, thread_id="t")
    return made


def asked(server: OpenAIServer) -> tuple[Any, Any, Any]:
    """Model, temperature and system message of the newest request."""
    body = server.requests[-1].body
    system = [message["content"] for message in body["messages"] if message["role"] == "system"]
    return body["model"], body.get("temperature"), system[0] if system else None


def info(runner: GraphRunner, thread: str = "t") -> AgentInfo:
    (one,) = runner.agent_infos(thread)
    return one


def test_a_changed_setting_applies_from_the_next_step(runner: GraphRunner, server: OpenAIServer) -> None:
    assert asked(server) == ("first", 0.7, "Be brief.")
    runner.configure_agent(
        "t", "worker", model="openai/second", temperature=0, instructions="Be long.", actor="ann"
    )
    runner.invoke(thread_id="t")
    assert asked(server) == ("second", 0, "Be long.")
    assert info(runner).changed == ("model", "temperature", "instructions")


def test_a_changed_setting_is_in_the_ledger_with_the_old_value(runner: GraphRunner) -> None:
    runner.configure_agent("t", "worker", model="openai/second", actor="ann", note="the first one is slow")
    runner.configure_agent("t", "worker", temperature=0)
    entries = [entry for entry in runner.store.ledger("t") if entry.kind == "agent"]  # type: ignore[union-attr]
    assert (entries[0].actor, entries[0].note) == ("ann", "the first one is slow")
    assert entries[0].data == {"agent": "worker", "was": {}, "is": {"model": "openai/second"}}
    assert entries[1].data["is"] == {"model": "openai/second", "temperature": 0}
    assert runner.verify("t", strict=True).ok


def test_none_resets_a_setting(runner: GraphRunner, server: OpenAIServer) -> None:
    runner.configure_agent("t", "worker", model="openai/second", temperature=0)
    runner.configure_agent("t", "worker", model=None)
    runner.invoke(thread_id="t")
    assert asked(server) == ("first", 0, "Be brief.")


def test_another_process_uses_the_changed_setting(tmp_path: Path, agent: Agent, server: OpenAIServer) -> None:
    with closing(SQLiteCheckpointer(str(tmp_path / "runs.db"))) as store:
        first = build(store, agent)
        first.invoke({}, thread_id="t")
        first.configure_agent("t", "worker", model="openai/second")
    with closing(SQLiteCheckpointer(str(tmp_path / "runs.db"))) as store:
        build(store, agent.fresh()).invoke(thread_id="t")
    assert asked(server)[0] == "second"


def test_a_fork_can_start_with_other_settings_without_changing_its_parent(
    runner: GraphRunner, server: OpenAIServer
) -> None:
    runner.fork("t", 1, "f", agents={"worker": {"model": "openai/second", "temperature": 0}}, actor="ann")
    runner.invoke(thread_id="f")
    assert asked(server) == ("second", 0, "Be brief.")
    runner.invoke(thread_id="t")
    assert asked(server) == ("first", 0.7, "Be brief.")
    kinds = [entry.kind for entry in runner.store.ledger("f")]  # type: ignore[union-attr]
    assert [kind for kind in kinds if kind in ("fork", "agent")] == ["fork", "agent"]
    assert runner.verify("f", strict=True).ok


def test_a_fork_has_the_settings_of_its_step(runner: GraphRunner) -> None:
    runner.configure_agent("t", "worker", model="openai/second")
    runner.invoke(thread_id="t")
    runner.fork("t", 1, "early")
    runner.fork("t", 2, "late")
    assert info(runner, "early").model == "openai/first"
    assert info(runner, "late").model == "openai/second"


@pytest.mark.parametrize(
    ("name", "settings", "problem"),
    [
        ("worke", {"model": "x"}, "no agent 'worke'"),
        ("worker", {"modle": "x"}, "no setting 'modle'"),
        ("worker", {"temperature": "hot"}, "temperature is 'hot'"),
        ("worker", {"model": ""}, "model is ''"),
        ("worker", {"model": "demo/nobody"}, "no demo model"),
    ],
)
def test_an_invalid_setting_is_refused_and_not_stored(
    runner: GraphRunner, name: str, settings: dict[str, Any], problem: str
) -> None:
    before = runner.open("t").cursor
    with pytest.raises(UsageError, match=problem):
        runner.configure_agent("t", name, **settings)
    with pytest.raises(UsageError, match=problem):
        runner.fork("t", 1, "f", agents={name: settings})
    assert runner.open("t").cursor == before
    assert runner.store.info("f") is None  # type: ignore[union-attr]


def test_a_model_of_another_provider_is_called_without_the_first_ones_address_and_key(
    agent: Agent,
) -> None:
    agent.configure({"model": "anthropic/claude"})
    assert set(agent._options) == {"temperature"}
    agent.configure({"model": "anthropic/claude", "api_base": "http://localhost:1"})
    assert agent._options["api_base"] == "http://localhost:1"
    agent.configure({"model": "openai/other"})
    assert agent._options["api_key"] == KEY


def test_an_agent_describes_itself_and_its_usage(runner: GraphRunner) -> None:
    description = info(runner)
    assert (description.name, description.model, description.instructions, description.temperature) == (
        "worker",
        "openai/first",
        "Be brief.",
        0.7,
    )
    assert (description.calls, description.tokens_in, description.tokens_out, description.cost) == (
        1,
        7,
        3,
        None,
    )
    assert (description.turns, description.history, description.can_change) == ((), None, True)


def test_turns_in_a_channel_are_read_from_the_state() -> None:
    def ask(_state: Any, config: Any) -> Any:
        return {"out": config.agents["worker"].chat("go")}

    agent = Agent("worker", ScriptedModel(["on my way"], pace=0), history="channel:talk")
    runner = (
        StateGraph({"out": Channel(""), "talk": Channel([], reducer=extend())})
        .add_node("one", ask)
        .add_edge(START, "one")
        .add_edge("one", END)
        .compile(checkpointer=MemoryCheckpointer(), agents={"worker": agent})
    )
    runner.invoke({}, thread_id="t")
    description = info(runner)
    assert [turn["content"] for turn in description.turns] == ["go", "on my way"]
    assert description.history == "talk"


def test_a_foreign_agent_is_listed_but_not_changed() -> None:
    class Other:
        def chat(self, prompt: str) -> str:
            return prompt

    runner = build(MemoryCheckpointer(), Other())  # type: ignore[arg-type]
    with pytest.raises(NodeFailed):
        runner.invoke({}, thread_id="t")
    description = info(runner)
    assert (description.model, description.can_change) == ("Other", False)
    with pytest.raises(UsageError, match="can't be changed"):
        runner.configure_agent("t", "worker", model="x")
