"""An agent with two tools, one of which needs a person's approval.

    hitl-tui run sample_graphs/assistant.py
    hitl-tui run sample_graphs/assistant.py --headless --thread m

The agent looks for a free slot, which it may, and then wants to send an invitation, which it may not
without you: the run waits with the exact arguments.  Approve, edit the arguments by the tool's schema, or
reject with a reason, which goes back to the model.  Nothing is sent: the tool writes its letters to a list.
The model is a script, so that no key is needed; give the agent any other one:

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
    """The first free hour of a day.

    Args:
        day: which day to look at.
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
    """What the model says next: it looks, asks to send, and says what happened."""
    results = [str(message["content"]) for message in messages if message["role"] == "tool"]
    asked = str(next(message["content"] for message in reversed(messages) if message["role"] == "user"))
    if not results:
        return ["I look for a free hour first.", ToolCall("free_slot", {"day": "tuesday"})]
    if len(results) == 1:
        invitation = {"to": "team@example.org", "subject": f"{asked}, {results[0]}", "minutes": 60}
        return ["That suits; I invite the team.", ToolCall("send_invitation", invitation)]
    if results[1].startswith("Error"):
        return f"The invitation was not sent. {results[1].removeprefix('Error: ')}"
    # Where a person has changed the call, a note about that comes before what the tool gave.
    return f"Done: the invitation was {results[1].splitlines()[-1]}, for {results[0]}."


async def arrange(state: Any, config: Any) -> dict[str, Any]:
    """Hand the request to the agent."""
    return {"answer": await config.agents["assistant"].achat(state["request"])}


def build() -> GraphRunner:
    """The graph: one node with the agent."""
    agent = Agent(
        "assistant",
        ScriptedModel(script, name="demo/assistant"),
        "You arrange meetings. Ask for as little time of people as you can.",
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
