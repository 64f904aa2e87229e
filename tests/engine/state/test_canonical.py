"""Canonical form, equality and hashes."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from hitl_tui import Channel
from hitl_tui.engine.state.canonical import (
    canonical,
    channel_hash,
    equal,
    extend_chain,
    item_hash,
    show_hash,
    state_hash,
)
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.state.values import normalise
from tests.engine.building import bound
from tests.support.spec import spec

pytestmark = spec("2")

# What RFC 8785 accepts: integers that a double holds exactly, text without lone surrogates.
SAFE = 2**53 - 1
jcs_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-SAFE, SAFE)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=6), inner, max_size=5),
    max_leaves=30,
)
all_values = st.recursive(
    jcs_values | st.integers(), lambda inner: st.lists(inner, max_size=4), max_leaves=10
)


@given(jcs_values)
def test_the_fast_path_equals_rfc8785(value: Any) -> None:
    assert canonical(normalise(value, "c")) == rfc8785.dumps(value)


@given(st.dictionaries(st.text(alphabet="az€\ufb33𐀀😀\x7f\x80", max_size=3), st.integers(0, 1), max_size=8))
def test_keys_are_sorted_by_utf_16_units(value: dict[str, int]) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@pytest.mark.parametrize("number", [2**53, -(2**53) - 1, 2**64, 10**30, -(2**200)])
def test_ints_of_any_size_are_written_in_full(number: int) -> None:
    assert canonical(number) == str(number).encode()
    assert canonical({"a": [number, 0.5]}) == f'{{"a":[{number},0.5]}}'.encode()


@given(all_values)
def test_canonical_bytes_are_json_of_an_equal_value(value: Any) -> None:
    assert equal(normalise(json.loads(canonical(value)), "c"), value)


EQUAL = {
    "1 equals 1.0": (1, 1.0),
    "-0.0 equals 0": (-0.0, 0),
    "1e2 equals 100": (1e2, 100),
    "key order is ignored": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "1 equals 1.0 inside": ({"a": [1]}, {"a": [1.0]}),
    "a tuple equals a list": ((1, 2), [1, 2]),
    "null equals null": (None, None),
}
DIFFERENT = {
    "true differs from 1": (True, 1),
    "false differs from 0": (False, 0),
    "true differs from 1 inside": ([True], [1]),
    "null differs from absent": ({"a": None}, {}),
    "list order is kept": ([1, 2], [2, 1]),
    "1 differs from its text": (1, "1"),
    "null differs from empty text": (None, ""),
    "an empty list differs from an empty dict": ([], {}),
    "ints beyond a double differ by one": (2**64, 2**64 + 1),
    "text is compared code point by code point": ("\u00e9", "e\u0301"),
}


@pytest.mark.parametrize(("a", "b"), EQUAL.values(), ids=EQUAL)
def test_equal(a: Any, b: Any) -> None:
    a, b = normalise(a, "c"), normalise(b, "c")
    assert equal(a, b)
    assert equal(b, a)
    assert item_hash(a) == item_hash(b)
    assert channel_hash(a) == channel_hash(b)


@pytest.mark.parametrize(("a", "b"), DIFFERENT.values(), ids=DIFFERENT)
def test_different(a: Any, b: Any) -> None:
    a, b = normalise(a, "c"), normalise(b, "c")
    assert not equal(a, b)
    assert not equal(b, a)
    assert item_hash(a) != item_hash(b)


@given(all_values, all_values)
@pytest.mark.slow
def test_eq_means_equal_canonical_bytes(a: Any, b: Any) -> None:
    assert equal(a, b) == (canonical(a) == canonical(b))


@pytest.mark.parametrize(
    ("value", "start"),
    [([], "a330395cc0a53ad1"), (["done"], "5e431cea3c16e329"), ([1, 2, 3], "911d10eac9217e5a")],
    ids=str,
)
def test_vectors_of_list_channels(value: Any, start: str) -> None:
    assert channel_hash(value).hex().startswith(start)


@pytest.mark.parametrize(
    ("value", "start"),
    [
        (None, "74234e98afe7498f"),
        ([], "4f53cda18c2baa0c"),
        ({}, "44136fa355b3678a"),
        (0, "5feceb66ffc86f38"),
        (-0.0, "5feceb66ffc86f38"),
        (1, "6b86b273ff34fce1"),
        (1.0, "6b86b273ff34fce1"),
        (True, "b5bea41b6c623f7c"),
        ({"b": [True, 1, 1.0], "a": None}, "c23c33062efc2c2d"),
    ],
    ids=repr,
)
def test_vectors_of_items(value: Any, start: str) -> None:
    assert item_hash(value).hex().startswith(start)


def test_hashes_are_written_with_their_kind() -> None:
    assert show_hash(item_hash({})) == f"sha256:{sha256(b'{}').hexdigest()}"


def chain_by_definition(items: list[Any]) -> bytes:
    digest = sha256(b"list").digest()
    for item in items:
        digest = sha256(digest + sha256(rfc8785.dumps(item)).digest()).digest()
    return digest


@given(st.lists(jcs_values, max_size=6), st.lists(jcs_values, max_size=4))
@pytest.mark.slow
def test_a_chain_is_extended_by_the_new_elements_alone(old: list[Any], new: list[Any]) -> None:
    assert channel_hash(old) == chain_by_definition(old)
    assert extend_chain(chain_by_definition(old), new) == chain_by_definition(old + new)


@given(jcs_values.filter(lambda value: not isinstance(value, list)))
@pytest.mark.slow
def test_a_channel_that_is_no_list_is_hashed_as_an_item(value: Any) -> None:
    assert channel_hash(value) == sha256(rfc8785.dumps(value)).digest()


def state_hash_by_definition(state: dict[str, Any]) -> bytes:
    hashes = {
        name: f"sha256:{(chain_by_definition(v) if isinstance(v, list) else item_hash(v)).hex()}"
        for name, v in state.items()
    }
    return sha256(rfc8785.dumps(hashes)).digest()


@given(st.dictionaries(st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,9}", fullmatch=True), jcs_values, max_size=12))
@pytest.mark.slow
def test_a_state_is_hashed_by_the_hashes_of_its_channels(state: dict[str, Any]) -> None:
    digests = {name: channel_hash(value) for name, value in state.items()}
    assert state_hash(digests) == state_hash_by_definition(state)
    live = LiveState(state, dict.fromkeys(state, b"\0" * 32))
    assert live.hash == state_hash(live.digests)
    following = LiveState(state, digests)
    following.follow(live, list(state))
    assert following.hash == state_hash_by_definition(state)


GOLDEN = {
    "messages": Channel(reducer="append"),
    "findings": Channel(reducer="extend"),
    "score": Channel(reducer="sum"),
    "plan": Channel(),
}


def test_the_golden_state_before_the_run() -> None:
    initial = LiveState.initial({name: bound(channel, name) for name, channel in GOLDEN.items()})
    assert state_hash(initial.digests).hex().startswith("c0aea53b1eabd2b9")


def test_the_golden_state_after_the_run() -> None:
    final = {
        "findings": [{"path": "a"}, {"path": "c"}],
        "messages": ["done"],
        "plan": {"go": True},
        "score": 0.75,
    }
    assert state_hash_by_definition(final).hex().startswith("3057b3eb580458d1")
    assert state_hash({n: channel_hash(v) for n, v in final.items()}).hex().startswith("3057b3eb580458d1")
