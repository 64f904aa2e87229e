"""MCP servers: programs and addresses that offer tools through the Model Context Protocol (extra `mcp`)."""

from __future__ import annotations

import asyncio
import atexit
import os
import string
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from hitl_tui.agents.tools import (
    Approve,
    BadArguments,
    Effects,
    PreparedCall,
    Tool,
    ToolConfig,
    check_approve,
    checked_effects,
)
from hitl_tui.declared import declares
from hitl_tui.engine.nodes.calling import call
from hitl_tui.errors import HitlError, UsageError

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult
    from mcp.types import Tool as OfferedTool

_STARTS_WITHIN = 30.0
"""Seconds within which a server must have started and listed its tools."""
_ENDS_WITHIN = 5.0
_PAGES = 100
_LAST_WORDS = 500
_ALLOWED: Final = frozenset(string.ascii_letters + string.digits + "_-")


class ServerFailed(HitlError):
    """An MCP server did not start, broke the protocol or disappeared."""

    title = "The MCP server failed"


class ServerWentAway(ServerFailed):
    """A server returned no result of a call; it is unknown whether the tool ran."""


class McpServer:
    """A server whose tools an agent may call like its own: with the same approval, taint and record.

    It is started (or connected to) once per process, before an agent's first model call.

    Args:
        name: its name in errors and on the agent's page.
        command: a program and its arguments, used through its standard input and output.
        url: the address of a server, used through HTTP; instead of `command`.
        env: variables for the program, besides the few that every program needs, such as PATH and HOME.
        headers: of every request to the address.  `$NAME` in them and in `env` is replaced by that variable
            of this process, so that files need no keys.
        cwd: the program's working directory; the current one by default.
        only: the tools to offer, by the server's names; all by default.
        prefix: put before the tools' names, in case two servers have the same.
        external, approve, timeout, effects: of its tools, as for `Tool`; the server's own claims about its
        tools
            are not trusted.

    Raises:
        UsageError: neither command nor url, or both, or an invalid rule.
    """

    @declares(UsageError)
    def __init__(
        self,
        name: str,
        command: Sequence[str] = (),
        *,
        url: str = "",
        env: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        only: Sequence[str] = (),
        prefix: str = "",
        external: bool = True,
        approve: Approve | None = None,
        timeout: float | None = 60.0,
        effects: Effects = "repeatable",
    ) -> None:
        if bool(command) == bool(url) or isinstance(command, str):
            raise UsageError(
                f"MCP server {name!r}: give it a command or a url",
                'as command=["python", "server.py"] or url="http://localhost:8000/mcp"',
            )
        if url and not url.startswith(("http://", "https://")):
            raise UsageError(f"MCP server {name!r}: url={url!r} must begin with http:// or https://")
        check_approve(approve)
        self.name = name
        self.command = tuple(command)
        self.url = url
        self.external = external
        self.approve = approve
        self.timeout = timeout
        self.effects = checked_effects(effects)
        self.tools: Mapping[str, Tool] = {}
        """Those that it has listed, by the names that models are told; empty before it was started."""
        self._env = dict(env or {})
        self._headers = dict(headers or {})
        self._cwd = cwd
        self._only = tuple(only)
        self._prefix = prefix
        self._connection: _Connection | None = None
        _servers.add(self)

    def __repr__(self) -> str:
        return f"McpServer({self.name!r}, {list(self.command) or self.url!r})"

    async def list(self) -> Mapping[str, Tool]:
        """Return its tools by their names for models; starts the server if needed.

        Raises:
            ServerFailed: it can't be started, or lists invalid tools.
            UsageError: the extra is not installed, a variable is not set, or a tool of `only` is missing.
        """
        connection = self._connection
        if connection is None or not connection.live:
            connection = self._connection = _Connection(self)
        await connection.ready()
        return self.tools

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool by the server's name for it; returns its result as text for the model.

        Raises:
            ServerWentAway: it returned no result; it is unknown whether the tool ran.
            ServerFailed: it can't be started, or refuses the call.
            ToolRefused: the tool reports a failure.
        """
        await self.list()
        assert self._connection is not None
        return _as_text(await self._connection.call(tool, arguments))

    async def close(self) -> None:
        """Stop the server; the next call starts it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def take(self, offered: Sequence[OfferedTool]) -> None:
        """Set the tools that the server lists.

        Raises:
            ServerFailed: a schema is invalid, or two tools have the same name for models.
            UsageError: a tool of `only` is missing.
        """
        known = {tool.name: tool for tool in offered}
        for name in self._only:
            if name not in known:
                raise UsageError(
                    f"MCP server {self.name!r} has no tool {name!r}", f"it has: {', '.join(known) or 'none'}"
                )
        tools: dict[str, Tool] = {}
        for tool in offered:
            if self._only and tool.name not in self._only:
                continue
            theirs = McpTool(self, tool, self._prefix)
            if theirs.name in tools:
                raise ServerFailed(f"MCP server {self.name!r} has two tools named {theirs.name!r}")
            tools[theirs.name] = theirs
        self.tools = tools

    def target(self) -> Any:
        """Return the transport for the MCP client, with the variables filled in."""
        try:
            from httpx2 import AsyncClient, Timeout
            from mcp import StdioServerParameters
            from mcp.client.streamable_http import streamable_http_client
        except ImportError as error:
            raise UsageError(
                f"MCP server {self.name!r}: {error}", 'pip install "hitl-tui[mcp]" speaks the protocol'
            ) from None
        if self.url:
            # A server may keep a stream open for long; tools have their own timeouts.
            client = AsyncClient(headers=self._filled(self._headers), timeout=Timeout(30.0, read=300.0))
            return streamable_http_client(self.url, http_client=client)
        program, *arguments = self.command
        return StdioServerParameters(
            command=program, args=arguments, env=self._filled(self._env), cwd=self._cwd
        )

    def _filled(self, values: Mapping[str, str]) -> dict[str, str]:
        try:
            return {name: string.Template(value).substitute(os.environ) for name, value in values.items()}
        except KeyError as error:
            raise UsageError(
                f"MCP server {self.name!r}: the variable {error.args[0]} is not set", "export it before"
            ) from None
        except ValueError as error:
            raise UsageError(f"MCP server {self.name!r}: {error}", "write $$ for a dollar") from None


