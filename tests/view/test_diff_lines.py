"""What differs between two states, as one reads it."""

from __future__ import annotations

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.view.diff_lines import compare_states, diff_lines
from hitl_tui.view.spans import plain_text


def diff_of(before: dict[str, object], after: dict[str, object]) -> list[str]:
    return [plain_text(line) for line in diff_lines(compare_states(before, after))]


def test_each_changed_channel_is_shown_with_context_lines():
    before = "\n".join("abcdefgh")
    after = before.replace("e", "E")
    assert diff_of({"draft": before, "same": 1}, {"draft": after, "same": 1, "new": 2}) == [
        "draft: changed", "    …", "    c", "    d", "  - e", "  + E", "    f", "    g", "new: added",
        "  - null", "  + 2",
    ]  # fmt: skip


def test_long_differences_are_cut():
    assert diff_of({"draft": "x"}, {"draft": "\n".join(map(str, range(500)))})[-1] == "    … 101 more lines"


def test_private_values_are_named_and_escapes_do_not_get_through():
    lines = diff_of({"key": PRIVATE, "a\x1b[2J": "x"}, {"key": PRIVATE, "a\x1b[2J": "\x1b[31mred"})
    assert lines[0] == "key: [private], not compared"
    assert not any("\x1b" in line for line in lines)


def test_equal_states_have_no_differences():
    assert diff_of({"a": 1}, {"a": 1}) == []


def test_a_member_that_differs_is_named_with_both_values_and_long_texts_by_their_lines():
    rows = [{"id": 1, "price": 2.25, "text": "word, " * 12 + "word"}]
    other = [{"id": 1, "price": None, "text": "word, " * 12 + "end"}]
    assert diff_of({"rows": rows, "odd": {"a b": 1}}, {"rows": other, "odd": {"a b": 1, "c": "\x1b"}}) == [
        "rows: changed",
        "  ~ [0].price: 2.25 → null",
        "  ~ [0].text: changed",
        "  ~ " + "word, " * 12 + "[-word-]{+end+}",
        "odd: changed",
        "  + c: “␛”",
    ]


def test_many_members_that_differ_are_shown_as_lines_of_json():
    lines = diff_of({"rows": [0] * 50}, {"rows": [1] * 50})
    assert lines[0] == "rows: changed"
    assert lines[2] == "  ~   [-0-]{+1+},"
