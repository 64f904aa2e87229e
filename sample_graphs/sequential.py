"""Three agents in a row; you accept, edit or replace what each hands to the next.

    hitl-tui run sample_graphs/sequential.py --input task="Write a short post about tidy data"
    hitl-tui run sample_graphs/sequential.py --model anthropic/claude-sonnet-4-5

Each agent gets only the last message. If you edit `output` at a hand-over, the next agent gets your text.
Without --model scripts play the agents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hitl_tui import Agent, GraphRunner, ScriptedModel, sequential_workflow

INSTRUCTIONS = {
    "drafter": "Write a first draft of what you are asked for. Return the text alone.",
    "reviewer": "Review the draft. Return it with your suggestions below it.",
    "polisher": "Meet the suggestions and return the finished text alone.",
}
# What each agent says: the first text whose condition is in the prompt.
SCRIPTS = {
    "drafter": [
        (
            "",
            (
                "Tidy data is data in a table where every row is one observation and every column one thing "
                "you measured. Most tools like that shape. Messy tables cost an afternoon; tidy ones cost a "
                "habit."
            ),
        ),
    ],
    "reviewer": [
        (
            "",
            (
                "Tidy data is data in a table where every row is one observation and every column one thing "
                "you measured. Most tools like that shape. Messy tables cost an afternoon; tidy ones cost a "
                "habit.\n"
                "\n"
                "Suggestions:\n"
                "- begin with the afternoon, it is the best line\n"
                "- give one example of a messy table\n"
                '- say what "like that shape" means'
            ),
        ),
    ],
    "polisher": [
        (
            "",
            (
                "A messy table costs an afternoon; a tidy one costs a habit. Take sales with a column for "
                'each month: nothing can plot "month", because it is not a column. Tidy it to one row for '
                "each shop and month, and every tool that groups, joins or plots works on it as it is."
            ),
        ),
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

    return sequential_workflow([agent("drafter"), agent("reviewer"), agent("polisher")], human="handover")
