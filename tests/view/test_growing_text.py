"""Text that grows at its end looks as if it had been wrapped at once."""

from __future__ import annotations

import random

import pytest

from hitl_tui.view import rows
from hitl_tui.view.cells import cells
from hitl_tui.view.rows import GrowingText, wrap_line
from hitl_tui.view.sanitise import sanitise

WORDS = (
    "a",
    "word",
    "rather-long-word",
    "x" * 70,
    "日本語",
    "\t",
    "  ",
    "\x1b[2J",
    "e\u0301",
    "👩‍👧",
    "end.",
)


def wrapped(text: str, width: int) -> list[str]:
    return [row for line in text.split("\n") for row in wrap_line(sanitise(line), width)]


def grown(pieces: list[str], width: int) -> GrowingText:
    text = GrowingText(width)
    for piece in pieces:
        text.append(piece)
    return text


@pytest.mark.parametrize("seed", range(20))
def test_it_does_not_matter_in_which_pieces_a_text_comes(seed):
    choose = random.Random(seed)
    text = "".join(choose.choice(WORDS) + choose.choice((" ", " ", " ", "\n")) for _ in range(400))
    pieces, at = [], 0
    while at < len(text):
        size = choose.randint(1, 12)
        pieces.append(text[at : at + size])
        at += size
    assert grown(pieces, 34).rows == wrapped(text, 34)


@pytest.mark.parametrize("width", [12, 34, 80])
def test_a_line_that_never_ends_is_wrapped_as_a_whole_would_be(width):
    pieces = [f"word{number} " for number in range(2_000)]
    rows = grown(pieces, width).rows
    assert rows == wrapped("".join(pieces), width)[-len(rows) :]


def test_text_without_a_blank_is_cut_at_the_width():
    rows = grown(["x" * 7] * 3_000, 30).rows
    assert {len(row) for row in rows} == {30}


def test_a_word_of_a_megabyte_is_wrapped_by_looking_at_it_once():
    looked_at = 0

    def measured(text: str) -> int:
        nonlocal looked_at
        looked_at += len(text)
        return cells(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "cells", measured)
        wrapped = rows.wrap_line("x" * 1_000_000, 50)
    assert len(wrapped) == 20_000
    assert looked_at < 20_000_000


@pytest.mark.slow
def test_what_is_added_to_a_long_line_does_not_wrap_all_of_it_again(monkeypatch):
    asked = []
    monkeypatch.setattr(
        rows, "wrap_line", lambda text, width: asked.append(len(text)) or wrap_line(text, width)
    )
    grown([f"word{number} " for number in range(20_000)], 34)
    assert max(asked) < 4_000


def test_only_the_newest_rows_are_kept():
    text = grown([f"line {number}\n" for number in range(5_000)], 34)
    assert len(text.rows) == 2_000
    assert text.rows[-2:] == ["line 4999", ""]


def test_a_break_of_carriage_return_and_newline_may_come_in_two_pieces():
    assert grown(["one\r", "\ntwo"], 34).rows == ["one", "two"]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_carriage_return_goes_back_to_the_start_of_the_line_as_progress_bars_do(size: int):
    text = "begin\n\r 10%|#   | 1/4\r100%|####| 4/4\nlonger\rab\r\nend\r"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert grown(pieces, 34).rows == ["begin", "100%|####| 4/4", "abnger", "end"]
