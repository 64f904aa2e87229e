"""Pages of a document: rows, sentences, changes, notes, headings and matches."""

from __future__ import annotations

import pytest

from hitl_tui.view.document import document
from hitl_tui.view.reader import (
    MarginNote,
    Pages,
    document_changes,
    matches,
    page_of,
    page_top,
    text_changes,
)
from hitl_tui.view.spans import plain_text, trusted
from tests.support.newsroom import FIRST, LONG, SECOND

WIDTHS = (200, 120, 80, 40)


def laid_out(width: int = 120, *, marked: bool = False, notes: tuple[MarginNote, ...] = ()) -> Pages:
    old, new = document("draft", FIRST), document("draft", SECOND)
    return Pages(new, width, changes=document_changes(old, new), marked=marked, notes=notes)


def texts(pages: Pages) -> list[str]:
    return ["".join(piece.text for piece in row.pieces) for row in pages.rows]


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_are_no_wider_than_is_easy_to_read(width: int):
    pages = laid_out(width)
    assert max(map(len, texts(pages))) <= min(66, width - 4) or width < 60
    assert pages.left + pages.measure <= width


@pytest.mark.parametrize("old", [FIRST, "", "a b c", "one\ntwo\nthree"])
@pytest.mark.parametrize("new", [SECOND, "", "a x c", "one\nthree"])
def test_changes_say_what_was_there_before_and_what_is_there_now(old: str, new: str):
    for change in text_changes(old, new):
        assert old[change.old_start : change.old_end] == change.removed
        assert new[change.start : change.end] == new[change.start : change.end].strip()
    rest_old = [old[change.old_start : change.old_end] for change in text_changes(old, new)]
    assert (rest_old == []) == (old.split() == new.split())


def test_words_removed_from_the_middle_of_a_line_keep_their_blanks():
    old, new = document("draft", "One here. Two there. Three."), document("draft", "One here. Three.")
    assert texts(Pages(new, 80, changes=document_changes(old, new), marked=True)) == [
        "One here. [-Two there.-] Three."
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_changed_words_stand_at_their_places_with_the_words_before(width: int):
    pages = laid_out(width, marked=True)
    whole = " ".join(" ".join(texts(pages)).split())
    for shown in ("[-four-]{+seven+} above", "[-Two members asked for a repair.-]", "{+A paragraph of"):
        assert shown in whole or width == 40
    assert len(pages.change_rows) == 4
    assert all(pages.rows[row].changed for row in pages.change_rows)


def test_whole_paragraphs_that_were_removed_stand_above_what_follows():
    old = document("draft", "One.\n\nGone a.\n\nGone b.\n\nThree.")
    new = document("draft", "One.\n\nThree.")
    assert [text for text in texts(Pages(new, 80, changes=document_changes(old, new))) if text] == [
        "One.", "Gone a.", "Gone b.", "Three.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        (
            "クレーンは古い。新しいのは高い！本当？はい",
            ["クレーンは古い。", "新しいのは高い！", "本当？", "はい"],
        ),
        ("彼は「もう十分だ。」と言った。", ["彼は「もう十分だ。」", "と言った。"]),
        ("الرافعة قديمة. هل هذا صحيح؟ نعم.", ["الرافعة قديمة.", "هل هذا صحيح؟", "نعم."]),
        ("It costs 3.5 euros at example.org today. So.", ["It costs 3.5 euros at example.org today.", "So."]),
        ("# Head\n\n- a. b.\n- c", ["Head", "a.", "b.", "c"]),
    ],
)
def test_the_cursor_goes_from_sentence_to_sentence(text: str, sentences: list[str]):
    pages = Pages(document("draft", text), 80)
    assert [text[unit.start : unit.end] for unit in pages.units] == sentences


def test_a_sentence_may_go_over_lines_that_were_broken_by_their_width():
    text = "This line is as long as lines are that a width has broken,\nand it goes on. So."
    pages = Pages(document("draft", text), 80)
    assert [text[unit.start : unit.end] for unit in pages.units] == [text[:-4], "So."]


@pytest.mark.parametrize("width", WIDTHS)
def test_each_sentence_is_found_on_the_row_that_begins_it(width: int):
    pages = laid_out(width)
    for number, unit in enumerate(pages.units):
        rows = pages.rows_of(unit)
        shown = "".join(piece.text for row in pages.rows[rows.start : rows.stop] for piece in row.pieces)
        assert SECOND[unit.start : unit.start + 4] in shown
        assert pages.unit_at(unit.part, unit.start) == number


def test_headings_have_their_rows():
    pages = laid_out(80, notes=(MarginNote(0, 0, ((trusted("a note"),),)),))
    rows = texts(pages)
    assert [(heading.level, heading.text) for heading in pages.headings] == [
        (1, "The harbour crane"), (2, "Money and paper"), (2, "The quay"),
    ]  # fmt: skip
    assert all(rows[heading.row] == heading.text for heading in pages.headings)
    assert pages.heading_at(pages.headings[1].row + 3) == "Money and paper"


@pytest.mark.parametrize(("width", "beside"), [(120, True), (80, False)])
def test_notes_are_beside_their_passage_or_below_its_paragraph(width: int, beside: bool):
    at = SECOND.index("Nobody believed")
    pages = laid_out(width, notes=(MarginNote(0, at, ((trusted("who said this?"),),)),))
    row = pages.row_at(0, at)
    if beside:
        assert plain_text(pages.rows[row].side) == "who said this?"
    else:
        below = next(number for number, shown in enumerate(pages.rows) if shown.note)
        assert plain_text(pages.rows[below].note) == "who said this?"
        assert row < below <= row + 3


def test_each_row_is_on_a_page():
    for rows in (1, 10, 11, 100):
        pages = page_of(0, 11, rows)[1]
        assert page_of(rows, 11, rows) == (pages, pages)
        for page in range(1, pages):
            assert page_of(page_top(page, 11), 11, rows) == (page, pages)


def test_a_search_finds_each_place_whatever_its_case():
    shown = document("draft", LONG)
    assert len(matches(shown, "SURVEYOR")) == LONG.count("surveyor")
    assert all(LONG[hit.start : hit.end] == "surveyor" for hit in matches(shown, "surveyor"))
    assert matches(shown, "") == matches(shown, "no such word") == []


def test_a_place_on_screen_is_found_in_the_text():
    pages = laid_out()
    row = pages.row_at(0, SECOND.index("Nobody believed"))
    assert pages.offset_at(row, 7) == (0, SECOND.index("believed that"))
    assert pages.offset_at(10**6, 0) is None
