"""The log keeps what changed inside a large value; it gives the value back exactly."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitl_tui.engine.state.canonical import canonical, channel_hash
from hitl_tui.engine.state.frozen import FrozenDict, FrozenList, freeze, thaw
from hitl_tui.engine.state.patches import length_after, patch, patched
from hitl_tui.engine.state.values import normalise
from tests.engine.state.test_values import json_values
from tests.support.spec import spec

pytestmark = spec("10")

ENOUGH = 1 << 20

keys = st.sampled_from("abcdé")
containers = st.recursive(
    st.dictionaries(keys, json_values, max_size=4) | st.lists(json_values, max_size=5),
    lambda inner: st.dictionaries(keys, inner, max_size=5) | st.lists(inner, max_size=5),
    max_leaves=8,
)


@st.composite
def edited(draw: st.DrawFn) -> tuple[Any, Any]:
    """A value and one that came of it by a few changes, with or without copying what stays."""
    old = normalise(draw(containers), "c")
    new = copy.deepcopy(old)
    for _ in range(draw(st.integers(0, 4))):
        at = new
        while isinstance(at, (dict, list)) and at:
            key = draw(st.sampled_from(list(at) if isinstance(at, dict) else range(len(at))))
            if not isinstance(at[key], (dict, list)) or draw(st.booleans()):
                break
            at = at[key]
        if isinstance(at, dict):
            key = draw(keys)
            if key in at and draw(st.booleans()):
                del at[key]
            else:
                at[key] = draw(json_values)
        elif isinstance(at, list):
            start = draw(st.integers(0, len(at)))
            at[start : start + draw(st.integers(0, 2))] = draw(st.lists(json_values, max_size=2))
    return old, new


def as_text(value: Any) -> str:
    """A value with its types and the order of its keys."""
    return repr(thaw(value))


@given(edited())
@pytest.mark.slow
def test_a_patch_makes_exactly_the_new_value(values: tuple[Any, Any]) -> None:
    old, given = values
    before = as_text(old)
    new = normalise(given, "c", old=old)
    edits = patch(old, new, ENOUGH)
    if edits is None:
        assert type(old) is not type(new) or not _keys_kept(old, new)
        return
    stored = msgspec.json.decode(msgspec.json.encode(edits))
    for again in (patched(old, edits), patched(freeze(thaw(old)), stored)):
        assert as_text(again) == as_text(new)
        assert channel_hash(again) == channel_hash(new)
    assert as_text(old) == before
    if isinstance(old, list):
        assert length_after(stored, len(old)) == len(new)


def _keys_kept(old: Any, new: Any) -> bool:
    if not isinstance(old, dict):
        return True
    kept = [key for key in old if key in new]
    return list(new)[: len(kept)] == kept


@given(edited())
@pytest.mark.slow
def test_a_value_shared_with_the_old_one_is_the_given_one(values: tuple[Any, Any]) -> None:
    old, given = values
    canonical(old)
    new, alone = normalise(given, "c", old=old), normalise(given, "c")
    assert as_text(new) == as_text(alone)
    assert canonical(new) == canonical(alone) == canonical(freeze(thaw(given)))


pieces = st.text(alphabet="aé😀\n", max_size=60)


@pytest.mark.slow
@given(pieces, pieces, pieces, pieces)
def test_a_text_with_a_part_replaced_comes_back(start: str, before: str, after: str, end: str) -> None:
    for old, new in ((start + before + end, start + after + end), (start, end)):
        edits = patch(old, new, ENOUGH)
        if edits is not None:
            assert patched(old, msgspec.json.decode(msgspec.json.encode(edits))) == new
        inside = patch(freeze({"t": [old]}), freeze({"t": [new]}), ENOUGH)
        assert patched(freeze({"t": [old]}), inside or []) == {"t": [new]}


def test_of_a_long_text_what_changed_is_written_alone() -> None:
    old = "".join(f"sentence {n}. " for n in range(400))
    new = old.replace("sentence 200", "another one")
    place = old.index("sentence 200")
    assert patch(old, new, 100) == [[[], place, place + 12, "another one"]]
    deep = patch(freeze({"a": [old]}), freeze({"a": [new]}), 100)
    assert deep == [[["a", 0], place, place + 12, "another one"]]
    assert patch(old, f"{old}more", 100) == [[[], len(old), len(old), "more"]]
    assert patch(old, "something else " * 400, 100) is None


def large() -> Any:
    return normalise({f"part{n}": {"text": f"{n}" * 2_000, "list": [n, [n]]} for n in range(5)}, "c")


def test_what_stays_is_shared_though_it_was_copied() -> None:
    old = large()
    given = copy.deepcopy(old)
    given["part3"]["list"][1].append(4)
    new = normalise(given, "c", old=old)
    assert [new[name] is old[name] for name in old] == [True, True, True, False, True]
    assert new["part3"]["text"] is old["part3"]["text"]
    assert patch(old, new, ENOUGH) == [[["part3", "list", 1], 1, 1, [4]]]


def test_a_copy_of_the_whole_is_the_old_one() -> None:
    old = large()
    assert normalise(copy.deepcopy(old), "c", old=old) is old
    assert patch(old, old, ENOUGH) == []


@pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0), ("1", 1), (None, False), ([], {})])
def test_what_is_another_value_is_never_taken_for_the_old_one(old: Any, new: Any) -> None:
    before = normalise({"at": old, "list": [old]}, "c")
    after = normalise({"at": new, "list": [new]}, "c", old=before)
    assert type(after["at"]) is type(after["list"][0]) is type(normalise(new, "c"))


def test_a_value_with_other_keys_in_the_order_is_written_whole() -> None:
    old = normalise({"a": 1, "b": 2}, "c")
    new = normalise({"b": 2, "a": 1}, "c", old=old)
    assert list(new) == ["b", "a"]
    assert patch(old, new, ENOUGH) is None


def test_a_patch_that_is_larger_than_it_may_be_is_none() -> None:
    old = large()
    new = normalise({name: {"text": "other" * 400} for name in old}, "c", old=old)
    assert patch(old, new, 5_000) is None


@pytest.mark.parametrize(
    "edits",
    [
        [[["gone", "x"], 1]],
        [[["list", 9], 1]],
        [[["list", -1], 1]],
        [[["list", "0"], 1]],
        [[["a", "x"], 1]],
        [[["gone"]]],
        [[["list", 0]]],
        [[["list"], 0, 9, []]],
        [[["list"], -1, 0, []]],
        [[["list"], 0, 0, None]],
        [[["a"], 0, 0, []]],
        [[["a"], 0, 0, "x"]],
        [[["list"], 0, 0, "x"]],
        [[["text"], 0, 0, ["x"]]],
        [[["text"], 0, 9, "x"]],
        [[["text"], 2, 1, "x"]],
        [[["text"], -1, 0, "x"]],
        [[["text"], 0, None, "x"]],
        [[["text"], 0.0, 1, "x"]],
        [[["a"], 0, 0]],
        [[]],
        [7],
        [[7, 7]],
        [[["list", None], 1]],
    ],
)
def test_edits_of_another_value_are_refused(edits: Any) -> None:
    with pytest.raises(ValueError, match="a patch does not fit"):
        patched(freeze({"a": 1, "list": [1, 2], "text": "text"}), edits)


def test_what_is_made_is_frozen() -> None:
    value = patched(freeze({"a": {}}), [[["a", "b"], {"c": [1]}]])
    assert type(value["a"]) is type(value["a"]["b"]) is FrozenDict
    assert type(value["a"]["b"]["c"]) is FrozenList
