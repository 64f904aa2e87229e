"""What each reducer makes of a value and an update."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitl_tui import Channel, HitlError, ReducerError, ValueRejected
from hitl_tui.engine.state.canonical import canonical, equal
from hitl_tui.engine.state.values import normalise
from tests.engine.building import bound, one_node, returning
from tests.engine.state.test_values import json_values
from tests.support.spec import spec

pytestmark = spec("4")

BIG = 2**1024  # an int that no float can hold
HUGE = 1.7e308
WIDE = 2**14_279  # twice that is a number of more digits than Python writes


def apply(reducer: str, previous: Any, update: Any) -> Any:
    channel = bound(Channel(None, reducer=reducer))
    return channel.reduce(normalise(previous, "c"), channel.accept(update))


NEXT: dict[str, tuple[str, Any, Any, Any]] = {
    "overwrite: the update": ("overwrite", 1, 2, 2),
    "overwrite: a list as a whole": ("overwrite", [1], [2], [2]),
    "overwrite: null sets null": ("overwrite", 1, None, None),
    "last is an alias of overwrite": ("last", 1, 2, 2),
    "append: one value": ("append", [1], 2, [1, 2]),
    "append: a list is one element": ("append", [1], [2, 3], [1, [2, 3]]),
    "append: an empty list is one element": ("append", [], [], [[]]),
    "append: null is one element": ("append", [1], None, [1, None]),
    "append: a dict is one element": ("append", [], {"a": 1}, [{"a": 1}]),
    "append: duplicates stay": ("append", [1], 1, [1, 1]),
    "last_n: appends below n": ("last_n(3)", [1, 2], 3, [1, 2, 3]),
    "last_n: keeps the newest n": ("last_n(3)", [1, 2, 3], 4, [2, 3, 4]),
    "last_n: a list is one element": ("last_n(2)", [1, 2], [3, 4], [2, [3, 4]]),
    "last_n(1)": ("last_n(1)", [1], 2, [2]),
    "last_n: a longer value from an edit is cut": ("last_n(2)", [1, 2, 3, 4], 5, [4, 5]),
    "extend: prev + update": ("extend", [1], [2, 3], [1, 2, 3]),
    "extend: [] is a no-op": ("extend", [1], [], [1]),
    "extend: a list inside stays one element": ("extend", [], [[1]], [[1]]),
    "extend: a tuple": ("extend", [1], (2,), [1, 2]),
    "merge: keys of the update win": ("merge", {"a": 1, "b": 2}, {"b": 3, "c": 4}, {"a": 1, "b": 3, "c": 4}),
    "merge: shallow": ("merge", {"a": {"x": 1}}, {"a": {"y": 2}}, {"a": {"y": 2}}),
    "merge: null sets null and never deletes": ("merge", {"a": 1}, {"a": None}, {"a": None}),
    "merge: {} is a no-op": ("merge", {"a": 1}, {}, {"a": 1}),
    "merge_deep: recurses dict into dict": (
        "merge_deep",
        {"a": {"x": 1, "z": {"p": 1}}, "b": 1},
        {"a": {"y": 2, "z": {"q": 2}}},
        {"a": {"x": 1, "y": 2, "z": {"p": 1, "q": 2}}, "b": 1},
    ),
    "merge_deep: lists are replaced": (
        "merge_deep",
        {"a": {"l": [1, 2]}},
        {"a": {"l": [3]}},
        {"a": {"l": [3]}},
    ),
    "merge_deep: a dict replaces a scalar": ("merge_deep", {"a": 1}, {"a": {"x": 1}}, {"a": {"x": 1}}),
    "merge_deep: a scalar replaces a dict": ("merge_deep", {"a": {"x": 1}}, {"a": 1}, {"a": 1}),
    "merge_deep: null sets null and never deletes": (
        "merge_deep",
        {"a": {"x": 1, "y": 2}},
        {"a": {"x": None}},
        {"a": {"x": None, "y": 2}},
    ),
    "set_union: adds an item": ("set_union", [1], 2, [1, 2]),
    "set_union: adds the members of a list": ("set_union", [1], [2, 3], [1, 2, 3]),
    "set_union: not those already present": ("set_union", [1, 2], [2, 3], [1, 2, 3]),
    "set_union: in order": ("set_union", [3], [9, 1, 3, 5], [3, 9, 1, 5]),
    "set_union: dedupes inside the update": ("set_union", [], [2, 1, 2, 1], [2, 1]),
    "set_union: wrap a list to add it as one item": ("set_union", [], [[1, 2]], [[1, 2]]),
    "set_union: 1.0 is there as 1": ("set_union", [1], 1.0, [1]),
    "set_union: true is not 1": ("set_union", [1], True, [1, True]),
    "set_union: null is an item": ("set_union", [1], None, [1, None]),
    "set_union: key order is ignored": (
        "set_union",
        [{"a": 1, "b": 2}],
        {"b": 2, "a": 1},
        [{"a": 1, "b": 2}],
    ),
    "set_union: [] is a no-op": ("set_union", [1], [], [1]),
    "sum: adds": ("sum", 1, 2, 3),
    "sum: an int and a float": ("sum", 1, 0.5, 1.5),
    "sum: ints of any size": ("sum", BIG, 1, BIG + 1),
    "sum: negative": ("sum", 1, -3, -2),
    "min: the smaller": ("min", 3, 2, 2),
    "min: keeps the smaller": ("min", 2, 3, 2),
    "min: negative floats": ("min", -1, -1.5, -1.5),
    "max: the larger": ("max", 2, 3, 3),
    "max: keeps the larger": ("max", 3, 2, 3),
    "max: an int no float can hold": ("max", 1.5, BIG, BIG),
    # Null previous value acts as the reducer's identity.
    "null, then overwrite": ("overwrite", None, 1, 1),
    "null, then append": ("append", None, 1, [1]),
    "null, then last_n": ("last_n(2)", None, 1, [1]),
    "null, then extend": ("extend", None, [1], [1]),
    "null, then extend by []": ("extend", None, [], []),
    "null, then merge": ("merge", None, {"a": 1}, {"a": 1}),
    "null, then merge_deep": ("merge_deep", None, {"a": {"b": 1}}, {"a": {"b": 1}}),
    "null, then set_union": ("set_union", None, [1, 1], [1]),
    "null, then sum": ("sum", None, 2, 2),
    "null, then min": ("min", None, 2, 2),
    "null, then max": ("max", None, -2, -2),
}


@spec("14")
@pytest.mark.parametrize(("reducer", "previous", "update", "value"), NEXT.values(), ids=NEXT)
def test_next_value(reducer: str, previous: Any, update: Any, value: Any) -> None:
    found = apply(reducer, previous, update)
    assert canonical(found) == canonical(value)


@pytest.mark.parametrize(("reducer", "previous", "update", "value"), NEXT.values(), ids=NEXT)
def test_leaves_the_previous_value_and_the_update_as_they_were(
    reducer: str, previous: Any, update: Any, value: Any
) -> None:
    before, given = normalise(previous, "c"), normalise(update, "c")
    was = (repr(before), repr(given))
    bound(Channel(None, reducer=reducer)).reduce(before, given)
    assert (repr(before), repr(given)) == was


@pytest.mark.parametrize("reducer", ["min", "max"])
@pytest.mark.parametrize(("previous", "update"), [(1, 1.0), (1.0, 1), (0, -0.0)], ids=repr)
def test_a_tie_keeps_the_previous(reducer: str, previous: Any, update: Any) -> None:
    found = apply(reducer, previous, update)
    assert (repr(found), type(found)) == (repr(previous), type(previous))


@pytest.mark.parametrize(("previous", "update"), [([1], 1.0), ([], [1, 1.0]), ([1.0], 1)], ids=repr)
def test_set_union_keeps_the_first_representation(previous: Any, update: Any) -> None:
    first = (previous or update)[0]
    assert [(value, type(value)) for value in apply("set_union", previous, update)] == [(first, type(first))]


REFUSED: dict[str, tuple[str, Any, Any, str]] = {
    "extend: text": ("extend", [1], "ab", "takes a list, not text"),
    "extend: a dict": ("extend", [1], {"a": 1}, "takes a list, not a dict"),
    "extend: null": ("extend", [1], None, "takes a list, not null"),
    "extend: a number": ("extend", [1], 1, "takes a list"),
    "merge: a list": ("merge", {}, [1], "takes a dict, not a list"),
    "merge: text": ("merge", {}, "a", "takes a dict, not text"),
    "merge: null": ("merge", {"a": 1}, None, "takes a dict, not null"),
    "merge_deep: null": ("merge_deep", {"a": 1}, None, "takes a dict, not null"),
    "merge_deep: a list": ("merge_deep", {}, [], "takes a dict, not a list"),
    "sum: a bool": ("sum", 1, True, "takes a number, not true or false"),
    "sum: text": ("sum", 1, "2", "takes a number, not text"),
    "sum: null": ("sum", 1, None, "takes a number, not null"),
    "sum: a list": ("sum", 1, [1], "takes a number, not a list"),
    "sum: overflow of floats": ("sum", HUGE, HUGE, "overflows"),
    "sum: overflow below": ("sum", -HUGE, -HUGE, "overflows"),
    "sum: an int too large for a float": ("sum", 0.5, BIG, "overflows"),
    "sum: more digits than a number may have": ("sum", WIDE, WIDE, "overflows: a number of 4,299 digits"),
    "min: a bool": ("min", 1, False, "takes a number, not true or false"),
    "min: text": ("min", 1, "0", "takes a number, not text"),
    "min: null": ("min", 1, None, "takes a number, not null"),
    "max: a bool": ("max", 1, True, "takes a number, not true or false"),
    "max: null": ("max", 1, None, "takes a number, not null"),
    "append: to a value that is no list": ("append", "text", 1, "needs a list"),
    "extend: a value that is no list": ("extend", {"a": 1}, [1], "needs a list"),
    "set_union: to a value that is no list": ("set_union", 3, 1, "needs a list"),
    "merge: into a value that is no dict": ("merge", [1], {"a": 1}, "the channel holds a list"),
    "merge_deep: into a value that is no dict": ("merge_deep", 1, {"a": 1}, "holds a whole number"),
    "sum: to a value that is not a number": ("sum", "1", 1, "the channel holds text"),
    "max: of a value that is not a number": ("max", [1], 1, "the channel holds a list"),
}  # fmt: skip


@pytest.mark.parametrize(("reducer", "previous", "update", "match"), REFUSED.values(), ids=REFUSED)
def test_refuses_naming_channel_reducer_and_what_was_found(
    reducer: str, previous: Any, update: Any, match: str
) -> None:
    with pytest.raises(ReducerError, match=match) as caught:
        apply(reducer, previous, update)
    assert f"channel 'c': {reducer}" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("reducer", ["sum", "min", "max"])
@pytest.mark.parametrize("update", [math.nan, math.inf, -math.inf], ids=repr)
def test_nan_and_infinity_are_no_numbers(reducer: str, update: float) -> None:
    with pytest.raises(ValueRejected, match="channel 'c'"):
        apply(reducer, 1, update)


@given(st.lists(st.floats(-1e9, 1e9) | st.integers(-(10**9), 10**9), max_size=20))
def test_sum_is_a_left_fold(numbers: list[float]) -> None:
    total: Any = 0
    value: Any = 0
    for number in numbers:
        total = total + number
        value = apply("sum", value, number)
    assert repr(value) == repr(total)


@given(st.lists(json_values, max_size=6), st.lists(json_values, max_size=6))
@pytest.mark.slow
def test_set_union_holds_no_two_equal_values(first: list[Any], second: list[Any]) -> None:
    found = apply("set_union", apply("set_union", [], first), second)
    assert len({canonical(value) for value in found}) == len(found)
    assert {canonical(value) for value in found} == {canonical(value) for value in first + second}
    assert all(any(equal(value, normalise(one, "c")) for one in first + second) for value in found)


@given(st.lists(json_values, max_size=9), st.integers(1, 5))
@pytest.mark.slow
def test_last_n_is_append_cut_to_the_newest_n(updates: list[Any], n: int) -> None:
    appended: Any = []
    newest: Any = []
    for update in updates:
        appended = apply("append", appended, update)
        newest = apply(f"last_n({n})", newest, update)
    assert canonical(newest) == canonical(appended[-n:])


def test_a_channel_absent_from_an_update_is_not_touched() -> None:
    channels = {"a": Channel([1], reducer="append"), "b": Channel(7, reducer="sum"), "c": Channel("x")}
    assert dict(one_node(channels, returning({"c": "y"})).invoke()) == {"a": [1], "b": 7, "c": "y"}


def test_a_refused_update_applies_nothing_of_its_node() -> None:
    channels = {"a": Channel([], reducer="append"), "z": Channel(0, reducer="sum")}
    seen: list[Any] = []
    runner = one_node(channels, returning({"a": 1, "z": "no number"}))
    with pytest.raises(HitlError, match="channel 'z'"):
        runner.invoke(on_event=seen.append)
    assert [event.progress.head for event in seen if type(event).__name__ == "StepCommitted"] == [0]
