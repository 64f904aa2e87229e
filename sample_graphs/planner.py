"""A planner, two workers and an evaluator; you see each plan before it runs.

    hitl-tui run sample_graphs/planner.py --input task="Write a short report on tidy data"
    hitl-tui run sample_graphs/planner.py --model anthropic/claude-sonnet-4-5

A plan has one `worker: instruction` per line. Any other line fails the thread with an error that quotes it;
`e` opens the plan, and the run continues from there without asking the planner again.
Without --model scripts play the agents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hitl_tui import Agent, GraphRunner, ScriptedModel, planner_workflow

INSTRUCTIONS = {
    "planner": (
        "Break the task into steps for researcher and writer. Answer with one step a line, as in "
        "`researcher: what to find out`, and with nothing else."
    ),
    "researcher": "Answer with short notes.",
    "writer": "Write clearly. Return the text alone.",
    "evaluator": (
        "Compare the results with the task. Reply 'done' if it is complete, or 'replan:' and what is missing."
    ),
}
# What each agent says: the first text whose condition is in the prompt.
SCRIPTS = {
    "planner": [
        (
            "Make a new plan",
            (
                "1. researcher: Find a table that is not tidy, as an example.\n"
                "2. writer: Add this example to the report: sales with a column for each month."
            ),
        ),
        (
            "",
            (
                "1. researcher: Find out what makes data tidy: rows, columns, tables.\n"
                "2. writer: Write a report of three sentences on what tidy data saves."
            ),
        ),
    ],
    "researcher": [
        ("not tidy", '- sales with a column for each month: nothing can plot "month"'),
        (
            "",
            (
                "- each row is one observation\n"
                "- each column is one variable\n"
                "- each table is one kind of thing"
            ),
        ),
    ],
    "writer": [
        (
            "example",
            (
                'Take sales with a column for each month: "month" is no column, so nothing can plot it. One '
                "row for each shop and month, and everything can."
            ),
        ),
        (
            "",
            (
                "Tidy data has one observation a row and one variable a column. Every tool that groups, joins"
                " or plots expects just that. What you save is the afternoon of reshaping before each of "
                "them."
            ),
        ),
    ],
    "evaluator": [
        ("nothing can plot it", "Complete, and the example carries it: done"),
        ("", "replan: a report on tidy data needs an example of data that is not"),
    ],
}


def rehearse(name: str) -> Callable[[Sequence[Mapping[str, str]]], str]:
    """Return an agent's script. It depends only on the prompt, so a run resumed elsewhere continues it."""

    def reply(messages: Sequence[Mapping[str, str]]) -> str:
        prompt = messages[-1]["content"]
        return next(say for when, say in SCRIPTS[name] if when in prompt)

    return reply


def build(model: str | None = None, api_base: str | None = None) -> GraphRunner:
    """Return the workflow; scripts play the agents unless a model is given."""
    server = {"api_base": api_base} if api_base else {}

    def agent(name: str) -> Agent:
        script = ScriptedModel(rehearse(name), name=f"script/{name}")
        return Agent(name, model or script, INSTRUCTIONS[name], **server)

    return planner_workflow(
        agent("planner"),
        [agent("researcher"), agent("writer")],
        agent("evaluator"),
        max_replans=2,
        max_steps=6,
        human="both",
    )
