"""Two states side by side, channel by channel, and the lines of two values beside each other."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.view.diff_lines import Compared, compare_states, side_by_side
from hitl_tui.view.word_diff import Fragment, Fragments


def test_each_channel_of_either_state_says_how_it_differs() -> None:
    before = {"a": 1, "b": [1], "key": PRIVATE, "old": None, "f": 1.0}
    after = {"a": 1, "b": [1, 2], "key": PRIVATE, "new": None, "f": 1}
    changes = {row.channel: row.change for row in compare_states(before, after)}
    assert changes["a"] == "same"
    assert changes["b"] == "changed"
    assert changes["key"] == "private"
    assert (changes["old"], changes["new"]) == ("removed", "added")


def said(parts: Fragments | None) -> str | None:
    return None if parts is None else "".join(part.text for part in parts)


def sides(row: Compared) -> list[tuple[str | None, str | None, bool]]:
    return [(said(pair.left), said(pair.right), pair.same) for pair in side_by_side(row)]


def test_a_private_value_is_on_neither_side() -> None:
    (row,) = compare_states({"key": PRIVATE}, {"key": "shown by mistake"})
    assert sides(row) == [("[private]", "[private]", True)]


def test_equal_lines_are_aligned() -> None:
    assert sides(Compared("t", "changed", "one\ntwo\nthree\nfour", "one\n2\nfour\nfive")) == [
        ("one", "one", True),
        ("two", "2", False),
        ("three", None, False),
        ("four", "four", True),
        (None, "five", False),
    ]


def test_a_line_of_which_some_words_changed_is_one_line_on_both_sides() -> None:
    old, new = "It keeps a reference to what it saw", "It keeps a packed lunch of what it saw"
    (pair,) = side_by_side(Compared("t", "changed", old, new))
    assert (said(pair.left), said(pair.right), pair.kind) == (old, new, "changed")
    assert pair.left is not None
    assert [part for part in pair.left if part.kind != "same"] == [Fragment("removed", "reference to ")]


def test_an_item_stays_equal_if_another_follows_it() -> None:
    assert sides(Compared("t", "changed", ["a"], ["a", "b"])) == [
        ("[", "[", True),
        ('  "a"', '  "a",', True),
        (None, '  "b"', False),
        ("]", "]", True),
    ]
    assert not side_by_side(Compared("t", "changed", "a", "a,"))[0].same


@pytest.mark.parametrize(("change", "before", "after"), [("added", None, "x\ny"), ("removed", "x\ny", None)])
def test_lines_missing_on_one_side_are_blank(change: Any, before: Any, after: Any) -> None:
    shown = [pair[:2] for pair in sides(Compared("t", change, before, after))]
    assert shown == ([(None, "x"), (None, "y")] if change == "added" else [("x", None), ("y", None)])


def test_no_side_holds_what_could_steer_a_terminal() -> None:
    for pair in side_by_side(Compared("t", "changed", "a\x1b[2J", ["\x9b31m", {"\u202e": 1}])):
        assert "\x1b" not in f"{pair.left}{pair.right}"
        assert "\u202e" not in f"{pair.left}{pair.right}"
