"""What one may do is done on screen, in lines and by a subcommand, through the same commands and words."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

import hitl_tui
from hitl_tui.engine.commands import AnyCommand

ROOT = Path(hitl_tui.__file__).parent
FRONTS = ("ui", "plain", "cli")
NOT_IN = {
    "LookAt": {"cli": "a command has nothing open"},
    "PrepareGraph": {"ui": "what is done there first builds the graph"},
    "NoteExport": {"ui": "pages and files are written by a subcommand", "plain": "as on screen"},
}
"""Commands that a front does not make, and why."""
SHARED = {
    "the queue": "QueueView",
    "its filter": "read_filter",
    "its columns": "SORTS read_sort",
    "comments": "pin pinned CommentScreen",
    "what can be started": "known_graphs",
    "what was deleted": "deleted_lines entry_lines",
    "what fills the store": "size_rows",
    "what followed": "followed",
    "notices": "SessionNotices notices",
}
"""What is no command, and a name that each front uses for it: the same, or one that does the same."""


@cache
def names(front: str, *, called: bool) -> frozenset[str]:
    """The names that a front's modules use, or those that they call."""
    found: set[str] = set()
    for file in (ROOT / front).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            used = node.func if called and isinstance(node, ast.Call) else None if called else node
            if isinstance(used, ast.Name):
                found.add(used.id)
            elif isinstance(used, ast.Attribute):
                found.add(used.attr)
    return frozenset(found)


@pytest.mark.parametrize("command", [kind.__name__ for kind in get_args(AnyCommand)])
def test_each_command_is_available_on_screen_in_plain_text_mode_and_as_a_subcommand(command: str) -> None:
    made = names("verbs", called=True)
    lacking = {front for front in FRONTS if command not in made | names(front, called=True)}
    assert lacking == NOT_IN.get(command, {}).keys()


@pytest.mark.parametrize("what", SHARED)
def test_features_that_are_not_commands_exist_in_each_front_end(what: str) -> None:
    for front in FRONTS:
        assert names(front, called=False) & set(SHARED[what].split()), front
