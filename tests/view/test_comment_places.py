"""Where comments stand beside a text, and where they go with an answer."""

from __future__ import annotations

import msgspec
import pytest

from hitl_tui.engine.log.requests import Choice, Request
from hitl_tui.engine.thread.comments import Comment
from hitl_tui.view.comments import (
    destination,
    numbered_lines,
    numbered_rows,
    passages,
    selected_passages,
    standing,
)
from hitl_tui.view.revision import revision
from hitl_tui.view.rows import wrap_rich
from hitl_tui.view.spans import Span
from hitl_tui.view.value_lines import JsonLines, value_lines

OLD = "The first line stays.\nThe second line has a word.\nThe third goes away entirely."
NEW = "The first line stays.\nThe second line has two more words here.\nA new one."


@pytest.mark.parametrize("marked", [False, True], ids=["colours", "none"])
@pytest.mark.parametrize("width", [12, 78])
def test_comment_numbers_are_placed_at_their_passages(width: int, marked: bool):
    lines = revision(OLD, NEW)
    rows = [row for line in lines for row in wrap_rich(line.spans(marked=marked), width)]
    quotes = ["stays", "second", "A new"]
    comments = [(at, Comment(quote, "?", "draft", NEW.index(quote))) for at, quote in enumerate(quotes, 1)]
    numbers = numbered_rows(rows, NEW, comments, marked=marked)
    text_by_number = {number: "".join(span.text for span in rows[row]) for row, number in numbers.items()}
    assert {"1", "2", "3"} == set(text_by_number)
    assert all(quote.split()[0] in text_by_number[str(at)] for at, quote in enumerate(quotes, 1))


def test_comments_that_begin_on_one_row_share_it():
    comments = [(1, Comment("a", "?", "d", 0)), (2, Comment("b", "?", "d", 2))]
    row = (Span("a b"),)
    assert numbered_rows([row], "a b", comments, marked=False) == {0: "1,2"}


@pytest.mark.parametrize("marked", [False, True], ids=["colours", "none"])
def test_in_a_large_text_a_passage_has_its_line_and_column(marked: bool):
    old = "gone\n" * 40 + "\tThe words \x1b[1m of the middle are these.\n" + "stays\n" * 40
    new = "new\n" * 30 + "\tThe better words \x1b[1m of the middle were these.\n" + "stays\n" * 40 + "the end"
    lines = revision(old, new)
    quotes = ["better words", "of the", "these", "the end"]
    comments = [(at, Comment(quote, "?", "draft", new.index(quote))) for at, quote in enumerate(quotes, 1)]
    for revised in (lines, None):
        texts = lines.texts(marked=marked) if revised else value_lines(new, "text")
        places = numbered_lines(new, revised, comments, marked=marked)
        text_by_number = {
            number: texts[line].replace("\t", "    ")[column:].replace("+}", "")
            for line, there in places.items()
            for column, number in there
        }
        assert text_by_number.keys() == {1, 2, 3, 4}
        assert all(text_by_number[at].startswith(quote.split()[0]) for at, quote in enumerate(quotes, 1))


def test_in_another_version_a_comment_moves_with_its_passage_or_is_hidden():
    comments = [
        (1, Comment("second line", "?", "d", NEW.index("second line"))),
        (2, Comment("A new", "?", "d", 59)),
    ]
    ((number, placed),) = standing("Before it all. The second\nline has a word.", comments)
    assert (number, placed.offset) == (1, 19)


def test_the_line_of_a_path_is_that_in_which_its_part_begins():
    value = {"plan": [{"worker": "a", "task.x": "b"}, {"worker": "c"}], "plan[1]": 3, "e": []}
    lines = JsonLines(value, breaks=True)
    at = {
        path: lines.line_of(path)
        for path in ("", ".plan", ".plan[1].worker", ".plan[0].task.x", ".plan[1]", ".e")
    }
    assert {path: lines[line].strip() for path, line in at.items() if line is not None} == {
        "": "{", ".plan": '"plan": [', ".plan[1].worker": '"worker": "c"', ".plan[0].task.x": '"task.x": "b"',
        ".plan[1]": "{", ".e": '"e": []',
    }  # fmt: skip
    assert [lines.line_of(path) for path in (".plan[2]", ".none", "[0]", ".plan[0].worker.x")] == [None] * 4


WORDY = Choice("revise", "write it again", text="required")
SILENT = Choice("accept", "take it", text="none")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"choices": (WORDY,)}, "sent with your answer"),
        ({"choices": (SILENT,)}, "only logged"),
        ({"choices": (WORDY, SILENT)}, "“write it again”; with any other answer only logged"),
        ({"schema": {"type": "object"}}, "only logged"),
        ({"schema": {"type": "string"}}, "sent with your answer"),
    ],
    ids=["words", "none", "some", "form", "text"],
)
def test_the_card_says_where_comments_go(request_: Request, change: dict[str, object], said: str):
    assert said in destination(msgspec.structs.replace(request_, **change))


@pytest.fixture
def request_() -> Request:
    return Request("r1", "choice", "judge", "after", 1, "Good?", subject="draft")


def test_repeated_words_are_commented_on_where_they_were_selected():
    text = "The pads are late.\n\nNothing else.\n\nStill: the pads are late."
    rows = [(Span(line),) for line in text.split("\n")]
    found = passages("draft", text)
    first = selected_passages(found, "pads are late.", [*rows[:0], (Span("The "),)])
    last = selected_passages(found, "pads are late.", [*rows[:4], (Span("Still: the "),)])
    assert [passage.offset for passage in (*first, *last)] == [4, text.rindex("pads")]
    older = (Span("a paragraph that was removed", "removed"),)
    assert selected_passages(found, "pads are late.", [older, (Span("The "),)]) == first
    assert selected_passages(found, "no such words") == ()


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Version 1.2 is out. See a.b.c.", ["Version 1.2 is out.", "See a.b.c."]),
        (
            "これは本です。「はい。」そうですか？違います！",
            ["これは本です。", "「はい。」", "そうですか？", "違います！"],
        ),
        ("هل وصل الطلب؟ نعم. شكرا۔ حسنا", ["هل وصل الطلب؟", "نعم.", "شكرا۔", "حسنا"]),
        ("यह ठीक है। धन्यवाद।", ["यह ठीक है।", "धन्यवाद।"]),
    ],
    ids=["english", "dots", "japanese", "arabic", "hindi"],
)
def test_a_passage_is_a_sentence_in_each_script(text: str, sentences: list[str]):
    assert [passage.text for passage in passages("draft", text) if passage.text] == sentences
