"""A worker writes, an advisor judges, and you decide on every verdict.

    hitl-tui run sample_graphs/advisor.py --input task="Explain closures to a beginner"
    hitl-tui run sample_graphs/advisor.py --model openai/gpt-4o-mini --input task="..."
    hitl-tui run sample_graphs/advisor.py --model ollama/llama3.2
    hitl-tui run sample_graphs/advisor.py --model openai/local --api-base http://localhost:8000/v1

Without --model a script plays both parts.  A real model needs its provider's key in the environment.
"""

from __future__ import annotations

from hitl_tui import Agent, GraphRunner, advisor_workflow

WORKER = (
    "You write short explanations in plain words. Return the text alone, without a preface. "
    "When you are given feedback, rewrite the text so that it meets the feedback."
)
ADVISOR = (
    "You review short explanations. If the text is correct, concrete and easy to follow, reply with the "
    "single word APPROVED. Otherwise reply with 'revise:' and the one change that matters most."
)


def build(
    model: str = "demo/advisor",
    advisor_model: str | None = None,
    api_base: str | None = None,
    max_tokens: int | None = None,
) -> GraphRunner:
    """Return the workflow on a model of your choice; the advisor can have another one than the worker."""
    given = {"api_base": api_base, "max_tokens": max_tokens}
    options = {name: value for name, value in given.items() if value is not None}
    return advisor_workflow(
        Agent("worker", model, instructions=WORKER, **options),
        Agent("advisor", advisor_model or model, instructions=ADVISOR, **options),
        max_revisions=3,
        human="verdict",
    )
