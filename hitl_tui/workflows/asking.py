"""How workflows talk to agents and read messages."""

from __future__ import annotations

import inspect
from typing import Any


async def ask(agent: Any, prompt: str) -> str:
    """An agent's reply, by `achat` where it has one (so that other work goes on), else by `chat`."""
    reply = agent.achat(prompt) if hasattr(agent, "achat") else agent.chat(prompt)
    return str(await reply if inspect.isawaitable(reply) else reply)


def text_of(message: Any) -> str:
    """The text of an entry of a messages channel: a text, or a dict with `content`."""
    if isinstance(message, dict):
        return str(message.get("content", ""))
    return str(message)
