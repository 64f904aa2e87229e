"""Which parts of two values differ."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui.drivers.history import Moment
from hitl_tui.view.hits import moment_line
from hitl_tui.view.leaves import changed_leaves, leaf_lines
from hitl_tui.view.spans import plain_text


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        pytest.param({"a": 1}, {"a": 1.0}, [], id="numbers are compared by value"),
        pytest.param({"a": True}, {"a": 1}, ["c.a: true → 1"], id="true is not 1"),
        pytest.param({"a": [1]}, {"a": {"b": 1}}, ["c.a: list 1 → {b: 1}"], id="another kind of value"),
        pytest.param({"a": 1, "b": 2}, {"b": 2}, ["c.a: - 1"], id="a member that is gone"),
        pytest.param({"a b": 1}, {"a b": 2}, ["c['a b']: 1 → 2"], id="a name that is no identifier"),
        pytest.param([1, 2, 3], [2, 3], ["c[0]: - 1"], id="the first item is gone"),
        pytest.param(["a"], ["b"], ["c[0]: “a” → “b”"], id="a text in a list"),
        pytest.param({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, ["c.a.b.c: 1 → 2"], id="far inside"),
    ],
)
def test_each_part_that_differs_is_shown_with_its_path(before: Any, after: Any, shown: list[str]):
    assert [plain_text(line) for line in leaf_lines(before, after, 9, name="c")] == shown


def test_comparing_ends_for_large_and_deep_values():
    large = changed_leaves([[0] for _ in range(30_000)], [[0] for _ in range(30_000)], 3)
    assert large.first == ()
    assert large.more
    old: Any = 1
    new: Any = 2
    for _ in range(5_000):
        old, new = [old], [new]
    assert changed_leaves(old, new, 3).more


def test_a_moment_names_the_member_that_changed():
    moment = Moment(
        step=3,
        before={"row": {"id": 4, "price": 2.25}, "n": 1},
        after={"row": {"id": 4, "price": None}, "n": 2},
        node="work",
        actor=None,
    )
    assert plain_text(moment_line(moment)) == "row.price: 2.25 → null  n  1 → 2"
