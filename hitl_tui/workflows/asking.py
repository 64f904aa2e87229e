"""How workflows talk to agents: prompts with fields, replies, and what stands in messages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hitl_tui.engine.channels.state import WorkflowState
from hitl_tui.engine.nodes.attempt import NodeConfig
from hitl_tui.errors import GraphInvalid, in_words
from hitl_tui.suggest import did_you_mean

_FIELD = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")


def prompts_for(workflow: str, own: Mapping[str, str], given: Mapping[str, str] | None) -> dict[str, str]:
    """The prompts of a workflow, with those that a user gives in place of its own.

    A name in braces is a field that is filled in, `{{name}}` stands for `{name}`; other braces mean nothing.

    Args:
        own: the workflow's prompts by name; each has all the fields that may be used in its place.

    Raises:
        GraphInvalid: no such prompt, no text, or a field that the prompt does not have.
    """
    if given is None:
        return dict(own)
    if not isinstance(given, Mapping):
        raise GraphInvalid(f"prompts is {in_words(given)}", f"give a dict by name: {', '.join(own)}")
    for name, text in given.items():
        if name not in own:
            close = did_you_mean(str(name), own)
            raise GraphInvalid(
                f"the {workflow} workflow has no prompt {name!r}", close or f"prompts: {', '.join(own)}"
            )
        if not isinstance(text, str):
            raise GraphInvalid(f"prompts: {name} is {in_words(text)}", "give a text")
        fields = _fields(own[name])
        for field in _fields(text):
            if field not in fields:
                raise GraphInvalid(
                    f"prompts: {name} has no field {{{field}}}",
                    f"fields: {', '.join(fields)}; {{{{{field}}}}} stands for the braces themselves",
                )
    return {**own, **given}


def fill(prompt: str, **fields: Any) -> str:
    """A prompt with its fields filled in; what is filled in is not looked at again."""
    return _FIELD.sub(lambda at: str(fields[at[2]]) if at[2] else f"{{{at[1]}}}", prompt)


def _fields(prompt: str) -> list[str]:
    return list(dict.fromkeys(at[2] for at in _FIELD.finditer(prompt) if at[2]))


def with_roles(team: Mapping[str, Any]) -> str:
    """A team for a prompt: a name a line, with the agent's role where it has one."""
    roles = {name: getattr(agent, "role", None) for name, agent in team.items()}
    return "\n".join(f"- {name}: {role}" if role else f"- {name}" for name, role in roles.items())


async def ask(agent: Any, prompt: str) -> str:
    """An agent's reply, by `achat` where it has one (so that other work goes on), else by `chat`."""
    reply = agent.achat(prompt) if hasattr(agent, "achat") else agent.chat(prompt)
    return str(await reply if inspect.isawaitable(reply) else reply)


async def ask_alone(agent: Any, prompt: str) -> str:
    """As `ask`, with nothing but the prompt: the chat so far is forgotten.

    What an agent knows is then the state alone, so a run that is resumed in another process, or
    forked, asks exactly what it would have asked here.
    """
    if hasattr(agent, "set_turns"):
        agent.set_turns([])
    return await ask(agent, prompt)


def text_of(message: Any) -> str:
    """The text of an entry of a messages channel: a text, or a dict with `content`."""
    if isinstance(message, dict):
        return str(message.get("content", ""))
    return str(message)


def last_of(messages: Sequence[Any] | None) -> str:
    """The text of the last message, "" where there is none."""
    return text_of(messages[-1]) if messages else ""


def history(messages: Sequence[Any] | None) -> str:
    """All messages, joined by newlines."""
    return "\n".join(text_of(message) for message in messages or ())


def task_of(state: WorkflowState, config: NodeConfig) -> str:
    """The task of an invocation: its first message (SPEC 15).

    As it stands in `messages` while that holds it, so that an edit counts, else as the log has it.
    """
    task = config.first_input("messages")
    if task is not None:
        return text_of(task)
    messages = state["messages"]
    return text_of(messages[0]) if messages else ""
