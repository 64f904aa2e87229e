"""What a request is about on one line: the words of its subject, its arguments, its fields."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui.engine.log.requests import Choice, Request, Vote
from hitl_tui.view.about import about_text, searched_text, sent_back_why, text_words, version_words

CALL = {
    "action_requests": [
        {"name": "send_mail", "args": {"to": "board@example.org", "subject": "the minutes"}},
        {"name": "run_sql", "args": {"query": "delete from minutes"}},
    ],
    "review_configs": [],
}
REVISE = (Choice("publish", "publish it"), Choice("revise", "send back", text="required"))


def asked(**fields: Any) -> Request:
    return Request("r", "approve", "n", "after", 3, "Ship it?", **fields)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"excerpt": "# Tea\n\nThe **workers** rest.\n---\n- at three"}, "Tea · The workers rest. at three"),
        ({"excerpt": "x", "payload": {"n": 1}}, "x"),
        ({"payload": {"to": "Hansen", "amount": 12400, "why": "second instalment", "none": None}},
         "to Hansen · amount 12400 · why “second instalment”"),
        ({"payload": {"plan": [{"worker": "trains", "task": "a night train"}, {"worker": "hotel"}]}},
         "plan 1 trains: a night train · 2 hotel"),
        ({"payload": CALL, "shape": "hitl_middleware"},
         "send_mail to board@example.org · subject “the minutes” · run_sql query “delete from minutes”"),
        ({"payload": {"agent": "a", "verdict": "revise", "feedback": "too\nlong"}}, "too long"),
        ({"payload": "Shall we\ngo on?"}, "Shall we go on?"),
        ({"payload": "Ship it?"}, ""),
        ({"schema": {"type": "object", "properties": {"item": {"type": "string"}, "n": {"type": "integer"}}}},
         "item · n"),
        ({"breakpoint": True, "payload": {"n": 1}}, ""),
        ({}, ""),
    ],
)  # fmt: skip
def test_a_line_says_what_it_is_about(fields: dict[str, Any], words: str) -> None:
    assert about_text(asked(**fields)) == words


def test_what_others_wrote_is_harmless() -> None:
    bad = "x\x1b[2J\x9b\u202e"
    for fields in (
        {"excerpt": bad}, {"payload": bad}, {"payload": {bad: bad}}, {"payload": {"a": [{bad: bad}]}},
        {"payload": {"agent": bad, "verdict": bad, "feedback": bad}},
        {"last_answer": Vote(bad, {"choice": "revise", "text": bad}, 1), "choices": REVISE, "excerpt": bad},
    ):  # fmt: skip
        request = asked(**fields)
        for words in (about_text(request), version_words(request, "me"), sent_back_why(request)):
            assert words.isprintable()


def test_a_version_says_who_sent_the_last_one_back() -> None:
    last = Vote("ann", {"choice": "revise", "text": "numbers first"}, 1)
    back = asked(version=3, choices=REVISE, last_answer=last)
    assert version_words(back, "ann") == "version 3, back from you"
    assert version_words(back, "bob") == "version 3, back from ann"
    assert sent_back_why(back) == "numbers first"
    assert version_words(asked(version=1, choices=REVISE), "ann") == ""
    approved = asked(version=2, choices=REVISE, last_answer=Vote("ann", "publish", 1))
    assert version_words(approved, "ann") == "version 2"


def test_a_search_looks_at_the_subject_and_the_arguments() -> None:
    text = searched_text(asked(excerpt="The Harbour crane", payload={"to": "Hansen"}))
    assert "harbour crane" in text
    assert "hansen" in text


def test_a_long_value_costs_no_more_than_a_short_one() -> None:
    request = asked(payload={str(number): "x" * 9000 for number in range(9000)})
    assert len(about_text(request)) < 400


@pytest.mark.parametrize(
    ("text", "line"),
    [("```python\nx = 1\n```", "x = 1"), ("## A\n## B", "A · B"),
     ("> quoted\n\n| a | b |\n|---|---|", "quoted | a | b |")],
)  # fmt: skip
def test_marks_of_markdown_are_left_out(text: str, line: str) -> None:
    assert text_words(text) == line
