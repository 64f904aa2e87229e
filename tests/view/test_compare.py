"""Two states side by side, channel by channel, and the lines of two values beside each other."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.view.diff import Compared, Pair, compare_states, side_by_side


def test_each_channel_of_either_state_says_how_it_differs() -> None:
    before = {"a": 1, "b": [1], "key": PRIVATE, "old": None, "f": 1.0}
    after = {"a": 1, "b": [1, 2], "key": PRIVATE, "new": None, "f": 1}
    changes = {row.channel: row.change for row in compare_states(before, after)}
    assert changes["a"] == "same"
    assert changes["b"] == "changed"
    assert changes["key"] == "private"
    assert (changes["old"], changes["new"]) == ("removed", "added")


def test_a_private_value_is_on_neither_side() -> None:
    (row,) = compare_states({"key": PRIVATE}, {"key": "shown by mistake"})
    assert side_by_side(row) == (Pair("[private]", "[private]", True),)


def test_what_is_the_same_stands_at_the_same_height() -> None:
    pairs = side_by_side(Compared("t", "changed", "one\ntwo\nthree\nfour", "one\n2\nfour\nfive"))
    assert pairs == (
        Pair("one", "one", True),
        Pair("two", "2", False),
        Pair("three", None, False),
        Pair("four", "four", True),
        Pair(None, "five", False),
    )


def test_an_item_is_no_other_one_because_another_follows_it() -> None:
    pairs = side_by_side(Compared("t", "changed", ["a"], ["a", "b"]))
    assert [(pair.left, pair.right, pair.same) for pair in pairs] == [
        ("[", "[", True),
        ('  "a"', '  "a",', True),
        (None, '  "b"', False),
        ("]", "]", True),
    ]
    assert not side_by_side(Compared("t", "changed", "a", "a,"))[0].same


@pytest.mark.parametrize(("change", "before", "after"), [("added", None, "x\ny"), ("removed", "x\ny", None)])
def test_what_one_side_does_not_have_is_empty_there(change: Any, before: Any, after: Any) -> None:
    sides = [(pair.left, pair.right) for pair in side_by_side(Compared("t", change, before, after))]
    assert sides == ([(None, "x"), (None, "y")] if change == "added" else [("x", None), ("y", None)])


def test_no_side_holds_what_could_steer_a_terminal() -> None:
    for pair in side_by_side(Compared("t", "changed", "a\x1b[2J", ["\x9b31m", {"\u202e": 1}])):
        assert "\x1b" not in f"{pair.left}{pair.right}"
        assert "\u202e" not in f"{pair.left}{pair.right}"
