"""Diffs, values as lines and blame: right, and bounded."""

from __future__ import annotations

import json
import random
import re
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.view.blame import blame
from hitl_tui.view.diff import DiffLine, changed_lines, opcodes, text_diff, value_diff
from hitl_tui.view.value_lines import ValueMode, laid_out, value_lines
from tests.support import tape as tapes
from tests.view.test_format import JSON

ROWS = st.lists(st.sampled_from("abcdef"), max_size=30)


def test_the_drafts_differ_in_five_lines() -> None:
    lines = text_diff(tapes.DRAFT_1, tapes.DRAFT_2)
    assert [line.kind for line in lines].count("removed") == 2
    assert [line.kind for line in lines].count("added") == 3
    assert changed_lines(tapes.DRAFT_1, tapes.DRAFT_2) == 5


@pytest.mark.slow
@given(ROWS, ROWS)
def test_a_diff_contains_both_texts(old: list[str], new: list[str]) -> None:
    lines = text_diff("\n".join(old), "\n".join(new))
    assert [line.text for line in lines if line.kind != "added"] == old
    assert [line.text for line in lines if line.kind != "removed"] == new


@settings(max_examples=20)
@given(st.randoms(use_true_random=False))
@pytest.mark.slow
def test_a_large_diff_contains_both_texts(chance: random.Random) -> None:
    old = [chance.randrange(3000) for _ in range(1_010)]
    put = [chance.randrange(3000) for _ in range(chance.randrange(60))]
    new = old[::3] + put + old[5:]
    all_old, all_new = [], []
    for equal, i1, i2, j1, j2 in opcodes(old, new):
        assert not equal or old[i1:i2] == new[j1:j2]
        all_old += old[i1:i2]
        all_new += new[j1:j2]
    assert (all_old, all_new) == (old, new)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(["same"] * 20_000, ["same", "other"] * 20_000, id="the same line again and again"),
        pytest.param(
            [str(n) for n in range(40_000)], [str(n * 2) for n in range(40_000)], id="half in common"
        ),
        pytest.param([str(n) for n in range(900)], [str(900 - n) for n in range(900)], id="upside down"),
    ],
)
def test_large_texts_have_a_diff(old: list[str], new: list[str]) -> None:
    found = text_diff("\n".join(old), "\n".join(new))
    assert [line.text for line in found if line.kind != "added"] == old
    assert [line.text for line in found if line.kind != "removed"] == new


def test_a_diff_is_sanitised() -> None:
    lines = [*text_diff("a\x1b", "a\u202e")]
    assert lines == [DiffLine("removed", "a␛"), DiffLine("added", "a⟨U+202E⟩")]


def test_values_that_are_no_texts_differ_in_their_json() -> None:
    lines = value_diff({"a": 1, "b": 2}, {"a": 1, "b": 3})
    assert [line.text for line in lines if line.kind == "added"] == ['  "b": 3']
    assert [*value_diff(PRIVATE, PRIVATE)] == [DiffLine("same", "[private]")]


@settings(max_examples=50)
@given(JSON)
@pytest.mark.slow
def test_pretty_json_is_what_json_makes_of_it(value: Any) -> None:
    try:
        expected = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        return
    lines = value_lines(value, "json")
    assert len(lines) == len(expected.split("\n"))
    if expected.isascii() and "\x7f" not in expected and "integer of" not in "".join(lines):
        assert "\n".join(lines) == expected


def test_only_the_visible_part_of_fifty_thousand_items_is_rendered() -> None:
    value = [{"n": n, "text": "x" * 100} for n in range(50_000)]
    lines = value_lines(value, "json")
    assert len(lines) == 50_000 * 4 + 2
    assert lines[-3].strip() == f'"text": "{"x" * 100}"'
    assert lines[100_001:100_003] == ["  {", '    "n": 25000,']
    with pytest.raises(IndexError):
        lines[len(lines)]


def test_a_huge_text_inside_a_value_is_whole() -> None:
    for mode in get_args(ValueMode):
        assert value_lines({"a": ["x" * 1_000_000 + "end"]}, mode)[2].endswith('xend"')
    assert len(value_lines("a\nb\r\nc", "text")) == 3


