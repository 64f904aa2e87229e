"""Write, let a person check, and repeat until it is approved.

    hitl-tui run sample_graphs/review.py --input task="Explain gradient descent"
    hitl-tui run sample_graphs/review.py --model anthropic/claude-sonnet-4-5

`check_approval` does nothing by itself: the gate after it asks you, your answer is written to the state, and
the route depends on the state. Editing `approved` yourself has the same effect.
Without --model a script writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hitl_tui import (
    END,
    START,
    Agent,
    Channel,
    Gate,
    GateChoice,
    GraphRunner,
    InputField,
    MemoryCheckpointer,
    ScriptedModel,
    StateGraph,
    WorkflowState,
)

FIRST = "Gradient descent minimises a function by following its negative gradient in small steps."
BETTER = (
    "You stand on a hill in fog and want to get down. You feel with your foot which way it slopes most, take "
    "a step there, and feel again. Gradient descent is that: the hill is the error, a step is a small change."
)


def rehearse(messages: Sequence[Mapping[str, str]]) -> str:
    """Return what the script writes: a better text once there is feedback."""
    return BETTER if "Feedback:" in messages[-1]["content"] else FIRST


def write(state: WorkflowState, config: Any) -> dict[str, Any]:
    """Write the first draft, or the next one from the feedback."""
    prompt = state["task"]
    if state["feedback"]:
        prompt = (
            f"Task:\n{prompt}\n\nDraft:\n{state['draft']}\n\nFeedback:\n{state['feedback']}\n\nRevise it."
        )
    return {"draft": config.agents["writer"].fresh().chat(prompt), "feedback": ""}


CHECK = Gate(
    "check_approval",
    title="Is this draft good enough?",
    subject="draft",
    choices=[
        GateChoice("approve", "approve", "a", values={"approved": True}),
        GateChoice("revise", "send back", "r", "required", lambda state, text: {"feedback": text}),
    ],
)


def build(model: str | None = None, api_base: str | None = None) -> GraphRunner:
    """Return the graph; a script writes unless a model is given."""
    server = {"api_base": api_base} if api_base else {}
    writer = Agent("writer", model or ScriptedModel(rehearse), "You write short, concrete texts.", **server)
    return (
        StateGraph(
            {
                "task": Channel("", schema=str),
                "draft": Channel("", schema=str),
                "feedback": Channel("", schema=str, description="what the next draft should do better"),
                "approved": Channel(False, schema=bool),
            },
            name="review",
        )
        .add_node("write", write)
        .add_node("check_approval", lambda state: {})
        .add_edge(START, "write")
        .add_edge("write", "check_approval")
        .add_conditional_edge(
            "check_approval",
            lambda state: "done" if state["approved"] else "revise",
            {"done": END, "revise": "write"},
        )
        .compile(
            checkpointer=MemoryCheckpointer(),
            agents={"writer": writer},
            interrupt_after=[CHECK],
            inputs=[InputField("task", "task", "What to write", "Explain gradient descent")],
        )
    )
