"""Where comments stand beside a text, and where they go with an answer."""

from __future__ import annotations

import msgspec
import pytest

from hitl_tui.engine.log.requests import Choice, Request
from hitl_tui.engine.thread.comments import Comment
from hitl_tui.view.comments import destination, numbered_rows
from hitl_tui.view.revision import revision
from hitl_tui.view.rows import wrap_rich
from hitl_tui.view.spans import Span

OLD = "The first line stays.\nThe second line has a word.\nThe third goes away entirely."
NEW = "The first line stays.\nThe second line has two more words here.\nA new one."


@pytest.mark.parametrize("marked", [False, True], ids=["colours", "none"])
@pytest.mark.parametrize("width", [12, 78])
def test_numbers_stand_where_passages_begin_whatever_was_removed_before(width: int, marked: bool):
    lines = revision(OLD, NEW)
    rows = [row for line in lines for row in wrap_rich(line.spans(marked=marked), width)]
    quotes = ["stays", "second", "A new"]
    comments = [(at, Comment(quote, "?", "draft", NEW.index(quote))) for at, quote in enumerate(quotes, 1)]
    numbers = numbered_rows(rows, NEW, comments, marked=marked)
    told = {number: "".join(span.text for span in rows[row]) for row, number in numbers.items()}
    assert {"1", "2", "3"} == set(told)
    assert all(quote.split()[0] in told[str(at)] for at, quote in enumerate(quotes, 1))


def test_comments_that_begin_on_one_row_share_it():
    comments = [(1, Comment("a", "?", "d", 0)), (2, Comment("b", "?", "d", 2))]
    row = (Span("a b"),)
    assert numbered_rows([row], "a b", comments, marked=False) == {0: "1,2"}


WORDY = Choice("revise", "write it again", text="required")
SILENT = Choice("accept", "take it", text="none")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"choices": (WORDY,)}, "they go with the words of your answer"),
        ({"choices": (SILENT,)}, "the ledger alone keeps them"),
        ({"choices": (WORDY, SILENT)}, "“write it again”; with another answer the ledger alone"),
        ({"schema": {"type": "object"}}, "the ledger alone keeps them"),
        ({"schema": {"type": "string"}}, "they go with the words of your answer"),
    ],
    ids=["words", "none", "some", "form", "text"],
)
def test_the_card_says_where_comments_go(request_: Request, change: dict[str, object], said: str):
    assert said in destination(msgspec.structs.replace(request_, **change))


@pytest.fixture
def request_() -> Request:
    return Request("r1", "choice", "judge", "after", 1, "Good?", subject="draft")
