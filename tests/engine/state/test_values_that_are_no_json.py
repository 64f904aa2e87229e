"""What a node returns that no channel can keep is refused with what to write instead."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import pydantic
import pytest

from hitl_tui import Channel, NodeFailed
from tests.engine.building import one_node, returning
from tests.support.spec import spec

pytestmark = spec("1")


class Array:
    """As numpy has them."""

    def tolist(self) -> list[int]:
        return [1, 2]


class Frame:
    """As pandas has them."""

    def to_dict(self) -> dict[str, int]:
        return {"a": 1}


async def waits() -> str:
    return "text"


def pieces() -> Iterator[str]:
    yield "text"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (waits, "await it: write async def, and await waits(…)"),
        (pieces, "make a list of it, as list(value)"),
        (lambda: {1, 2}, "make a list of it, as sorted(value)"),
        ({"a": 1}.keys, "make a list of it, as list(value)"),
        (lambda: b"text", "make text of it, as value.decode()"),
        (Array, "make JSON of it, as value.tolist()"),
        (lambda: MappingProxyType({"a": 1}), "make a dict of it, as dict(value)"),
        (lambda: timedelta(1), "make a number of it, as value.total_seconds()"),
        (Frame, "make JSON of it, as value.to_dict()"),
        (lambda: pieces, "call it: this is the function or class itself"),
        (lambda: Array, "call it: this is the function or class itself"),
        (object, "return text, numbers, lists, dicts, dataclasses or pydantic models"),
    ],
    ids=["a coroutine", "a generator", "a set", "keys", "bytes", "a proxy", "a timedelta", "an array",
         "a frame", "a function", "a class", "an object"],
)  # fmt: skip
def test_the_hint_says_how_it_becomes_json(make: Any, hint: str) -> None:
    with pytest.raises(NodeFailed) as caught:
        one_node({"n": Channel(None)}, lambda state: {"n": make()}).invoke()
    assert "is not JSON" in caught.value.message
    assert caught.value.hint == hint


def test_a_type_that_is_called_as_one_of_pythons_is_named_with_its_module() -> None:
    foreign = type("bool", (), {"__module__": "numpy"})
    with pytest.raises(NodeFailed, match=r"a value of type numpy\.bool is not JSON"):
        one_node({"n": Channel(None)}, lambda state: {"n": foreign()}).invoke()


def test_a_value_that_is_too_large_may_be_allowed() -> None:
    with pytest.raises(NodeFailed) as caught:
        one_node({"n": Channel("")}, returning({"n": "x" * 2_000_000})).invoke()
    assert "compile(max_update_bytes=…)" in caught.value.hint


def test_a_cyclic_value_is_reported_by_the_start_of_its_path() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(NodeFailed, match=r"at (\[0\]){13}\[…: nested deeper than 64 levels"):
        one_node({"n": Channel([], reducer="overwrite")}, returning({"n": endless})).invoke()


def test_a_model_that_is_read_back_is_a_dict_and_says_so() -> None:
    class Order(pydantic.BaseModel):
        item: str = "tea"

    def node(state: Any) -> Any:
        return {"order": {"item": state["order"].item}}

    with pytest.raises(NodeFailed) as caught:
        one_node({"order": Channel(Order(), schema=Order)}, node).invoke()
    assert "a model is kept as a dict: write value['item']" in caught.value.message
