"""A manager chooses a researcher or a writer, and you can overrule each choice.

    hitl-tui run sample_graphs/supervisor.py --input task="Explain what a closure is"
    hitl-tui run sample_graphs/supervisor.py --model anthropic/claude-sonnet-4-5

The first worker that the manager's reply names as a whole word is next; if it names none, the run ends. Each
step shows the reason above its changes, such as “next: writer (named at character 39 of the reply)”.
Without --model scripts play the agents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hitl_tui import Agent, GraphRunner, ScriptedModel, supervisor_workflow

INSTRUCTIONS = {
    "manager": (
        "You coordinate a team: researcher and writer. Reply with the name of the one who is next, "
        "and why. When the work is complete, reply DONE and name nobody."
    ),
    "researcher": "Research the task and return short notes.",
    "writer": "Turn the notes into a short, readable text.",
}
# What each agent says: the first text whose condition is in the prompt.
SCRIPTS = {
    "manager": [
        ("Imagine a lunch box", "That says it all in four sentences. DONE"),
        ("a function that remembers", "Good notes, and enough of them. Next is the writer."),
        ("", "Nobody knows anything yet, so the researcher begins."),
    ],
    "researcher": [
        (
            "",
            (
                "- a closure is a function that remembers the names around it\n"
                "- it keeps them after the outer function has returned\n"
                "- use: counters, callbacks, a function with one argument fixed"
            ),
        ),
    ],
    "writer": [
        (
            "",
            (
                "Imagine a lunch box that a function packs before it leaves home. Inside are the names it "
                "will need later. The kitchen may be closed by then; the box is still full. Such a function "
                "with its box is a closure."
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

    return supervisor_workflow(
        agent("manager"), [agent("researcher"), agent("writer")], max_rounds=10, human="route"
    )
