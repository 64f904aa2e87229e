"""Every subcommand on threads of LangGraph: it works, or it is refused in words, with an exit code."""

from __future__ import annotations

import runpy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("langgraph.checkpoint.sqlite")

from langgraph.checkpoint.memory import InMemorySaver

from hitl_tui.cli.main import COMMANDS
from tests.cli.test_langgraph import STORE, flow
from tests.drivers.langgraph.graph_server import serving
from tests.support.commands import App

__all__ = ["flow"]

DONE, FAILED, USAGE, WAITING = 0, 1, 2, 3
ON_THREADS: dict[str, tuple[int, tuple[str, ...]]] = {
    "agents": (DONE, ("THREAD",)),
    "allow": (DONE, ("THREAD", "--list")),
    "anchor": (DONE, ("THREAD",)),
    "answer": (DONE, ("THREAD", "REQUEST", "yes", "--step", "1")),
    "approve": (USAGE, ("THREAD",)),
    "artifacts": (DONE, ("THREAD",)),
    "blame": (DONE, ("THREAD", "lines")),
    "cancel": (DONE, ("THREAD",)),
    "change-agent": (USAGE, ("THREAD", "writer", "model=x")),
    "claim": (DONE, ("THREAD",)),
    "clear-turns": (USAGE, ("THREAD", "writer")),
    "copy": (DONE, ("THREAD", "card")),
    "cost": (DONE, ("THREAD",)),
    "decide": (WAITING, ("THREAD", "--answer", "yes", "--yes")),
    "decisions": (FAILED, ()),
    "stats": (DONE, ()),
    "declassify": (USAGE, ("THREAD", "task", "--reason", "known")),
    "delete": (USAGE, ("THREAD", "--yes")),
    "deleted": (DONE, ()),
    "diff": (DONE, ("THREAD@0", "THREAD@1")),
    "export": (DONE, ("THREAD", "out.jsonl")),
    "extend": (USAGE, ("THREAD", "max_iterations=3")),
    "find": (DONE, ("THREAD", "about")),
    "fork": (DONE, ("THREAD@0", "u")),
    "graphs": (DONE, ()),
    "hand-over": (DONE, ("THREAD", "bob")),
    "import": (USAGE, ("out.jsonl",)),
    "items": (USAGE, ()),
    "log": (DONE, ("THREAD",)),
    "note": (DONE, ("THREAD@1", "look")),
    "reread": (USAGE, ("THREAD",)),
    "pause": (DONE, ("THREAD",)),
    "prune": (USAGE, ("--keep-last", "1", "--yes")),
    "read": (DONE, ("THREAD", "task")),
    "replay": (USAGE, ("THREAD",)),
    "rerun": (USAGE, ("THREAD",)),
    "resume": (WAITING, ("THREAD", "--headless")),
    "reveal": (USAGE, ("THREAD", "task")),
    "revise": (USAGE, ("THREAD", "--note", "no")),
    "revoke": (USAGE, ("THREAD", "a1")),
    "rollback": (USAGE, ("THREAD", "--yes")),
    "run": (WAITING, ("GRAPH", "--input", "task=seas", "--headless")),
    "show": (DONE, ("THREAD",)),
    "size": (DONE, ()),
    "step": (WAITING, ("THREAD",)),
    "taint": (DONE, ("THREAD",)),
    "test": (USAGE, ("THREAD@1",)),
    "threads": (DONE, ()),
    "unclaim": (DONE, ("THREAD",)),
    "update-state": (DONE, ("THREAD", "task=seas")),
    "vacuum": (USAGE, ()),
    "values": (DONE, ("THREAD", "task")),
    "verify": (DONE, ("THREAD",)),
    "watch": (WAITING, ("--once",)),
    "when": (DONE, ("THREAD", "task == 'hills'")),
    "workers": (USAGE, ()),
}
"""The exit code and the arguments of each command that works on threads, of one that waits for a text."""
ELSEWHERE = {"completion", "config", "demo", "doctor", "graph", "keys", "new", "play", "present", "schema"}
ELSEWHERE |= {"review", "serve", "store", "themes", "worker"}
"""Commands that work on no thread of a store that is named, or go on until they are ended."""
DIFFERENT: Mapping[str, Mapping[str, int]] = {
    "file": {
        **dict.fromkeys(("agents", "answer", "fork", "resume", "step", "test", "update-state"), USAGE),
        "rollback": DONE,
    },  # they want the graph; a rollback only if something is left to undo
    "server": {"items": DONE, "size": USAGE, "test": USAGE},
}
"""The exit codes that are others in a file of checkpoints alone, and on a server."""
FILE = pytest.param("file", marks=pytest.mark.slow)
SERVER = pytest.param("server", marks=pytest.mark.integration)
_own_documents: dict[str, dict[str, Any]] = {}
"""What each command says of the same thread in one of our stores; it is the same in each test."""
NAME = "11111111-2222-4333-8444-555555555555"
OWN = """
from hitl_tui import END, START, Channel, StateGraph, append

def write(state):
    return {"lines": f"about {state['task']}"}

def ask(state, config):
    return {"lines": config.interrupt({"kind": "ask", "title": "Is it good?"})}

graph = StateGraph({"task": Channel(""), "lines": Channel([], reducer=append())})
graph.add_node("write", write).add_node("ask", ask)
graph.add_edge(START, "write").add_edge("write", "ask").add_edge("ask", END)
"""
"""The graph of `flow` as one of ours."""


