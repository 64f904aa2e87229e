"""A node cannot change state by mutating what it read."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from hitl_tui import Channel, NodeFailed
from hitl_tui.engine.state.values import normalise
from hitl_tui.stores import Checkpointer
from tests.engine.building import chain, one_node
from tests.support.spec import spec

pytestmark = spec("1")

MUTATIONS: dict[str, Callable[[Any], object]] = {
    "append": lambda v: v["list"].append(1),
    "extend": lambda v: v["list"].extend([1]),
    "insert": lambda v: v["list"].insert(0, 1),
    "remove": lambda v: v["list"].remove(3),
    "pop": lambda v: v["list"].pop(),
    "clear": lambda v: v["list"].clear(),
    "sort": lambda v: v["list"].sort(),
    "reverse": lambda v: v["list"].reverse(),
    "set an element": lambda v: v["list"].__setitem__(0, 9),
    "set a slice": lambda v: v["list"].__setitem__(slice(0, 1), [9]),
    "delete an element": lambda v: v["list"].__delitem__(0),
    "add in place": lambda v: v["list"].__iadd__([9]),
    "multiply in place": lambda v: v["list"].__imul__(2),
    "set a key": lambda v: v["dict"].__setitem__("x", 9),
    "delete a key": lambda v: v["dict"].__delitem__("a"),
    "dict update": lambda v: v["dict"].update(x=1),
    "dict setdefault": lambda v: v["dict"].setdefault("x", 1),
    "dict pop": lambda v: v["dict"].pop("a"),
    "dict popitem": lambda v: v["dict"].popitem(),
    "dict clear": lambda v: v["dict"].clear(),
    "dict or in place": lambda v: v["dict"].__ior__({"x": 1}),
    "the list in a dict": lambda v: v["dict"]["a"].append(1),
    "the dict in a list": lambda v: v["list"][2].update(x=1),
    "the value itself": lambda v: v.update(x=1),
}


@pytest.mark.parametrize("mutate", MUTATIONS.values(), ids=MUTATIONS)
def test_what_a_node_reads_refuses_to_be_changed(mutate: Callable[[Any], object]) -> None:
    given = {"list": [3, 1, {"deep": 1}], "dict": {"a": [1]}}
    before = json.dumps(given)

    def node(state: Any, config: Any) -> None:
        mutate(state["c"])

    with pytest.raises(NodeFailed, match="read-only") as caught:
        one_node({"c": Channel(given)}, node).invoke()
    assert "return it as an update" in caught.value.message
    assert json.dumps(given) == before


@pytest.mark.parametrize("mutate", MUTATIONS.values(), ids=MUTATIONS)
def test_a_value_loaded_from_a_store_refuses_to_be_changed(
    mutate: Callable[[Any], object], store: Checkpointer
) -> None:
    value = {"list": [3, 1, {"deep": 1}], "dict": {"a": [1]}}

    def node(state: Any, config: Any) -> None:
        mutate(state["c"])

    runner = chain({"c": Channel(None)}, lambda s, c: {"c": value}, node).compile(checkpointer=store)
    runner.step(thread_id="t")
    with pytest.raises(NodeFailed, match="read-only"):
        runner.invoke(thread_id="t")
    assert runner.get_state("t")["c"] == value


def test_a_human_s_edit_is_read_only_too(store: Checkpointer) -> None:
    def node(state: Any, config: Any) -> None:
        state["c"].append(1)

    runner = chain({"c": Channel(None)}, lambda s, c: None, node).compile(checkpointer=store)
    runner.step(thread_id="t")
    runner.update_state("t", {"c": [[1]]})
    with pytest.raises(NodeFailed, match="read-only"):
        runner.invoke(thread_id="t")


def test_the_state_itself_takes_no_assignment() -> None:
    def node(state: Any, config: Any) -> None:
        state["c"] = 1

    with pytest.raises(NodeFailed, match=r"read-only inside a node: return .* as an update"):
        one_node({"c": Channel(0)}, node).invoke()


def test_what_a_node_returned_is_its_own_to_change() -> None:
    kept: list[Any] = [[1]]

    def first(state: Any, config: Any) -> dict[str, Any]:
        return {"c": kept}

    def second(state: Any, config: Any) -> None:
        kept[0].append(2)
        kept.append(3)

    assert chain({"c": Channel(None)}, first, second).compile().invoke()["c"] == [[1]]


def test_a_default_is_not_changed_through_the_object_it_was_given_as() -> None:
    default: dict[str, Any] = {"a": []}
    runner = one_node({"c": Channel(default)}, lambda s, c: None)
    default["a"].append(1)
    assert runner.invoke()["c"] == {"a": []}


def test_an_input_is_not_changed_through_the_object_it_was_given_as() -> None:
    given = [1]

    def node(state: Any, config: Any) -> None:
        given.append(2)

    assert one_node({"c": Channel(None)}, node).invoke({"c": given})["c"] == [1]


@pytest.mark.parametrize(
    "make",
    [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v)), lambda v: json.loads(json.dumps(v))],
    ids=["copy", "deepcopy", "pickle", "json"],
)
def test_a_copy_is_free_to_change(make: Callable[[Any], Any]) -> None:
    value = normalise({"a": [1]}, "c")
    made = make(value)
    made["b"] = 2
    assert made == {"a": [1], "b": 2}
    assert value == {"a": [1]}


def test_a_deep_copy_is_free_to_change_at_every_level() -> None:
    made = copy.deepcopy(normalise({"a": [{"b": 1}]}, "c"))
    made["a"][0]["b"] = 2
    made["a"].append(3)
    assert made == {"a": [{"b": 2}, 3]}


def test_what_a_node_reads_is_a_real_list_and_a_real_dict() -> None:
    seen: list[Any] = []

    def node(state: Any, config: Any) -> None:
        value = state["c"]
        seen.extend(
            [isinstance(value, dict), isinstance(value["a"], list), json.dumps(value), [*value["a"], 2]]
        )

    one_node({"c": Channel({"a": [1]})}, node).invoke()
    assert seen == [True, True, '{"a": [1]}', [1, 2]]


def test_reading_a_long_list_copies_nothing() -> None:
    seen: list[Any] = []

    def node(state: Any, config: Any) -> dict[str, Any]:
        seen.append((state["c"], state["c"][0]))
        return {"n": 1}

    chain({"c": Channel([[1]] * 5000, reducer="append"), "n": Channel(0)}, node, node).compile().invoke()
    assert seen[0][0] is seen[1][0]
    assert seen[0][1] is seen[1][1]
