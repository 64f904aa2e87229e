"""An MCP server of tests: `python mcp_server.py [http PORT]`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("shelf")


@server.tool()
def find(title: str, copies: int = 1) -> str:
    """Find a book."""
    if calls := os.environ.get("CALLS"):
        with Path(calls).open("a") as log:
            log.write(f"{title}\n")
    return f"{copies} of {title} on shelf {os.environ.get('SHELF', '?')}"


@server.tool(name="books.lend")
def lend(title: str) -> dict[str, str]:
    """Lend a book."""
    return {"lent": title}


@server.tool()
def lose(title: str) -> str:
    """Fail."""
    raise ToolError(f"{title} is gone")


@server.tool()
def crash() -> str:
    """End the whole server."""
    print("the shelf fell over", file=sys.stderr, flush=True)
    os._exit(3)


if __name__ == "__main__":
    print("starting up", file=sys.stderr)
    if sys.argv[1:2] == ["http"]:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run()
