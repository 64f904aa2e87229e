"""What was made of the same values is shown again; equal ones are not the same."""

from __future__ import annotations

from hitl_tui.view.session import Memo


def test_it_finds_what_was_made_of_these_very_objects():
    memo, value = Memo(), [1, 2]
    memo.keep("json", (value,), "made")
    assert memo.find("json", (value,)) == "made"
    assert memo.find("json", ([1, 2],)) is None
    assert memo.find("text", (value,)) is None
    assert memo.find("json", (value, value)) is None


def test_it_keeps_only_the_newest_results():
    memo, values = Memo(), [[number] for number in range(10)]
    for value in values:
        memo.keep("json", (value,), value)
    assert [value for value in values if memo.find("json", (value,)) is not None] == values[-3:]
