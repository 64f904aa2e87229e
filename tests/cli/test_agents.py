"""`agents`, `change-agent`, and `fork --agent`: looking at agents and letting them use other models."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import App
from tests.support.openai_server import openai_server


@pytest.fixture
def thread(app: App) -> str:
    app.expect(3, "run", "review", "--headless", "--input", "task=Explain closures", "--thread", "r")
    return "r"


@pytest.mark.slow
def test_agents_are_listed_with_their_use(app: App, thread: str) -> None:
    (agent,) = app.expect(0, "agents", thread, "--json").document["agents"]
    assert (agent["name"], agent["model"], agent["calls"], agent["changed"]) == (
        "writer", "scripted/scripted", 1, [],
    )  # fmt: skip
    assert "writer" in app.expect(0, "agents", thread).out


@pytest.mark.slow
def test_a_setting_is_changed_and_reset(app: App, thread: str) -> None:
    given = ("writer", "model=openai/x", "temperature=0")
    (agent,) = app.expect(0, "change-agent", thread, *given, "--note", "try", "--json").document["agents"]
    assert (agent["model"], agent["temperature"]) == ("openai/x", 0)
    app.expect(0, "change-agent", thread, "writer", "model=null", "temperature=null")
    (agent,) = app.expect(0, "agents", thread, "--json").document["agents"]
    assert (agent["model"], agent["changed"]) == ("scripted/scripted", [])
    assert "try" in app.expect(0, "log", thread).out


def test_a_fork_takes_another_model(app: App, thread: str) -> None:
    app.expect(0, "fork", f"{thread}@0", "f", "--agent", "writer.model=openai/x")
    (agent,) = app.expect(0, "agents", "f", "--json").document["agents"]
    assert agent["model"] == "openai/x"
    (agent,) = app.expect(0, "agents", thread, "--json").document["agents"]
    assert agent["model"] == "scripted/scripted"


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("writer", "is not a setting"),
        ("model=x", "is not a setting"),
        ("writer.temperature=hot", "give a number"),
        ("nobody.model=x", "no agent 'nobody'"),
        ("writer.colour=red", "no setting 'colour'"),
    ],
)
def test_invalid_settings_are_refused(app: App, thread: str, word: str, problem: str) -> None:
    assert problem in app.expect(2, "fork", thread, "f", "--agent", word).err


@pytest.mark.slow
def test_one_agent_is_shown_in_full_with_the_place_of_its_turns(app: App, thread: str) -> None:
    said = app.expect(0, "agents", thread, "--turns", "writer").out
    assert "model        scripted/scripted" in said
    assert "in this process alone" in said
    assert said.endswith("Its turns:\n  | no turns\n")
    assert "did you mean 'writer'?" in app.expect(2, "agents", thread, "--turns", "writr").err
    (agent,) = app.expect(0, "agents", thread, "--json").document["agents"]
    assert agent["last"]["tokens_out"] > 0


TOOLS = """
from hitl_tui import Agent, END, START, Channel, ScriptedModel, StateGraph, ToolCall

def weather(city: str) -> str:
    "Tell the weather."
    return f"{city}: sun"

model = ScriptedModel([ToolCall("weather", {"city": "Graz"}), "Sun."], pace=0)
graph = (
    StateGraph({"out": Channel("")}, name="tools")
    .add_node("ask", lambda state, config: {"out": config.agents["clerk"].chat("go")})
    .add_edge(START, "ask").add_edge("ask", END)
    .compile(agents={"clerk": Agent("clerk", model, tools=[weather])})
)
"""


@pytest.mark.slow
def test_show_lists_the_tool_calls_of_a_step(app: App, tmp_path: Path) -> None:
    file = tmp_path / "tools.py"
    file.write_text(TOOLS)
    app.expect(0, "run", str(file), "--headless", "--thread", "t")
    app.expect(0, "update-state", "t", "out=Rain.")
    (call,) = app.expect(0, "show", "t@1", "--json").document["checkpoint"]["calls"]
    assert call["duration"] > 0
    assert {name: call[name] for name in ("agent", "tool", "arguments", "result", "error", "attempt")} == {
        "agent": "clerk", "tool": "weather", "arguments": {"city": "Graz"},
        "result": "Graz: sun", "error": None, "attempt": 1,
    }  # fmt: skip
    assert app.expect(0, "show", "t", "--json").document["checkpoint"]["calls"] == []
    assert app.expect(0, "log", "t", "--json").document["checkpoints"][1]["calls"] == [call]
    said = app.expect(0, "show", "t@1").out
    assert "clerk called weather" in said
    assert '{"city": "Graz"}' in said
    assert "“Graz: sun”" in said
    assert "clerk called weather" in app.expect(0, "log", "t").out


UNPRICED = """
from hitl_tui import Agent, sequential_workflow

graph = sequential_workflow([Agent("clerk", "openai/test", api_base="{base}", api_key="k")])
"""


@pytest.mark.slow
def test_the_cost_of_a_model_without_a_price_is_unknown_not_zero(app: App, tmp_path: Path) -> None:
    file = tmp_path / "unpriced.py"
    with openai_server() as server:
        file.write_text(UNPRICED.format(base=server.api_base))
        app.expect(0, "run", str(file), "--headless", "--input", "messages=go", "--thread", "t")
    said = app.expect(0, "cost", "t").out
    assert "unknown" in said
    assert "$" not in said
    costs = app.expect(0, "cost", "t", "--json").document
    assert (costs["agents"][0]["tokens_in"], costs["agents"][0]["cost"]) == (7, None)