class ToolRefused(HitlError):
    """A tool of an MCP server reports a failure; the text is for the model that called it."""

    title = "The tool failed"


class McpTool(Tool):
    """A tool of an MCP server, with the server's name and description."""

    def __init__(self, server: McpServer, offered: OfferedTool, prefix: str) -> None:
        # Its description comes from the server, not from a function's signature.
        theirs = "".join(letter if letter in _ALLOWED else "_" for letter in f"{prefix}{offered.name}")[:64]
        self.name = theirs if not theirs[:1].isdigit() and theirs[:1] != "-" else f"_{theirs}"[:64]
        self.description = offered.description or ""
        self.external = server.external
        self.approve = server.approve
        self.timeout = server.timeout
        self.effects = server.effects
        self.parameters = offered.input_schema
        self._server = server
        self._theirs = offered.name
        try:
            _ = self._validator
        except Exception as error:
            raise ServerFailed(
                f"MCP server {server.name!r}: the schema of its tool {offered.name!r} can't be used: {error}",
                "leave the tool out: only=[...] names those that are offered",
            ) from None

    def prepare(self, arguments: Mapping[str, Any]) -> PreparedCall:
        """Return the call's arguments, with the defaults from the schema."""
        properties = self.parameters.get("properties")
        defaults = {
            name: schema["default"]
            for name, schema in (properties.items() if isinstance(properties, Mapping) else ())
            if isinstance(schema, Mapping) and "default" in schema and name not in arguments
        }
        filled = {**arguments, **defaults}
        try:
            self.check(filled)
        except BadArguments:  # a default that violates the server's own schema
            filled = dict(arguments)
        return PreparedCall(filled, filled)

    async def call(self, prepared: PreparedCall, config: ToolConfig | None = None) -> str:
        """Call the tool; raises what `McpServer.call` raises."""
        arguments = self._theirs, prepared.keywords
        return str(await call(self._server.call, arguments, None, self.timeout))


