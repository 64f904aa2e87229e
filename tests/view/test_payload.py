"""Payloads are laid out as people read them, and nothing of them is left out."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.view.payload import payload_rows
from hitl_tui.view.spans import plain_text

MAIL = {"to": "a@example.org", "subject": "Minutes", "body": "Dear all,\n\nsee below.\n", "urgent": True}


def text(value: Any, width: int = 40) -> str:
    return "\n".join(plain_text(row) for row in payload_rows(value, width))


def test_keys_are_aligned_and_long_values_continue_below_themselves():
    value = {"to": "City print shop", "amount": 990.5, "for": "posters, four hundred pieces, in A2, on paper"}
    assert text(value, 34) == (
        "to      City print shop\n"
        "amount  990.5\n"
        "for     posters, four hundred\n"
        "        pieces, in A2, on paper"
    )  # fmt: skip


def test_a_text_keeps_its_line_breaks_below_its_key():
    assert text({"path": "x", "words": "one\n\ntwo"}) == "path  x\n\nwords\n  one\n\n  two"


def test_a_mail_is_a_mail_and_what_else_it_has_is_below():
    assert text(MAIL) == (
        "╭──────────────────────────────────────╮\n"
        "│ to a@example.org                     │\n"
        "│ subject Minutes                      │\n"
        "│                                      │\n"
        "│ Dear all,                            │\n"
        "│                                      │\n"
        "│ see below.                           │\n"
        "╰──────────────────────────────────────╯\n"
        "\n"
        "urgent  yes"
    )


def test_a_chat_is_a_chat_and_says_what_only_the_json_has():
    chat = [{"role": "user", "content": "Where?", "id": "x"}, {"role": "assistant", "content": "In\nBremen."}]
    assert text(chat) == "user\n  Where?\n\nassistant\n  In\n  Bremen.\n\nonly in the JSON: id"


def test_tool_calls_of_a_chat_are_shown():
    chat = [{"role": "assistant", "content": "", "tool_calls": [{"name": "send", "args": {"to": "ann"}}]}]
    assert "name  send" in text(chat)
    assert "to  ann" in text(chat)


def test_lists_of_objects_are_numbered():
    assert text({"items": [{"article": "tea", "pieces": 2}, {"article": "cup", "pieces": 1}]}) == (
        "items\n  1  article  tea\n     pieces   2\n\n  2  article  cup\n     pieces   1"
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "none"), ("", "empty"), (False, "no"), ([], "an empty list"), ({}, "an empty object"), (3, "3")],
)
def test_what_is_empty_is_named(value: Any, words: str):
    assert text({"x": value}) == f"x  {words}"


def test_private_values_and_control_characters_stay_hidden():
    shown = text({"key": PRIVATE, "evil": "a\x1b[2Jb", "name\x1b]0;x": "y"})
    assert "\x1b" not in shown
    assert "[private]" in shown


def test_no_row_is_wider_than_the_pane():
    deep = {"a": {"b": {"c": {"d": {"e": {"f": [{"g": [1, 2]}]}}}}}}
    value = {"k" * 50: "v" * 90, "deep": deep, **MAIL}
    for width in (30, 40, 100):
        assert max(len(plain_text(row)) for row in payload_rows(value, width)) <= width


def test_every_text_of_a_value_is_shown():
    value = {"a": ["one", {"b": "two"}], "c": {"d": ["three, four", "five"]}, **MAIL}
    for words in ("one", "two", "three, four", "five", "Minutes", "see below."):
        assert words in text(value)


def test_a_value_of_very_many_parts_is_laid_out_line_by_line():
    assert text(list(range(6_000)))[:4] == "[\n  "
