"""The demo: the advisor workflow on scripted models, at the pace of real ones."""

from __future__ import annotations

from hitl_tui.agents.agent import Agent
from hitl_tui.agents.demo_advisor import advisor_reply
from hitl_tui.agents.scripted import ScriptedModel
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.workflows.advisor import advisor_workflow

TASK = "Explain what a closure is, to somebody who has just learnt functions."


def build(
    human: bool = True, pace: float = 70.0, seed: int = 0, checkpointer: Store | None = None
) -> GraphRunner:
    """The demo's graph.

    Args:
        human: whether a person decides on every verdict.
        pace: tokens a second; 0 writes at once.
        seed: of the pauses between words.
        checkpointer: where threads live.
    """
    script = ScriptedModel(advisor_reply, pace=pace, seed=seed, name="demo/advisor")
    return advisor_workflow(
        Agent("worker", script, role="a writer of short explanations"),
        Agent("advisor", script, role="an advisor who reviews drafts"),
        max_revisions=3,
        human="verdict" if human else None,
        checkpointer=checkpointer,
    )
