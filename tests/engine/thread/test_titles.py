"""The title of a question that a node asks without one is a question that a person would ask."""

from typing import Any

import pytest

from hitl_tui.engine.thread.titles import question_title


@pytest.mark.parametrize(
    ("payload", "kind", "title"),
    [
        ("Shall I continue?", "ask", "Shall I continue?"),
        ("Shall I continue?\nThere are 3 left.", "ask", "Shall I continue?"),
        ("Pick one of these", "choose", "Pick one of these"),
        ("Send it?", "approve", "Send it?"),
        ("A long draft.", "approve", "Approve this text?"),
        ("A long draft.", "edit", "Edit this text?"),
        ({"question": "Is it right?", "draft": "…"}, "ask", "Is it right?"),
        ({"text_to_revise": "…"}, "ask", "Review this text to revise?"),
        ({"draft": "…"}, "approve", "Approve this draft?"),
        ({"rows": [], "by": "cost"}, "ask", "Review rows and by?"),
        ({"a": 1, "b": 2, "c": 3}, "edit", "Edit a, b and c?"),
        (dict.fromkeys("abcde"), "edit", "Edit a, b, c and 2 more?"),
        (["x", "y"], "approve", "Approve these 2 items?"),
        (["x"], "approve", "Approve this item?"),
        (None, "ask", "Your answer to look[2]?"),
        ("  ", "approve", "Your answer to look[2]?"),
        (7, "ask", "Your answer to look[2]?"),
    ],
)
def test_the_title_is_taken_from_what_the_payload_says(payload: Any, kind: str, title: str) -> None:
    assert question_title(payload, "look[2]", kind) == title


def test_a_long_text_is_cut() -> None:
    assert question_title("why " * 100, "n") == f"{('why ' * 100)[:199]}…"
