"""Long lines as rows: every word is there, nothing is wider than the room, and parts cost what they are."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest
from rich.cells import cell_len

from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.view.rows import LongRows
from tests.support import tape as tapes
from tests.ui.harness import desk


def rows_of(lines: list[str], width: int) -> list[tuple[int, int, str]]:
    rows = LongRows(lines, lambda line: width)
    while not rows.done:
        rows.find_more(100)
    return [rows.row(number) for number in range(len(rows))]


@pytest.mark.parametrize(
    "text",
    ["word " * 500, "x" * 1000, "漢字 " * 300, "漢" * 500, "a\tb " * 200, "e\u0301" * 300, "👩‍👧 " * 100],
    ids=["words", "one word", "wide words", "one wide word", "tabs", "marks", "joined emoji"],
)
@pytest.mark.parametrize("width", [8, 30, 77])
def test_every_row_fits_and_nothing_is_lost(text: str, width: int):
    found = rows_of(["first", text, "", "last"], width)
    assert all(cell_len(row) <= width for _, _, row in found)
    assert [row for line, _, row in found if line in (0, 2, 3)] == ["first", "", "last"]
    assert [start for line, start, _ in found if line == 1].count(0) == 1
    joined = "".join(row for line, _, row in found if line == 1)
    assert joined.replace(" ", "") == text.replace("\t", "").replace(" ", "")


def test_what_is_not_reached_yet_counts_as_a_row_a_line():
    rows = LongRows(["a" * 100_000, "b", "c"], lambda line: 50)
    rows.find_more(1_000)
    known = len(rows)
    assert known < 100
    assert rows.row(known - 1) == (2, 0, "c")
    assert rows.first_row(1) == 2_000
    assert len(rows) == 2_002


@pytest.mark.parametrize(
    "size",
    [pytest.param((120, 40), id="120x40"), pytest.param((80, 24), marks=pytest.mark.slow, id="80x24")],
)
@pytest.mark.slow
async def test_five_megabytes_in_one_line_are_read_to_their_end(size: tuple[int, int]):
    text = "BEGIN " + "words and more words " * 240_000 + "THE-END"
    tape = tapes.advisor_tape()
    values = {**tape.end.values, "latest_draft": text}
    tape = dataclasses.replace(tape, end=msgspec.structs.replace(tape.end, values=values))
    async with desk(tape, size=size) as it:
        await it.press("1")
        await it.shows("BEGIN words and more")
        pane = it.run.query_one(ValuePane)
        assert pane.max_scroll_x == 0
        await it.until(lambda: pane._long is not None and pane._long.done, "all rows")
        pane.focus()
        await it.press("end")
        await it.shows("THE-END")
