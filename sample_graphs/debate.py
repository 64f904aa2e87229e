"""Two sides take turns before a judge; after each round you can end the debate or add a round.

    hitl-tui run sample_graphs/debate.py --input task="Proposition: tests come before code"
    hitl-tui run sample_graphs/debate.py --model anthropic/claude-sonnet-4-5

The word "done" in the judge's reply ends the debate.  Without a judge there is a fixed number of rounds.
Without --model scripts play the agents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hitl_tui import Agent, GraphRunner, ScriptedModel, debate_workflow

INSTRUCTIONS = {
    "pro": "Argue for the proposition. At most three sentences.",
    "con": "Argue against the proposition. At most three sentences.",
    "judge": (
        "You moderate. If both sides have made their points, sum up in a sentence and end with the "
        "word: done. Otherwise say what is still open and end with the word: continue."
    ),
}
# What each agent says: the first text whose condition is in the prompt.
SCRIPTS = {
    "pro": [
        (
            "Tests freeze",
            (
                "They freeze what they look at, so look at what you promise: behaviour, not insides. Such a "
                "test survives every rewrite, and is why you dare one."
            ),
        ),
        ("", "A test written first says what you want before you are in love with how you did it."),
    ],
    "con": [
        (
            "behaviour, not insides",
            (
                "Agreed for what is promised. But a sketch promises nothing yet; there I learn more from "
                "running it than from guessing what it should answer."
            ),
        ),
        ("", "Tests freeze an interface on the day you know least about it."),
    ],
    "judge": [
        (
            "a sketch promises nothing",
            "They meet: test first what you promise, sketch first what you do not know yet. done",
        ),
        ("", "Neither has said what should be tested at all. continue"),
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

    return debate_workflow([agent("pro"), agent("con")], judge=agent("judge"), max_rounds=3, human="round")
