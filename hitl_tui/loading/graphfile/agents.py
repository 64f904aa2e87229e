"""Builds the agents of a graph file, each with its model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from hitl_tui.agents.agent import Agent
from hitl_tui.agents.backend import CallFailed, Message
from hitl_tui.agents.mcp import McpServer
from hitl_tui.agents.scripted import ScriptedModel
from hitl_tui.agents.tools import Tool
from hitl_tui.agents.turns import channel_name
from hitl_tui.engine.graph.termination import pattern_search
from hitl_tui.errors import GraphInvalid
from hitl_tui.loading import toml
from hitl_tui.loading.graphfile.decode import Problems
from hitl_tui.loading.graphfile.functions import find_function
from hitl_tui.loading.graphfile.shape import AgentTable, GraphFile, ReplyTable, ServerTable

_NAMED = ("api_base", "temperature", "max_tokens", "timeout", "num_retries")
_SECRET = re.compile(
    r"(^|[_-])(key|token|secret|password|passwd|credentials?|authorization|bearer)([_-]id)?$", re.IGNORECASE
)


class Models(msgspec.Struct, frozen=True):
    """Models given outside the file.

    Attributes:
        model, api_base, max_tokens: override those of every agent of the file.
        default_model, default_api_base: for agents without their own.
    """

    model: str | None = None
    api_base: str | None = None
    max_tokens: int | None = None
    default_model: str | None = None
    default_api_base: str | None = None


def check_secrets(tables: Mapping[str, Any], problems: Problems) -> None:
    """Report provider keys in the raw tables of agents and servers, since files must not contain keys."""
    for kind in ("agents", "servers"):
        named = tables.get(kind)
        for name, table in named.items() if isinstance(named, dict) else ():
            _check_secrets(table, (kind, name), problems)


def build_agents(file: GraphFile, models: Models, problems: Problems, directory: Path) -> dict[str, Agent]:
    """Return the valid agents by name."""
    servers = _servers(file.servers, directory, problems)
    agents: dict[str, Agent] = {}
    for name, table in file.agents.items():
        path: toml.KeyPath = ("agents", name)
        if table.model and table.replies:
            problems.add((*path, "replies"), "it has a model already", "keep model or replies")
        _check_address(table.api_base, (*path, "api_base"), problems)
        for option in table.options:
            if option in _NAMED:
                problems.add(
                    (*path, "options", option), "it belongs beside model", f"[agents.{name}] {option}"
                )
        model, api_base = _model(name, table, models, problems)
        tools: list[Tool | McpServer] = list(_tools(table, path, directory, problems))
        for number, server in enumerate(table.servers):
            if server not in file.servers:
                problems.unknown((*path, "servers", number), "MCP server", server, file.servers)
            elif server in servers:
                tools.append(servers[server])
        if model is None or problems.under(path):
            continue
        with problems.at((*path, "history")):
            channel_name(table.history or None, name)
        with problems.at((*path, "options") if table.options else (*path, "model")):
            agents[name] = Agent(
                name,
                model,
                table.instructions or None,
                table.role or None,
                tools,
                approve=table.approve,
                history=table.history or None,
                **_options(table, api_base, models.max_tokens),
            )
    return agents


def _servers(tables: Mapping[str, ServerTable], directory: Path, problems: Problems) -> dict[str, McpServer]:
    """Return the valid MCP servers; programs run in the file's directory."""
    servers = {}
    for name, table in tables.items():
        path: toml.KeyPath = ("servers", name)
        _check_address(table.url, (*path, "url"), problems)
        with problems.at(path):
            servers[name] = McpServer(
                name,
                table.command,
                url=table.url,
                env=table.env,
                headers=table.headers,
                cwd=directory,
                only=table.only,
                prefix=table.prefix,
                external=table.external,
                approve=None if table.approve is UNSET else table.approve,
                timeout=table.timeout,
                effects=table.effects,
            )
    return servers


