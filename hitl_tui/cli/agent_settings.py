"""AGENT.SETTING=VALUE on the command line: other models and instructions for agents."""

from __future__ import annotations

import json
from typing import Any

import click

from hitl_tui.errors import UsageError

agent_option = click.option(
    "--agent",
    "agents",
    metavar="AGENT.SETTING=VALUE",
    multiple=True,
    help="Another model, instructions or temperature for an agent, as worker.model=ollama/llama3.2.",
)


def read_settings(given: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Settings by agent, from words such as "worker.temperature=0"; "null" takes one back to the graph's.

    Raises:
        UsageError: not of this form.
    """
    found: dict[str, dict[str, Any]] = {}
    for word in given:
        name, equals, value = word.partition("=")
        agent, dot, setting = name.rpartition(".")
        if not (equals and dot and agent and setting):
            raise UsageError(
                f"{word!r} is no setting of an agent", "write AGENT.SETTING=VALUE, as worker.temperature=0"
            )
        found.setdefault(agent, {})[setting] = _value(setting, value)
    return found


def _value(setting: str, text: str) -> Any:
    if text == "null":
        return None
    if setting != "temperature":
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise UsageError(f"temperature={text}: give a number", "as worker.temperature=0.2") from None