class Place(NamedTuple):
    """Where a thread waits for a text: its name, what its graph is run as, the options for its store."""

    thread: str
    graph: tuple[str, ...]
    store: tuple[str, ...]

    def typed(self, app: App, command: str) -> tuple[str, ...]:
        """A command on the thread, as it is typed."""
        typed: list[str] = [command]
        for given in ON_THREADS[command][1]:
            if given == "GRAPH":
                typed += self.graph
            elif given == "REQUEST":
                shown = app.expect(0, "show", self.thread, "--json", *self.store).document
                typed.append(shown["standing"]["pending"][0]["id"])
            else:
                typed.append(given.replace("THREAD", self.thread))
        stored = self.store if command != "run" or self.graph[0] == "own.py" else ()
        return (*typed, *stored)


@contextmanager
def place_of(name: str, app: App, folder: Path) -> Iterator[Place]:
    """The place of a name, with `flow` there."""
    if name == "graph":
        yield Place("t", ("flow.py",), STORE)
    elif name == "file":
        yield Place("t", ("flow.py",), ("--store", "langgraph+sqlite:///theirs.sqlite"))
    elif name == "own":
        (folder / "own.py").write_text(OWN)
        place = Place("t", ("own.py",), ("--store", "own.db"))
        app.expect(3, "run", "own.py", "--headless", "--input", "task=hills", "--thread", "t", *place.store)
        yield place
    else:
        builder: Any = runpy.run_path(str(folder / "flow.py"))["builder"]
        with serving(builder.compile(checkpointer=InMemorySaver())) as server:
            graph = ("--server", server.url)
            app.expect(3, "run", *graph, "--thread", NAME, "--input", "task=hills", "--headless")
            yield Place(NAME, graph, ("--store", f"langgraph+{server.url}#g"))


def test_every_subcommand_is_tried_here_or_works_on_no_thread() -> None:
    assert ON_THREADS.keys() | ELSEWHERE == COMMANDS.keys()


@pytest.mark.parametrize("command", ON_THREADS)
@pytest.mark.slow
def test_a_subcommand_works_or_says_why_not_in_words(flow: App, command: str, tmp_path: Path) -> None:
    code = ON_THREADS[command][0]
    with place_of("graph", flow, tmp_path) as place:
        done = flow.expect(code, *place.typed(flow, command))
    assert "unexpected" not in done.err
    assert "Traceback" not in done.err
    if code == USAGE:
        assert "hitl-tui: Wrong usage: " in done.err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["graph", FILE, SERVER])
@pytest.mark.parametrize("command", ON_THREADS)
def test_its_json_has_what_that_of_our_own_threads_has(
    flow: App, command: str, name: str, tmp_path: Path
) -> None:
    code = DIFFERENT.get(name, {}).get(command, ON_THREADS[command][0])
    with place_of(name, flow, tmp_path) as place:
        document = flow.expect(code, *place.typed(flow, command), "--json").document
    assert (document["kind"] == "error") is (code == USAGE)  # checked against the schema, too
    if code == USAGE:
        return
    if command not in _own_documents:
        with place_of("own", flow, tmp_path) as place:
            _own_documents[command] = flow(*place.typed(flow, command), "--json").document
    own = _own_documents[command]
    if own["kind"] != "error":
        assert document["kind"] == own["kind"]
        check_alike(document, own)


def check_alike(theirs: Any, ours: Any) -> None:
    """Whether two documents have the same keys, all the way down; of lists, in their first items."""
    if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
        assert theirs.keys() == ours.keys()
        for key, value in theirs.items():
            check_alike(value, ours[key])
    elif isinstance(theirs, list) and isinstance(ours, list) and theirs and ours:
        check_alike(theirs[0], ours[0])
