"""Values, amounts and times as a person reads them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.view import format as fmt
from hitl_tui.view.sanitise import sanitise

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(None, "null", id="null"),
        pytest.param(True, "true", id="a bool is not a number"),
        pytest.param(3, "3", id="a number"),
        pytest.param("hi", "“hi”", id="a short text"),
        pytest.param("a" * 70, "text 70 “" + "a" * 70 + "”", id="a long text says its size"),
        pytest.param("a\nb", "text 3 “a⏎b”", id="a text of two lines says its size"),
        pytest.param([], "list 0", id="an empty list"),
        pytest.param([1, "last"], "list 2  “last”", id="a list shows its last item"),
        pytest.param({"a": 1, "b": 2}, "{a: 1, b: 2} 2 keys", id="an object shows its members"),
        pytest.param({}, "{}", id="an empty object"),
        pytest.param(PRIVATE, "[private]", id="a private value"),
        pytest.param(10**5000, "integer of 16,610 bits", id="a number too long to write"),
        pytest.param(object(), "⟨object⟩", id="what is no JSON is named by its type"),
    ],
)
def test_preview(value: Any, shown: str) -> None:
    assert fmt.preview(value) == shown


@given(JSON, st.integers(min_value=0, max_value=200))
def test_no_preview_raises_or_contains_a_control_character(value: Any, limit: int) -> None:
    shown = fmt.preview(value, limit)
    assert sanitise(shown, multiline=False) == shown
    assert len(shown) <= limit + 40


class NeverWalked(list[Any]):
    """A list that may be looked into, but not gone through."""

    def __iter__(self) -> Any:
        raise AssertionError("a preview went through the whole list")


def test_a_preview_does_not_go_through_a_huge_list() -> None:
    assert "1000000" in fmt.preview(NeverWalked(range(1_000_000))).replace(",", "")


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        pytest.param(fmt.tokens(214), "214 tok", id="few tokens"),
        pytest.param(fmt.tokens(1_214), "1.2k tok", id="thousands of tokens"),
        pytest.param(fmt.tokens(999_999), "1.0M tok", id="nearly a million tokens"),
        pytest.param(fmt.cost(0.0123, True), "$0.0123", id="a known cost"),
        pytest.param(fmt.cost(0.01, False), "≥ $0.0100", id="a cost of which a part is known"),
        pytest.param(fmt.cost(0, False), "cost unknown", id="an unknown cost"),
        pytest.param(fmt.cost(0, True), "$0.00", id="free"),
        pytest.param(fmt.cost(0.00001, True), "<$0.0001", id="nearly free"),
        pytest.param(fmt.duration(8_400_000), "8.4 s", id="seconds"),
        pytest.param(fmt.duration(59_990_000), "59.9 s", id="nearly a minute"),
        pytest.param(fmt.duration(125_000_000), "2m 05s", id="minutes"),
        pytest.param(fmt.duration(3_720_000_000), "1h 02m", id="hours"),
        pytest.param(fmt.duration(50_900), "50 ms", id="milliseconds"),
        pytest.param(fmt.duration(999), "< 1 ms", id="less"),
        pytest.param(fmt.duration(-1), "< 1 ms", id="a clock that was set back"),
        pytest.param(fmt.stopwatch(50_000), "0.0 s", id="a clock that runs"),
        pytest.param(fmt.ago(0, 59_000_000), "just now", id="just now"),
        pytest.param(fmt.ago(0, 300_000_000), "5 m ago", id="minutes ago"),
        pytest.param(fmt.ago(0, 3 * 86_400_000_000), "3 d ago", id="days ago"),
    ],
)
def test_amounts(shown: str, text: str) -> None:
    assert shown == text


def test_who_decided_without_a_name_is_somebody_and_not_who_reads_it() -> None:
    assert fmt.person(None, "person") == "somebody"
    assert fmt.person("ann", "person") == "ann"
    assert fmt.person(None, "deadline") == "the deadline"
