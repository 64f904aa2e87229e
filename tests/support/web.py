"""A server of pages in this process, with a small program in the place of the app, and a client for it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from hitl_tui.team.web.tokens import KnownTokens, TokenFile
from hitl_tui.team.web.web_server import PageLink, Proxy, Serving, WebServer

ECHO = r"""
import json, os, signal, sys
def put(kind, data):
    sys.stdout.buffer.write(kind + len(data).to_bytes(4, "big") + data)
    sys.stdout.buffer.flush()
sys.stdout.buffer.write(b"__GANGLION__\n")
size = os.environ["COLUMNS"] + "x" + os.environ["ROWS"]
put(b"D", json.dumps([os.environ["HITL_TUI_REVIEWER"], sys.argv[1:], size, os.getpid()]).encode())
while True:
    head = sys.stdin.buffer.read(5)
    if len(head) < 5:
        break
    data = sys.stdin.buffer.read(int.from_bytes(head[1:], "big"))
    if data == b"die":
        sys.stderr.write("\x1b[31mthe last words")
        sys.exit(1)
    if data == b"hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        put(b"D", b"hangs")
        while True:
            signal.pause()
    if data == b"flood":
        put(b"D", b"x" * 3_000_000)
    elif data == b"give":
        start = {"type": "deliver_file_start", "key": "k", "path": "/tmp/a picture\n.svg"}
        put(b"M", json.dumps(start).encode())
    elif b"deliver_chunk_request" in data:
        chunk, pieces = (b"5:<svg>", 1) if not globals().get("given") else (b"0:", 0)
        given = True
        put(b"P", b"ts13:deliver_chunks1:k" + chunk + b"e")
    else:
        put(b"D", head[:1] + data)
"""


def echo(link: PageLink) -> list[str]:
    """The small program: it paints who sees it and what it was told to open, then what it gets."""
    names = [name for name in (link.thread, link.request) if name]
    return [sys.executable, "-ISc", ECHO, "--", *names]


def environment(name: str) -> dict[str, str]:
    return {**os.environ, "HITL_TUI_REVIEWER": name}


class Desk:
    """A running server and people who come to it."""

    def __init__(self, server: WebServer, tokens: Mapping[str, str]) -> None:
        self.server = server
        self.tokens = tokens
        self.clients: list[aiohttp.ClientSession] = []

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server.port}"

    def client(self, address: str = "127.0.0.1") -> aiohttp.ClientSession:
        """Somebody new, who comes from an address."""
        client = aiohttp.ClientSession(
            self.url,
            cookie_jar=aiohttp.CookieJar(unsafe=True),
            connector=aiohttp.TCPConnector(local_addr=(address, 0)),
            headers={"Origin": self.url},
        )
        self.clients.append(client)
        return client

    async def log_in(
        self, client: aiohttp.ClientSession, token: str, to: str = "/"
    ) -> aiohttp.ClientResponse:
        """Send the form."""
        return await client.post("/login", data={"token": token, "to": to}, allow_redirects=False)

    async def as_person(self, name: str = "ann") -> aiohttp.ClientSession:
        """Somebody who has logged in."""
        client = self.client()
        assert (await self.log_in(client, self.tokens[name])).status == 303
        return client


@asynccontextmanager
async def serving(
    folder: Path, *, tokens: KnownTokens | None = None, proxy: Proxy | None = None, **options: Any
) -> AsyncIterator[Desk]:
    """A server at a free port; ann and bob have tokens, where nothing else says who asks."""
    given: dict[str, str] = {}
    if tokens is None and proxy is None:
        file = TokenFile(folder / "tokens.json")
        given = {name: file.add(name) for name in ("ann", "bob")}
        tokens = file
    how = {"command": echo, "environment": environment, "host": "127.0.0.1", "port": 0, **options}
    server = WebServer(Serving(**how), tokens, proxy)
    await server.start()
    desk = Desk(server, given)
    try:
        yield desk
    finally:
        for client in desk.clients:
            await client.close()
        async with asyncio.timeout(60):
            await server.close()


async def painted(socket: aiohttp.ClientWebSocketResponse, wanted: bytes = b"") -> bytes:
    """What is painted, until a text is among it; all of it up to the end for b""."""
    seen = b""
    while True:
        message = await socket.receive(30)
        if message.type is not aiohttp.WSMsgType.BINARY:
            assert not wanted, f"it ended with {message} after {seen!r}"
            return seen
        seen += message.data
        if wanted and wanted in seen:
            return seen
