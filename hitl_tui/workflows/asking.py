"""How workflows talk to agents and read messages."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any


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


def task_of(messages: Sequence[Any] | None, since: int, invocation: int) -> str:
    """The task of an invocation: the first message, or on a later one what stood last when it began.

    Args:
        since: messages added since this invocation began.
    """
    if not messages:
        return ""
    first = 0 if invocation == 1 else max(0, len(messages) - since - 1)
    return text_of(messages[first])
