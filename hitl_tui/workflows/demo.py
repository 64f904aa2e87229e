"""The demo: the advisor workflow with scripted models, at the pace of real ones, or with a real one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hitl_tui.agents.agent import Agent
from hitl_tui.agents.backend import Message
from hitl_tui.agents.scripted import ScriptedModel
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.workflows.advisor import advisor_workflow

TASK = "Explain what a closure is, to somebody who has just learnt functions."


def build(
    human: bool = True,
    pace: float = 70.0,
    seed: int = 0,
    checkpointer: Store | None = None,
    *,
    model: str | None = None,
    api_base: str | None = None,
    max_tokens: int | None = None,
) -> GraphRunner:
    """Build the demo's graph.

    Args:
        human: whether a person decides on every verdict.
        pace: tokens a second; 0 writes at once.
        seed: for the pauses between words.
        checkpointer: the store of threads.
        model: plays both parts instead of the script.
        api_base: the address of the model's server.
        max_tokens: most tokens of a reply of the model.
    """
    player: str | ScriptedModel = model or ScriptedModel(_reply, pace=pace, seed=seed, name="demo/advisor")
    given = {"api_base": api_base, "max_tokens": max_tokens}
    options: dict[str, Any] = {name: value for name, value in given.items() if model and value is not None}
    return advisor_workflow(
        Agent("worker", player, role="a writer of short explanations", **options),
        Agent("advisor", player, role="an advisor who reviews drafts", **options),
        max_revisions=3,
        human="verdict" if human else None,
        checkpointer=checkpointer,
    )


def _reply(messages: Sequence[Message]) -> str:
    from hitl_tui.agents.demo import advisor_reply

    return advisor_reply(messages)
