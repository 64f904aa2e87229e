"""Agents: a chat with a model that a node can hold, and scripted models that need no network.

Names are loaded when first used; litellm is imported only when a real model is first called.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hitl_tui.agents.agent import Agent, Reply, aparallel_chat, parallel_chat
    from hitl_tui.agents.backend import ToolCall
    from hitl_tui.agents.cassettes import Cassette, cassette
    from hitl_tui.agents.mcp import McpServer
    from hitl_tui.agents.scripted import ScriptedModel
    from hitl_tui.agents.tools import Tool

__all__ = [
    "Agent",
    "Cassette",
    "McpServer",
    "Reply",
    "ScriptedModel",
    "Tool",
    "ToolCall",
    "aparallel_chat",
    "cassette",
    "parallel_chat",
]

_HOME = {
    "Agent": "agent",
    "Cassette": "cassettes",
    "McpServer": "mcp",
    "Reply": "agent",
    "ScriptedModel": "scripted",
    "Tool": "tools",
    "ToolCall": "backend",
    "aparallel_chat": "agent",
    "cassette": "cassettes",
    "parallel_chat": "agent",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'hitl_tui.agents' has no attribute {name!r}")
    value: object = getattr(import_module(f"hitl_tui.agents.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
