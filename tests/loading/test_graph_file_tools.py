"""Agents of a graph file that call tools, ask for approval, and keep their turns in a channel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hitl_tui import GraphRunner
from hitl_tui.errors import GraphInvalid
from tests.support.spec import spec

pytestmark = spec("8")

LoadFile = Callable[..., GraphRunner]
TOOLS = """
def add(a: int, b: int) -> int:
    'Add two numbers.'
    return a + b

def loose(a):
    return a
"""
FILE = """
[channels]
task = {{ default = "go" }}
out = {{ default = "" }}
talk = {{ default = [], reducer = "extend" }}

[agents.worker]
replies = ["yes"]
{agent}

[nodes.work]
agent = "worker"
prompt = "{{task}}"
answer = "text"
reads = ["task", "talk"]
writes = {writes}

[nodes.again]
function = "tools.py:again"
reads = "*"
writes = "*"

[[edges]]
from = "START"
to = "work"
[[edges]]
from = "work"
to = "again"
[[edges]]
from = "again"
to = "END"
"""
AGAIN = """
def again(state, config):
    return {"out": config.agents["worker"].fresh().chat("once more")}
"""


@pytest.fixture
def load(load_file: LoadFile) -> Callable[[str], GraphRunner]:
    def build(agent: str) -> GraphRunner:
        Path("tools.py").write_text(TOOLS + AGAIN, encoding="utf-8")
        writes = '["out", "talk"]' if "channel:talk" in agent else '["out"]'
        return load_file(FILE.format(agent=agent, writes=writes))

    return build


def test_tools_are_functions_beside_the_file(load: Callable[[str], GraphRunner]) -> None:
    agent = load('tools = ["tools.py:add"]\napprove = "always"').graph.agents["worker"]
    assert list(agent.tools) == ["add"]
    assert agent.tools["add"].parameters["required"] == ["a", "b"]


def test_tools_that_must_not_run_twice_are_named(load: Callable[[str], GraphRunner]) -> None:
    tools = load('tools = ["tools.py:add"]\neffects_once = ["add"]').graph.agents["worker"].tools
    assert tools["add"].effects == "once"
    tools = load('tools = ["tools.py:add"]').graph.agents["worker"].tools
    assert tools["add"].effects == "repeatable"


def test_turns_may_live_in_a_channel(load: Callable[[str], GraphRunner]) -> None:
    result = load('history = "channel:talk"').invoke({}, thread_id="t")
    assert [turn["content"] for turn in result["talk"]] == ["go", "yes", "once more", "yes"]
    assert result["out"] == "yes"


@pytest.mark.parametrize(
    ("agent", "problem"),
    [
        ('tools = ["tools.py:nothing"]', "there is no 'nothing'"),
        ('tools = ["tools.py:loose"]', "parameter 'a' has no type"),
        ('tools = ["tools.py:add", "tools.py:add"]', "there is a tool 'add' already"),
        ('tools = ["tools.py:add"]\neffects_once = ["ad"]', "'ad'.*'add'"),
        ('history = "disk"', "is not a place"),
        ('approve = "sometimes"', "sometimes"),
    ],
)
def test_mistakes_are_reported_with_their_place(
    load: Callable[[str], GraphRunner], agent: str, problem: str
) -> None:
    with pytest.raises(GraphInvalid, match=problem) as caught:
        load(agent)
    assert "mine.toml" in str(caught.value)
