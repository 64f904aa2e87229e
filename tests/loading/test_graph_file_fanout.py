"""Maps, parallels and subgraphs in graph files, and what can be wrong with them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import GraphInvalid, GraphRunner, MemoryCheckpointer
from hitl_tui.loading.sources import open_graph
from tests.support.spec import spec

pytestmark = spec("7")

INNER = """\
[channels]
question = { default = "" }
reply = { default = "" }

[agents.a]
replies = ["yes"]

[nodes.think]
agent = "a"
reads = ["question"]
writes = ["reply"]

[[edges]]
from = "START"
to = "think"

[[edges]]
from = "think"
to = "END"
"""
GOOD = """\
[channels]
plan = { default = { steps = [{ name = "x" }, { name = "y" }] } }
log = { default = [], reducer = "append" }
out = { default = "" }

[agents.echo]
replies = [{ when = "x", say = "X" }, { when = "y", say = "Y" }, "?"]

[maps.scan]
over = "plan.steps"
agent = "echo"
prompt = "Look at {item.name}"
writes = ["log"]
join = "all"
max_concurrent = 2

[nodes.left]
agent = "echo"
prompt = "left"
writes = ["log"]

[nodes.right]
agent = "echo"
prompt = "right"
writes = ["log"]

[parallels.both]
nodes = ["left", "right"]
join = 2

[subgraphs.team]
graph = "inner.toml"
inputs = { out = "question" }
outputs = { reply = "out" }

[[edges]]
from = "START"
to = "scan"

[[edges]]
from = "scan"
to = "both"

[[edges]]
from = "both"
to = "team"

[[edges]]
from = "team"
to = "END"
"""


def load(folder: Path, text: str) -> GraphRunner:
    (folder / "inner.toml").write_text(INNER)
    (folder / "g.toml").write_text(text)
    return open_graph(str(folder / "g.toml"), MemoryCheckpointer())


def test_a_file_with_all_three_runs(tmp_path: Path) -> None:
    runner = load(tmp_path, GOOD)
    result: Any = runner.invoke(thread_id="t")
    assert (result["log"], result["out"]) == (["X", "Y", "?", "?"], "yes")
    assert [node.kind for node in runner.graph.info.nodes] == ["map", "parallel", "subgraph"]
    assert runner.get_state("t/team#1")["reply"] == "yes"


def test_the_policy_on_taint_of_a_subgraph_is_taken(tmp_path: Path) -> None:
    runner = load(
        tmp_path,
        GOOD.replace('outputs = { reply = "out" }', 'outputs = { reply = "out" }\non_taint = "block"'),
    )
    assert runner.graph.nodes["team"].on_taint == "block"


@pytest.mark.parametrize(
    ("old", "new", "line", "expected"),
    [
        ('over = "plan.steps"', 'over = "plans"', 10, "[maps.scan] over: there is no channel 'plans'"),
        ('over = "plan.steps"\n', "", 9, "[maps.scan]"),
        ('join = "all"', 'join = "some"', 14, "[maps.scan] join"),
        ("max_concurrent = 2", "max_concurrent = 0", 15, "[maps.scan] max_concurrent"),
        ("{item.name}", "{thing}", 12, "[maps.scan] prompt: there is no channel 'thing'"),
        ('["left", "right"]', '["left", "rigth"]', 28, "there is no node 'rigth', did you mean 'right'?"),
        (
            "join = 2",
            "join = 3",
            27,
            "[parallels.both]: parallel 'both': quorum(3) of 2 nodes can't be reached",
        ),
        ('"inner.toml"', '"iner.toml"', 32, "did you mean 'inner.toml'?"),
        ('"inner.toml"', '"g.toml"', 32, "g.toml is a subgraph of itself"),
        ("{ out = ", "{ oot = ", 33, "[subgraphs.team] inputs.oot: there is no channel 'oot'"),
        ("{ reply =", "{ repli =", 34, "[subgraphs.team] outputs: there is no channel in inner.toml 'repli'"),
        ('to = "both"', 'to = "left"', 42, "'left' runs in the parallel 'both', name 'both' instead"),
        ("[nodes.left]", "[nodes.scan]", 9, "[maps.scan]: there is [nodes.scan] already"),
    ],
)
def test_a_mistake_is_reported_where_it_is(
    tmp_path: Path, old: str, new: str, line: int, expected: str
) -> None:
    with pytest.raises(GraphInvalid) as failed:
        load(tmp_path, GOOD.replace(old, new, 1))
    message = str(failed.value)
    assert expected in re.sub(r"\s+", " ", message), message
    assert f"line {line}" in message, message
