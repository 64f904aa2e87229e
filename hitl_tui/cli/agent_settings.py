"""AGENT.SETTING=VALUE on the command line: other models and instructions for agents."""

from __future__ import annotations

import click

agent_option = click.option(
    "--agent",
    "agents",
    metavar="AGENT.SETTING=VALUE",
    multiple=True,
    help="Another model, instructions or temperature for an agent, as worker.model=ollama/llama3.2.",
)