def test_texts_inside_a_value_keep_their_line_breaks_where_it_is_read() -> None:
    value = {"a": 'one\r\ntwo "2"', "b": ["x\n", 1]}
    read = ["{", '  "a": "one', '   two \\"2\\"",', '  "b": [', '    "x', '     ",', "    1", "  ]", "}"]
    assert list(value_lines(value, "text")) == read
    assert json.loads("".join(value_lines(value, "json"))) == value


@given(JSON)
@pytest.mark.slow
def test_what_is_laid_out_differs_from_json_by_its_line_breaks_alone(value: Any) -> None:
    lines = laid_out(value)
    assert len(lines) == len(lines[:])
    if not re.search(r"\\[nr]", "".join(value_lines(value, "json"))):
        assert lines[:] == list(value_lines(value, "json"))


def test_a_changed_line_of_a_text_inside_a_value_is_one_changed_line() -> None:
    found = value_diff(["one\ntwo\nthree"], ["one\n2\nthree"])
    assert [line.text.strip() for line in found if line.kind != "same"] == ["two", "2"]
    assert [*value_diff("1", 1)] == [DiffLine("removed", '"1"'), DiffLine("added", "1")]


@settings(max_examples=50)
@given(JSON, JSON, st.data())
@pytest.mark.slow
def test_a_diff_of_values_contains_the_lines_of_both(one: Any, other: Any, data: st.DataObject) -> None:
    inner = st.recursive(
        st.sampled_from([one, other, 1, True, "a\nb", "x", {}, []]),
        lambda part: st.lists(part, max_size=4) | st.dictionaries(st.sampled_from("abc"), part, max_size=3),
    )
    before, after = data.draw(inner), data.draw(inner)
    found = value_diff(before, after)
    if isinstance(before, str) and isinstance(after, str):
        return
    assert [line.text for line in found if line.kind != "added"] == [*laid_out(before)]
    assert [line.text for line in found if line.kind != "removed"] == [*laid_out(after)]
    assert found.changed == [at for at, line in enumerate(found) if line.kind != "same"]
    assert [*found.kinds] == [line.kind for line in found]


def test_a_changed_leaf_of_a_large_value_is_found_without_reading_the_rest() -> None:
    class Unread(str):
        def __str__(self) -> str:
            raise AssertionError("its text was made")

    parts = {f"part{n}": [Unread("x" * 100)] * 50 for n in range(200)}
    found = value_diff({**parts, "at": {"n": 1}}, {**parts, "at": {"n": 2}})
    assert len(found) == 200 * 52 + 2 + 4
    assert [found[at].text for at in found.changed] == ['    "n": 1', '    "n": 2']


def test_what_is_added_to_a_long_list_is_all_that_differs() -> None:
    items = [{"n": n} for n in range(4_000)]
    found = value_diff(items, [*items[1:], {"n": -1}])
    assert [line.text.strip() for line in found[:5]] == ["[", "{", '"n": 0', "},", "{"]
    assert [found[at].text.strip() for at in found.changed] == [
        "{",
        '"n": 0',
        "},",
        "}",
        "},",
        "{",
        '"n": -1',
        "}",
    ]


def versions(*values: Any) -> list[tuple[Any, Any]]:
    points = tapes.advisor_tape().end.checkpoints
    return [(point, value) for point, value in zip(points, values, strict=False)]


def test_blame_names_the_last_writer_of_each_line() -> None:
    found = blame(versions("a\nb", "a\nc\nb", "a\nc\nd"))
    assert [(line.step, line.who, line.text) for line in found] == [
        (0, "input", "a"),
        (1, "worker", "c"),
        (2, "advisor", "d"),
    ]


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        pytest.param(([1], [1, 2], [1, 2, 3]), [0, 1, 2], id="items of a list"),
        pytest.param(({"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 0}), [0, 1, 2], id="keys"),
        pytest.param((1, 2, 2), [1], id="a number that stayed the same"),
        pytest.param((PRIVATE, PRIVATE), [0], id="a private value"),
        pytest.param((), [], id="nothing"),
        pytest.param((None, "a", "a\nb"), [1, 2], id="a text that was null"),
    ],
)
def test_blame_of(values: tuple[Any, ...], steps: list[int]) -> None:
    assert [line.step for line in blame(versions(*values))] == steps


def test_blame_names_a_person() -> None:
    point, value = versions("a")[0]
    by_ann = msgspec.structs.replace(point, source="human", actor="ann\x1b")
    assert blame([(by_ann, value)])[0].who == "ann␛"
