"""Agents: a chat with a model that a node can hold, and scripted models that need no network.

Names are loaded when first used; litellm is imported only when a real model is first called.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hitl_tui.agents.agent import Agent
    from hitl_tui.agents.backend import ToolCall
    from hitl_tui.agents.scripted import ScriptedModel
    from hitl_tui.agents.tools import Tool

__all__ = ["Agent", "ScriptedModel", "Tool", "ToolCall"]

_HOME = {"Agent": "agent", "ScriptedModel": "scripted", "Tool": "tools", "ToolCall": "backend"}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'hitl_tui.agents' has no attribute {name!r}")
    value: object = getattr(import_module(f"hitl_tui.agents.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
