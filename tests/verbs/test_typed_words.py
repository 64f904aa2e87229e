"""What is typed after a verb in plain text mode."""

from __future__ import annotations

import pytest

from hitl_tui.errors import UsageError
from hitl_tui.plain.conversations import read_words
from hitl_tui.verbs import verbs


@pytest.mark.parametrize(
    ("typed", "fields"),
    [
        ("bob", {"name": "bob"}),
        ("@bob you know him", {"name": "@bob", "note": "you know him"}),
        ("bob he knows Ann's file", {"name": "bob", "note": "he knows Ann's file"}),
        ('bob note="you know him"', {"name": "bob", "note": "you know him"}),
        ("name=bob --note=gone", {"name": "bob", "note": "gone"}),
        ("", {}),
    ],
)
def test_words_after_the_last_value_are_the_note(typed: str, fields: dict[str, str]) -> None:
    assert read_words("hand-over", verbs()["hand-over"].load(), typed).fields == fields


@pytest.mark.parametrize(
    ("name", "typed"), [("extend", "max_turns=1"), ("cancel", "now"), ("hand-over", "bob x=1")]
)
def test_other_words_are_refused(name: str, typed: str) -> None:
    with pytest.raises(UsageError, match="does not take"):
        read_words(name, verbs()[name].load(), typed)
