"""Approve tool calls in the format of LangChain's human-in-the-loop middleware.

    hitl-tui run sample_graphs/toolcalls.py
    hitl-tui run sample_graphs/toolcalls.py --headless --thread c

`plan` proposes two calls. `review` passes them to `config.interrupt` as that middleware does, and gets its
kind of answer: one decision for each call, by position. Each can be approved, or rejected with a reason. The
mail can also be edited, or you can answer for the tool. From the command line:

    hitl-tui answer c REQUEST --step 1 --value '["approve", {"choice": "reject", "text": "keep it"}]'
"""

from __future__ import annotations

from typing import Any

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph, WorkflowState, append

CALLS = [
    {"name": "send_mail", "args": {"to": "team@example.org", "subject": "Minutes", "urgent": False}},
    {"name": "delete_file", "args": {"path": "drafts/minutes.md"}, "description": "There is no copy of it."},
]
REVIEWS = [
    {"action_name": "send_mail", "allowed_decisions": ["approve", "edit", "reject", "respond"]},
    {"action_name": "delete_file", "allowed_decisions": ["approve", "reject"]},
]


def plan(state: WorkflowState) -> dict[str, Any]:
    """Propose the calls, as a model would."""
    return {"calls": CALLS}


def review(state: WorkflowState, config: Any) -> dict[str, Any]:
    """Ask for a decision on each call."""
    asked = {"action_requests": list(state["calls"]), "review_configs": REVIEWS}
    return {"decisions": config.interrupt(asked)["decisions"]}


def act(state: WorkflowState) -> list[str]:
    """Return the outcome of each call."""
    done: list[str] = []
    for call, decision in zip(state["calls"], state["decisions"], strict=True):
        if decision["type"] in ("approve", "edit"):
            action = decision.get("edited_action", call)
            done.append(f"{action['name']} to {next(iter(action['args'].values()))}")
        else:
            done.append(f"{call['name']}: {decision['type']} {decision.get('message', '')}".rstrip())
    return done


def build() -> GraphRunner:
    """Return the graph: plan, review, act."""
    channels = {
        "calls": Channel(None, description="the proposed calls"),
        "decisions": Channel(None, description="the decision on each call"),
        "done": Channel([], reducer=append()),
    }
    return (
        StateGraph(channels, name="toolcalls")
        .add_node("plan", plan)
        .add_node("review", review)
        .add_node("act", lambda state: {"done": "; ".join(act(state))})
        .add_edge(START, "plan")
        .add_edge("plan", "review")
        .add_edge("review", "act")
        .add_edge("act", END)
        .compile(checkpointer=MemoryCheckpointer())
    )