def _tools(table: AgentTable, path: toml.KeyPath, directory: Path, problems: Problems) -> list[Tool]:
    """Return the valid tools; if two have the same name, the second is reported."""
    tools: dict[str, Tool] = {}
    for number, name in enumerate(table.tools):
        at = (*path, "tools", number)
        with problems.at(at):
            tool = Tool(find_function(name, directory))
            if tool.name in tools:
                problems.add(at, f"there is a tool {tool.name!r} already", "give the function another name")
            tools[tool.name] = tool
    for number, name in enumerate(table.effects_once):
        if name in tools:
            tools[name].effects = "once"
        elif not problems.under((*path, "tools")):
            problems.unknown((*path, "effects_once", number), "tool", name, tools)
    return list(tools.values())


def _model(
    name: str, table: AgentTable, models: Models, problems: Problems
) -> tuple[str | ScriptedModel | None, str | None]:
    """Return model and address of an agent.

    An address belongs to its model: the file's address is dropped if the model is overridden.
    """
    if models.model:
        return models.model, models.api_base
    address = models.api_base or table.api_base or None
    if table.model:
        return table.model, address
    if table.replies:
        return _script(name, table.replies, problems), None
    if models.default_model:
        return models.default_model, address or models.default_api_base
    problems.add(("agents", name), "it has no model", 'write model = "...", or give --model')
    return None, None


def _options(table: AgentTable, api_base: str | None, max_tokens: int | None) -> dict[str, Any]:
    named = {name: getattr(table, name) for name in _NAMED if name != "api_base"}
    given = {name: value for name, value in named.items() if value is not UNSET}
    forced = {"api_base": api_base, "max_tokens": max_tokens}
    return table.options | given | {name: value for name, value in forced.items() if value}


def _script(name: str, replies: Sequence[str | ReplyTable], problems: Problems) -> ScriptedModel | None:
    lines: list[tuple[Callable[[str], bool], str]] = []
    for number, reply in enumerate(replies):
        line = ReplyTable(reply) if isinstance(reply, str) else reply
        try:
            lines.append((pattern_search(line.when), line.say))
        except GraphInvalid as error:
            problems.add(("agents", name, "replies", number, "when"), error.message, error.hint)
    return ScriptedModel(_reader(name, lines), name=f"script/{name}") if lines else None


def _reader(
    name: str, lines: Sequence[tuple[Callable[[str], bool], str]]
) -> Callable[[Sequence[Message]], str]:
    """Return a model that picks a reply by the prompt alone, so that a resumed run continues the script."""

    def reply(messages: Sequence[Message]) -> str:
        prompt = messages[-1]["content"]
        for when, say in lines:
            if when(prompt):
                return say
        raise CallFailed(
            f"agent {name!r}: no reply of the script fits the prompt", "add one without `when` at the end"
        )

    return reply


def _check_address(address: str, path: toml.KeyPath, problems: Problems) -> None:
    if address and not address.startswith(("http://", "https://")):
        problems.add(path, "must begin with http:// or https://")
    elif "@" in address:
        problems.add(path, "must not hold a password", "keys come from the environment")


def _check_secrets(value: Any, path: toml.KeyPath, problems: Problems) -> None:
    if isinstance(value, dict):
        for key, member in value.items():
            if _SECRET.search(key) and not _from_environment(member):
                problems.add(
                    (*path, key),
                    "keys don't belong in a graph file",
                    "set it in the environment, as ANTHROPIC_API_KEY",
                )
            else:
                _check_secrets(member, (*path, key), problems)
    elif isinstance(value, list):
        for number, member in enumerate(value):
            _check_secrets(member, (*path, number), problems)


def _from_environment(value: object) -> bool:
    """Whether a text has only variables after an optional word, such as "Bearer $TOKEN"."""
    return isinstance(value, str) and bool(re.fullmatch(r"(\w+ )?\$(\w+|\{\w+\})", value))
