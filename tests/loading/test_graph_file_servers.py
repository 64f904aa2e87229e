"""MCP servers of a graph file: what its tables become, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitl_tui.agents import Agent
from hitl_tui.errors import GraphInvalid
from hitl_tui.loading.graphfile.agents import Models
from hitl_tui.loading.graphfile.build import load_graph_file
from hitl_tui.stores import MemoryCheckpointer

FILE = """
[channels.reply]

[servers.shelf]
command = ["python", "server.py"]
env = { TOKEN = "$SHELF_TOKEN" }
only = ["find"]
approve = "always"

[servers.docs]
url = "http://localhost:8000/mcp"
headers = { Authorization = "Bearer $DOCS_TOKEN" }

[agents.librarian]
replies = ["found"]
servers = ["shelf", "docs"]

[nodes.ask]
agent = "librarian"
prompt = "Find it."
writes = "reply"

[[edges]]
from = "START"
to = "ask"

[[edges]]
from = "ask"
to = "END"
"""


def load(tmp_path: Path, text: str) -> Agent:
    """The agent of a file with this text."""
    path = tmp_path / "flow.toml"
    path.write_text(text)
    agent = load_graph_file(path, MemoryCheckpointer(), Models()).graph.agents["librarian"]
    assert isinstance(agent, Agent)
    return agent


def test_an_agent_gets_the_servers_that_it_names(tmp_path: Path) -> None:
    shelf, docs = load(tmp_path, FILE)._toolbox.servers
    assert (shelf.command, shelf.approve, shelf.name) == (("python", "server.py"), "always", "shelf")
    assert (docs.url, docs.approve) == ("http://localhost:8000/mcp", None)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('servers = ["shelf", "docs"]', 'servers = ["shell"]', "did you mean 'shelf'"),
        ('"$SHELF_TOKEN"', '"abc123"', "keys don't belong"),
        ('"Bearer $DOCS_TOKEN"', '"Bearer abc123"', "keys don't belong"),
        ('command = ["python", "server.py"]', "", "give it a command or a url"),
        ('url = "http://localhost:8000/mcp"', 'url = "localhost"', "must begin with http"),
    ],
)
def test_mistakes_are_reported_with_their_place(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(GraphInvalid) as problem:
        load(tmp_path, FILE.replace(old, new))
    message = f"{problem.value.message} {problem.value.hint}"
    assert words in message
    assert "flow.toml" in message
