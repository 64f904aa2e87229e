"""What breaks a node's contract is told with channel, path, expected, found and a fix; when it is
retried and when not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hitl_tui import Channel, NodeFailed
from hitl_tui.engine.graph.retry import RetryPolicy
from tests.engine.building import one_node
from tests.support.spec import spec

pytestmark = spec("6")

CHANNELS = {
    "plan": Channel({"steps": ["a"]}, schema={"properties": {"steps": {"items": {"type": "string"}}}}),
    "log": Channel([], reducer="extend", schema=list[int]),
    "score": Channel(0, reducer="sum"),
    "secret": Channel("", schema=str, visibility="private"),
}
Node = Callable[[Any], Any]
Row = tuple[Node, list[str], str, bool]

BROKEN: dict[str, Row] = {
    "reading outside reads names the channel and what may be read": (
        lambda s: {"score": s["log"]},
        ["channel 'log' is not among the node's reads (plan)"],
        "add 'log' to reads=[...] of the node",
        False,
    ),
    "reading a private channel that reads does not name": (
        lambda s: {"score": s["secret"]},
        ["channel 'secret' is not among the node's reads (plan)"],
        "add 'secret' to reads",
        False,
    ),
    "reading a leaf that is not there names its path": (
        lambda s: {"score": s["plan.stps"]},
        ["there is nothing at 'plan.stps'"],
        "check the path",
        False,
    ),
    "writing outside writes names the channel and what may be written": (
        lambda s: {"secret": "x"},
        ["it writes 'secret', which is not among its writes (plan, log, score)"],
        "add 'secret' to writes=[...] of the node",
        False,
    ),
    "writing an undeclared channel names the nearest": (
        lambda s: {"scor": 1},
        ["it writes 'scor', which is not a channel of the graph"],
        "did you mean 'score'?",
        False,
    ),
    "a value that fails its schema names channel, path, expected and found, and is tried again": (
        lambda s: {"plan": {"steps": ["a", 5]}},
        ["channel 'plan' at steps[1]: ", "5 ", '"string"'],
        "give a value of that type",
        True,
    ),
    "a member that fails names its place, and is tried again": (
        lambda s: {"log": [1, "x"]},
        ["channel 'log' at [1]: ", '"x"', '"integer"'],
        "give a value of that type",
        True,
    ),
    "a reducer's error names what it takes and what it got, and is tried again": (
        lambda s: {"score": "1"},
        ["channel 'score': sum takes a number, not text"],
        "return an int or a float",
        True,
    ),
    "a value outside the domain names its path and type, and is tried again": (
        lambda s: {"plan": {"a": [object()]}},
        ["channel 'plan' at a[0]: a value of type object is not JSON"],
        "return text, numbers, lists",
        True,
    ),
}


@pytest.mark.parametrize(("node", "words", "fix", "again"), BROKEN.values(), ids=BROKEN)
def test_a_broken_contract(node: Node, words: list[str], fix: str, again: bool) -> None:
    calls: list[int] = []

    def counted(state: Any) -> Any:
        calls.append(1)
        return node(state)

    options = {"reads": ["plan"], "writes": ["plan", "log", "score"]}
    runner = one_node(CHANNELS, counted, retry=RetryPolicy(max_attempts=2, wait=0), **options)
    with pytest.raises(NodeFailed) as caught:
        runner.invoke()
    assert "node 'n1', attempt" in caught.value.message
    for word in words:
        assert word in caught.value.message
    assert fix in caught.value.hint
    assert len(calls) == (2 if again else 1)
