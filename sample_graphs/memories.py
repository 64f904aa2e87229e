"""Two kinds of memory: an agent's own chat turns, and turns in a channel.

    hitl-tui run sample_graphs/memories.py
    hitl-tui run sample_graphs/memories.py --model anthropic/claude-sonnet-4-5

The state of a graph and the chat history of an agent are separate memories. `forgetful` keeps its own turns:
they are not part of the state, so a restore or an edit does not change them, and a fork starts without them.
`faithful` keeps its turns in the channel `talk`, where its node commits them with its other updates. They can
be viewed, edited and forked like any other value.

Run both steps, go back to step 1 and fork there: `faithful` still knows its first question, `forgetful`
does not.  Edit `talk`, and `faithful` remembers what you wrote.  Without --model a script answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hitl_tui import (
    END,
    START,
    Agent,
    Channel,
    GraphRunner,
    MemoryCheckpointer,
    ScriptedModel,
    StateGraph,
    WorkflowState,
    reducers,
)

QUESTIONS = ("My name is Ada.", "What is my name?")


def remember(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return what the script says: everything it was told so far."""
    facts = [message["content"] for message in messages[:-1] if message["role"] == "user"]
    return f"You told me before: {' '.join(facts)}" if facts else "You told me nothing before."


def ask(number: int) -> Any:
    """Return a node that asks both agents one question."""

    def node(_state: WorkflowState, config: Any) -> dict[str, Any]:
        question = QUESTIONS[number]
        return {name: config.agents[name].chat(question) for name in ("forgetful", "faithful")}

    return node


def build(model: str | None = None, api_base: str | None = None) -> GraphRunner:
    """Return the graph; a script answers unless a model is given."""
    server = {"api_base": api_base} if api_base else {}
    forgetful = Agent("forgetful", model or ScriptedModel(remember), **server)
    faithful = Agent("faithful", model or ScriptedModel(remember), history="channel:talk", **server)
    return (
        StateGraph(
            {
                "forgetful": Channel(
                    "", schema=str, description="the answer of the agent with its own turns"
                ),
                "faithful": Channel("", schema=str, description="the answer of the agent with turns in talk"),
                "talk": Channel([], reducer=reducers.extend(), description="the turns of faithful"),
            },
            name="memories",
        )
        .add_node("first", ask(0))
        .add_node("second", ask(1))
        .add_edge(START, "first")
        .add_edge("first", "second")
        .add_edge("second", END)
        .compile(
            checkpointer=MemoryCheckpointer(),
            agents={"forgetful": forgetful, "faithful": faithful},
            interrupt_after=["first"],
        )
    )
