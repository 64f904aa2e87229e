"""An agent with two tools, one of which needs a person's approval.

    hitl-tui run sample_graphs/assistant.py
    hitl-tui run sample_graphs/assistant.py --headless --thread m

The agent looks for a free slot, which needs no approval. Then it wants to send an invitation, which does:
the run waits with the exact arguments. Approve the call, edit its arguments, or reject it with a reason,
which goes back to the model. Nothing is really sent: the tool adds its invitations to a list.
The model is a script, so no key is needed; to give the agent another one:

    hitl-tui agents m assistant.model=openai/gpt-4o
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from hitl_tui import END, START, Agent, Channel, GraphRunner, MemoryCheckpointer, ScriptedModel, StateGraph
from hitl_tui.agents import Tool, ToolCall
from hitl_tui.engine.graph.description import InputField

SENT: list[str] = []
SLOTS = {"monday": "Monday 10:00", "tuesday": "Tuesday 14:30"}


def free_slot(day: Literal["monday", "tuesday"]) -> str:
    """Return the first free slot of a day.

    Args:
        day: the day to look at.
    """
    return SLOTS[day]


def send_invitation(to: str, subject: str, minutes: int = 30) -> str:
    """Send an invitation by mail.

    Args:
        to: the address it goes to.
        subject: what the meeting is about.
        minutes: how long it takes.
    """
    SENT.append(f"{to}: {subject}, {minutes} min")
    return f"sent to {to}, {minutes} minutes"


def script(messages: Sequence[Mapping[str, Any]]) -> Any:
    """Return what the model says next: it looks for a slot, asks to send, and reports."""
    results = [str(message["content"]) for message in messages if message["role"] == "tool"]
    request = str(next(message["content"] for message in reversed(messages) if message["role"] == "user"))
    if not results:
        return ["I look for a free hour first.", ToolCall("free_slot", {"day": "tuesday"})]
    if len(results) == 1:
        invitation = {"to": "team@example.org", "subject": f"{request}, {results[0]}", "minutes": 60}
        return ["That suits; I invite the team.", ToolCall("send_invitation", invitation)]
    if results[1].startswith("Error"):
        return f"The invitation was not sent. {results[1].removeprefix('Error: ')}"
    # If a person changed the call, a note about that comes before the tool's result.
    return f"Done: the invitation was {results[1].splitlines()[-1]}, for {results[0]}."


async def arrange(state: Any, config: Any) -> dict[str, Any]:
    """Hand the request to the agent."""
    return {"answer": await config.agents["assistant"].achat(state["request"])}


def build() -> GraphRunner:
    """Return the graph: one node with the agent."""
    agent = Agent(
        "assistant",
        ScriptedModel(script, name="demo/assistant"),
        "You arrange meetings. Take as little of people's time as you can.",
        tools=[free_slot, Tool(send_invitation, approve="always")],
    )
    channels = {
        "request": Channel("Planning", schema=str, description="what the meeting is about"),
        "answer": Channel("", schema=str),
    }
    return (
        StateGraph(channels, name="assistant")
        .add_node("arrange", arrange, reads=["request"], writes=["answer"])
        .add_edge(START, "arrange")
        .add_edge("arrange", END)
        .compile(
            checkpointer=MemoryCheckpointer(),
            agents={"assistant": agent},
            inputs=[InputField("request", "request", "What is the meeting about?", "Planning the spring")],
            output="answer",
        )
    )