class _Connection:
    """One run of a server, held by its own task: the task that enters the MCP client must also exit it."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self.loop = asyncio.get_running_loop()
        self._client: Client | None = None
        self._leave = asyncio.Event()
        self._ready: asyncio.Future[None] = self.loop.create_future()
        self._task = self.loop.create_task(self._keep())

    @property
    def live(self) -> bool:
        """Whether it runs; False in a forked child process."""
        over = self._task.done() or self._leave.is_set()
        return not over and self.loop is asyncio.get_running_loop()

    async def ready(self) -> None:
        """Wait until the tools are listed; raises the error of starting."""
        await asyncio.shield(self._ready)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Call a tool; raises what `McpServer.call` raises."""
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR, PARSE_ERROR, REQUEST_TIMEOUT

        assert self._client is not None
        try:
            return await self._client.call_tool(tool, dict(arguments))
        except MCPError as error:
            if error.error.code != CONNECTION_CLOSED:
                # The client itself uses these codes if an answer is late, invalid, or HTTP 5xx.
                is_unknown = error.error.code in (REQUEST_TIMEOUT, PARSE_ERROR, INTERNAL_ERROR)
                failure = ServerWentAway if is_unknown else ServerFailed
                raise failure(f"MCP server {self._server.name!r}, tool {tool!r}: {error}") from None
            self._leave.set()
            raise ServerWentAway(f"MCP server {self._server.name!r} went away while {tool!r} ran") from None

    async def close(self) -> None:
        """Stop the server, by force if needed."""
        self._leave.set()
        with suppress(TimeoutError, Exception):
            await asyncio.wait_for(self._task, _ENDS_WITHIN)

    async def _keep(self) -> None:
        import tempfile

        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as words:
            try:
                await self._serve(words)
            except BaseException as error:
                if not self._ready.done():
                    self._ready.set_exception(self._failure(error, words))
                    self._ready.exception()  # raised where somebody waits for it
                if isinstance(error, asyncio.CancelledError):
                    raise

    async def _serve(self, words: TextIO) -> None:
        target = self._server.target()
        from mcp import Client
        from mcp.client.stdio import StdioServerParameters, stdio_client

        if isinstance(target, StdioServerParameters):
            target = stdio_client(target, errlog=words)
        async with asyncio.timeout(_STARTS_WITHIN) as starting:
            async with Client(target) as client:
                self._server.take(await _listed(client))
                starting.reschedule(None)
                self._client = client
                self._ready.set_result(None)
                await self._leave.wait()

    def _failure(self, error: BaseException, words: TextIO) -> HitlError:
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        if isinstance(error, HitlError):
            return error
        words.flush()
        words.seek(0, os.SEEK_END)
        words.seek(max(0, words.tell() - _LAST_WORDS))
        said = words.read().strip()
        why = (
            f"it was not there within {_STARTS_WITHIN:g} s"
            if isinstance(error, TimeoutError)
            else _reason(error)
        )
        hint = f"its last words: {said}" if said else "see that it starts by itself"
        where = " ".join(self._server.command) or self._server.url
        return ServerFailed(f"MCP server {self._server.name!r} ({where}) did not start: {why}", hint)


async def _listed(client: Client) -> list[OfferedTool]:
    tools: list[OfferedTool] = []
    cursor = None
    for _ in range(_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return tools


def _as_text(result: CallToolResult) -> str:
    """Return a result as text for a model: its texts, and a placeholder for other content."""
    parts = []
    for part in result.content:
        if part.type == "text":
            parts.append(part.text)
        elif part.type == "resource" and hasattr(part.resource, "text"):
            parts.append(part.resource.text)
        else:
            kind = getattr(part, "mime_type", None) or getattr(part, "uri", "")
            parts.append(f"[{part.type} {kind}]".replace(" ]", "]"))
    text = "\n".join(parts)
    if result.is_error:
        raise ToolRefused(text or "it did not say why")
    return text


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__


_servers: weakref.WeakSet[McpServer] = weakref.WeakSet()


def _close_all() -> None:
    """Stop all servers when this process ends."""
    running = [connection for server in _servers if (connection := server._connection) is not None]
    for closing in [asyncio.run_coroutine_threadsafe(each.close(), each.loop) for each in running]:
        with suppress(Exception):
            closing.result(_ENDS_WITHIN)


atexit.register(_close_all)
