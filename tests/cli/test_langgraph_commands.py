"""Every subcommand on threads of LangGraph: it works, or it is refused in words, with an exit code."""

from __future__ import annotations

import pytest

pytest.importorskip("langgraph.checkpoint.sqlite")

from hitl_tui.cli.main import COMMANDS
from tests.cli.test_langgraph import STORE, flow, request
from tests.support.commands import App

__all__ = ["flow"]

DONE, USAGE, WAITING = 0, 2, 3
ON_THREADS: dict[str, tuple[int, tuple[str, ...]]] = {
    "agents": (DONE, ("t",)),
    "allow": (DONE, ("t", "--list")),
    "anchor": (DONE, ("t",)),
    "answer": (DONE, ("t", "REQUEST", "yes", "--step", "1")),
    "approve": (USAGE, ("t",)),
    "artifacts": (DONE, ("t",)),
    "blame": (DONE, ("t", "lines")),
    "cancel": (DONE, ("t",)),
    "claim": (DONE, ("t",)),
    "copy": (DONE, ("t", "card")),
    "cost": (DONE, ("t",)),
    "decide": (WAITING, ("t", "--answer", "yes", "--yes")),
    "declassify": (USAGE, ("t", "task", "--reason", "known")),
    "delete": (USAGE, ("t", "--yes")),
    "deleted": (DONE, ()),
    "diff": (DONE, ("t@0", "t@1")),
    "export": (DONE, ("t", "out.jsonl")),
    "extend": (USAGE, ("t", "max_iterations=3")),
    "find": (DONE, ("t", "about")),
    "fork": (DONE, ("t@0", "u")),
    "graphs": (DONE, ()),
    "hand-over": (DONE, ("t", "bob")),
    "import": (USAGE, ("out.jsonl",)),
    "items": (USAGE, ()),
    "log": (DONE, ("t",)),
    "pause": (DONE, ("t",)),
    "prune": (USAGE, ("--keep-last", "1", "--yes")),
    "replay": (USAGE, ("t",)),
    "rerun": (USAGE, ("t",)),
    "resume": (WAITING, ("t", "--headless")),
    "revise": (USAGE, ("t", "--note", "no")),
    "rollback": (USAGE, ("t", "--yes")),
    "run": (WAITING, ("flow.py", "--input", "task=seas", "--thread", "u", "--headless")),
    "show": (DONE, ("t",)),
    "size": (DONE, ()),
    "step": (WAITING, ("t",)),
    "taint": (DONE, ("t",)),
    "test": (DONE, ("t@1",)),
    "threads": (DONE, ()),
    "unclaim": (DONE, ("t",)),
    "update-state": (DONE, ("t", "task=seas")),
    "vacuum": (USAGE, ()),
    "values": (DONE, ("t", "task")),
    "verify": (DONE, ("t",)),
    "watch": (WAITING, ("--once",)),
    "when": (DONE, ("t", "task == 'hills'")),
    "workers": (USAGE, ()),
}
"""The exit code and the arguments of each command that works on threads, of one that waits for a text."""
ELSEWHERE = {"completion", "config", "demo", "doctor", "graph", "keys", "new", "play", "present", "schema"}
ELSEWHERE |= {"serve", "store", "themes", "worker"}
"""Commands that work on no thread of a store that is named, or go on until they are ended."""


def test_every_subcommand_is_tried_here_or_works_on_no_thread() -> None:
    assert ON_THREADS.keys() | ELSEWHERE == COMMANDS.keys()


@pytest.mark.parametrize("as_json", [False, True], ids=["words", "json"])
@pytest.mark.parametrize("command", ON_THREADS)
def test_a_subcommand_works_or_says_why_not(flow: App, command: str, as_json: bool) -> None:
    code, typed = ON_THREADS[command]
    arguments = [request(flow) if one == "REQUEST" else one for one in typed]
    store = () if command == "run" else STORE
    done = flow.expect(code, command, *arguments, *store, *(("--json",) if as_json else ()))
    assert "unexpected" not in done.err
    assert "Traceback" not in done.err
    if code == USAGE:
        assert "hitl-tui: Wrong usage: " in done.err
    if as_json:
        assert (done.document["kind"] == "error") is (code == USAGE)  # checked against the schema, too
