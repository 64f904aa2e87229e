"""What a node may read and write."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import Channel, NodeFailed, ReadDenied, UndeclaredChannel, WriteDenied
from hitl_tui.engine.log.events import StepCommitted
from hitl_tui.stores import Checkpointer
from tests.engine.building import chain, one_node, returning
from tests.support.spec import spec

pytestmark = spec("6")

CHANNELS = {
    "plan": Channel({"steps": ["a", "b"], "owner": {"name": "ann"}}),
    "draft": Channel("text"),
    "secret": Channel("s", visibility="private"),
    "out": Channel(None),
}


def read(reads: list[str] | None, name: str) -> Any:
    """What a node with these reads gets for a name."""
    node = lambda state, config: {"out": [state[name]]}  # noqa: E731
    return one_node(CHANNELS, node, reads=reads).invoke()["out"][0]


ALLOWED = {
    "all by default": (None, "draft", "text"),
    "all by default, private ones too": (None, "secret", "s"),
    "all by default, a leaf": (None, "plan.steps", ["a", "b"]),
    "a named channel": (["draft"], "draft", "text"),
    "a named private channel": (["secret"], "secret", "s"),
    "* means all public channels": (["*"], "draft", "text"),
    "* and a leaf": (["*"], "plan.owner.name", "ann"),
    "* and a private one by name": (["*", "secret"], "secret", "s"),
    "a dotted entry": (["plan.steps"], "plan.steps", ["a", "b"]),
    "a dotted entry two levels down": (["plan.owner.name"], "plan.owner.name", "ann"),
    "a leaf of a named channel": (["plan"], "plan.owner.name", "ann"),
    "an element of a list": (["plan.steps.1"], "plan.steps.1", "b"),
}


@pytest.mark.parametrize(("reads", "name", "value"), ALLOWED.values(), ids=ALLOWED)
def test_a_node_reads_only_its_declared_channels(reads: list[str] | None, name: str, value: Any) -> None:
    assert read(reads, name) == value


DENIED = {
    "another channel": (["draft"], "plan"),
    "any channel where reads are none": ([], "draft"),
    "a private channel under *": (["*"], "secret"),
    "the channel of a dotted entry": (["plan.steps"], "plan"),
    "another leaf of a dotted entry's channel": (["plan.steps"], "plan.owner"),
    "a leaf that only begins like the entry": (["plan.steps"], "plan.stepsx"),
    "a leaf of a channel outside reads": (["draft"], "plan.steps"),
}


@pytest.mark.parametrize("how", [lambda s, n: s[n], lambda s, n: s.get(n)], ids=["[]", "get"])
@pytest.mark.parametrize(("reads", "name"), DENIED.values(), ids=DENIED)
def test_reading_outside_reads_raises(reads: list[str], name: str, how: Any) -> None:
    with pytest.raises(NodeFailed) as caught:
        one_node(CHANNELS, lambda state, config: how(state, name), reads=reads).invoke()
    assert isinstance(caught.value.__cause__, ReadDenied)
    assert f"'{name}' is not among the node's reads" in caught.value.message
    assert f"add '{name}' to reads" in caught.value.hint


@pytest.mark.parametrize("name", ["plan.zap", "plan.steps.7", "plan.steps.x", "draft.x", "plan.owner.name.x"])
def test_reading_a_missing_leaf_is_an_error(name: str) -> None:
    with pytest.raises(NodeFailed, match=f"nothing at '{name}'"):
        read(None, name)


@pytest.mark.parametrize(
    ("reads", "keys"),
    [
        (None, ["plan", "draft", "secret", "out"]),
        (["*"], ["plan", "draft", "out"]),
        (["draft", "secret"], ["draft", "secret"]),
        ([], []),
    ],
    ids=["all", "*", "named", "none"],
)
def test_keys_are_those_a_node_may_read(reads: list[str] | None, keys: list[str]) -> None:
    node = lambda state, config: {"out": list(state.keys())}  # noqa: E731
    assert one_node(CHANNELS, node, reads=reads).invoke()["out"] == keys


def test_reads_do_not_limit_writes_nor_writes_reads() -> None:
    runner = one_node(CHANNELS, lambda s, c: {"out": s["draft"]}, reads=["draft"], writes=["out"])
    assert runner.invoke()["out"] == "text"


@pytest.mark.parametrize("writes", [None, ["out"], ["draft", "out"]], ids=repr)
def test_a_node_writes_only_its_declared_channels(writes: list[str] | None) -> None:
    assert one_node(CHANNELS, returning({"out": 1}), writes=writes).invoke()["out"] == 1


@pytest.mark.parametrize("writes", [[], ["draft"]], ids=repr)
def test_writing_outside_writes_raises(writes: list[str]) -> None:
    with pytest.raises(NodeFailed, match="'out', which is not among its writes") as caught:
        one_node(CHANNELS, returning({"out": 1}), writes=writes).invoke()
    assert isinstance(caught.value.__cause__, WriteDenied)
    assert "add 'out' to writes" in caught.value.hint


@spec("14")
@pytest.mark.parametrize("name", ["zap", "drafts", "plan.steps", 1, ""], ids=repr)
def test_writing_an_undeclared_channel_raises(name: Any) -> None:
    with pytest.raises(NodeFailed, match="not a channel of the graph") as caught:
        one_node(CHANNELS, returning({name: 1})).invoke()
    assert isinstance(caught.value.__cause__, UndeclaredChannel)


def test_a_misspelt_channel_suggests_the_nearest() -> None:
    with pytest.raises(NodeFailed) as caught:
        one_node(CHANNELS, returning({"drafts": 1})).invoke()
    assert caught.value.hint == "did you mean 'draft'?"


STRICT = {
    "a": Channel(0, reducer="sum"),
    "b": Channel("", schema={"type": "string"}),
    "c": Channel([], reducer="extend"),
    "d": Channel(None, reducer=lambda old, new: 1 / new),
    "z": Channel([], reducer="append"),
}
BAD = {
    "an undeclared channel": {"zap": 1},
    "a channel outside writes": {"e": 1},
    "a value that fails its schema": {"b": 1},
    "a value outside JSON": {"b": object()},
    "a reducer error": {"c": "text"},
    "a custom reducer that raises": {"d": 0},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_nothing_of_a_node_is_applied_where_one_update_is_bad(
    bad: dict[str, Any], store: Checkpointer
) -> None:
    events: list[Any] = []
    node = returning({"a": 1, "z": 1, **bad})
    graph = chain({**STRICT, "e": Channel(0)}, returning({"a": 10}), node, writes=["a", "b", "c", "d", "z"])
    runner = graph.compile(checkpointer=store)
    with pytest.raises(NodeFailed, match="'n2'"):
        runner.invoke(thread_id="t", on_event=events.append)
    assert runner.get_state("t") == {"a": 10, "b": "", "c": [], "d": None, "z": [], "e": 0}
    assert [record.step for record in store.records("t", 0, 9)] == [1]
    assert store.checkpoint("t", 2) is None
    assert [event.checkpoint.step for event in events if isinstance(event, StepCommitted)] == [0, 1]
