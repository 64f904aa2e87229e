"""Run an agent workflow with a human inside the loop.

Public names are loaded when first used, so that `import hitl_tui` and the command line start at
once whatever they need later.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hitl_tui.agents.agent import Agent, aparallel_chat, parallel_chat
    from hitl_tui.agents.backend import ToolCall
    from hitl_tui.agents.cassettes import cassette
    from hitl_tui.agents.mcp import McpServer
    from hitl_tui.agents.scripted import ScriptedModel
    from hitl_tui.agents.tool_calls import ToolRequest
    from hitl_tui.agents.tools import Tool, ToolConfig
    from hitl_tui.engine.graph.builder import StateGraph
    from hitl_tui.engine.graph.compiled import quorum
    from hitl_tui.engine.graph.description import InputField
    from hitl_tui.engine.graph.gates import Gate, GateChoice
    from hitl_tui.engine.graph.retry import RetryPolicy
    from hitl_tui.engine.graph.termination import cost_limit, custom_condition, max_turns, text_match
    from hitl_tui.engine.log.outcomes import ModelUse
    from hitl_tui.engine.log.records import END, START, Checkpoint, Limits
    from hitl_tui.engine.log.requests import Request
    from hitl_tui.engine.nodes.attempt import NodeConfig
    from hitl_tui.engine.nodes.results import Artifact, NodeResult, RunResult, StepResult
    from hitl_tui.engine.runner import GraphRunner
    from hitl_tui.engine.state import reducers
    from hitl_tui.engine.state.channel import Channel
    from hitl_tui.engine.state.reducers import append, last_n
    from hitl_tui.engine.state.workflow_state import WorkflowState
    from hitl_tui.errors import (
        AnswerRefused,
        GraphInvalid,
        HitlError,
        LimitReached,
        LogCorrupt,
        ModelFailed,
        NodeFailed,
        ReadDenied,
        ReducerError,
        ReplayMismatch,
        ReplyIncomplete,
        SchemaMismatch,
        SigningFailed,
        StaleWriter,
        StoreUnusable,
        ThreadBusy,
        UndeclaredChannel,
        UnknownThread,
        UsageError,
        ValueRejected,
        WriteDenied,
    )
    from hitl_tui.signing import AllowedSigners, SshSigner
    from hitl_tui.stores import (
        Checkpointer,
        FileCheckpointer,
        MemoryCheckpointer,
        SQLiteCheckpointer,
        open_store,
    )
    from hitl_tui.team.telemetry import Spans
    from hitl_tui.workflows.advisor import advisor_workflow
    from hitl_tui.workflows.debate import debate_workflow
    from hitl_tui.workflows.planner import planner_workflow
    from hitl_tui.workflows.sequential import sequential_workflow
    from hitl_tui.workflows.supervisor import supervisor_workflow

__version__ = "0.1.0"

_NAMES = {
    "agents.agent": "Agent aparallel_chat parallel_chat",
    "agents.backend": "ToolCall",
    "agents.cassettes": "cassette",
    "agents.mcp": "McpServer",
    "agents.scripted": "ScriptedModel",
    "agents.tool_calls": "ToolRequest",
    "agents.tools": "Tool ToolConfig",
    "engine.graph.builder": "StateGraph",
    "engine.graph.compiled": "quorum",
    "engine.graph.description": "InputField",
    "engine.graph.gates": "Gate GateChoice",
    "engine.graph.retry": "RetryPolicy",
    "engine.graph.termination": "cost_limit custom_condition max_turns text_match",
    "engine.log.outcomes": "ModelUse",
    "engine.log.records": "Checkpoint END Limits START",
    "engine.log.requests": "Request",
    "engine.nodes.attempt": "NodeConfig",
    "engine.nodes.results": "Artifact NodeResult RunResult StepResult",
    "engine.runner": "GraphRunner",
    "engine.state.channel": "Channel",
    "engine.state.reducers": "append last_n",
    "engine.state.workflow_state": "WorkflowState",
    "errors": (
        "AnswerRefused GraphInvalid HitlError LimitReached LogCorrupt ModelFailed NodeFailed ReadDenied "
        "ReducerError ReplayMismatch ReplyIncomplete SchemaMismatch SigningFailed StaleWriter StoreUnusable "
        "ThreadBusy UndeclaredChannel UnknownThread UsageError ValueRejected WriteDenied"
    ),
    "signing": "AllowedSigners SshSigner",
    "team.telemetry": "Spans",
    "stores": "Checkpointer FileCheckpointer MemoryCheckpointer SQLiteCheckpointer open_store",
    "workflows.advisor": "advisor_workflow",
    "workflows.debate": "debate_workflow",
    "workflows.planner": "planner_workflow",
    "workflows.sequential": "sequential_workflow",
    "workflows.supervisor": "supervisor_workflow",
}
"""The public names by the module they are in."""
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "END",
    "START",
    "Agent",
    "AllowedSigners",
    "AnswerRefused",
    "Artifact",
    "Channel",
    "Checkpoint",
    "Checkpointer",
    "FileCheckpointer",
    "Gate",
    "GateChoice",
    "GraphInvalid",
    "GraphRunner",
    "HitlError",
    "InputField",
    "LimitReached",
    "Limits",
    "LogCorrupt",
    "McpServer",
    "MemoryCheckpointer",
    "ModelFailed",
    "ModelUse",
    "NodeConfig",
    "NodeFailed",
    "NodeResult",
    "ReadDenied",
    "ReducerError",
    "ReplayMismatch",
    "ReplyIncomplete",
    "Request",
    "RetryPolicy",
    "RunResult",
    "SQLiteCheckpointer",
    "SchemaMismatch",
    "ScriptedModel",
    "SigningFailed",
    "Spans",
    "SshSigner",
    "StaleWriter",
    "StateGraph",
    "StepResult",
    "StoreUnusable",
    "ThreadBusy",
    "Tool",
    "ToolCall",
    "ToolConfig",
    "ToolRequest",
    "UndeclaredChannel",
    "UnknownThread",
    "UsageError",
    "ValueRejected",
    "WorkflowState",
    "WriteDenied",
    "__version__",
    "advisor_workflow",
    "aparallel_chat",
    "append",
    "cassette",
    "cost_limit",
    "custom_condition",
    "debate_workflow",
    "last_n",
    "max_turns",
    "open_store",
    "parallel_chat",
    "planner_workflow",
    "quorum",
    "reducers",
    "sequential_workflow",
    "supervisor_workflow",
    "text_match",
]


if not TYPE_CHECKING:  # or a type checker would take any name at all for one of ours

    def __getattr__(name: str) -> object:
        if name == "reducers":
            return import_module("hitl_tui.engine.state.reducers")
        if name not in _HOME:
            raise AttributeError(f"module 'hitl_tui' has no attribute {name!r}")
        value: object = getattr(import_module(f"hitl_tui.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
