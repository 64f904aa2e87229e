"""JSON in the value pane: the cursor says where it is, folds what it is in, and copies that part."""

from __future__ import annotations

import dataclasses
import re

import msgspec
import pytest

from hitl_tui.ui.widgets.value import ValuePane
from tests.support import tape as tapes
from tests.ui.harness import Screen, desk

PLAN = {"goal": "lunch", "plan": [{"worker": "ann"}, {"worker": "bob"}]}


def planned(value: object = PLAN) -> tapes.Tape:
    tape = tapes.advisor_tape()
    values = {**tape.end.values, "latest_draft": value}
    return dataclasses.replace(tape, end=msgspec.structs.replace(tape.end, values=values))


def title(it: Screen) -> str:
    return str(it.run.query_one(ValuePane).border_title)


@pytest.mark.parametrize(
    ("size", "mode"),
    [
        pytest.param((120, 40), "1", id="120x40, text"),
        pytest.param((80, 24), "3", id="80x24, json"),
        pytest.param((120, 40), "3", marks=pytest.mark.slow, id="120x40, json"),
        pytest.param((80, 24), "1", marks=pytest.mark.slow, id="80x24, text"),
    ],
)
@pytest.mark.slow
async def test_a_key_folds_and_the_border_says_where_the_cursor_is(size: tuple[int, int], mode: str):
    async with desk(planned(), size=size) as it:
        await it.press(mode)
        await it.shows('"worker": "ann"')
        it.run.query_one(ValuePane).focus()
        await it.press("down", "down")
        await it.until(lambda: title(it) == "latest_draft.plan", "the path")
        await it.press("space")
        await it.shows('"plan": [… 2 items]')
        assert '"ann"' not in it.text()
        await it.press("space", *["down"] * 4)
        await it.until(lambda: title(it) == "latest_draft.plan[1]", "the path")
        await it.press("down")
        await it.until(lambda: title(it) == "latest_draft.plan[1].worker", "the path")
        await it.press("*")
        await it.shows("… 2 items")
        assert title(it) == "latest_draft.plan"
        await it.press("*")
        await it.shows('"ann"')


@pytest.mark.slow
async def test_the_part_under_the_cursor_is_what_is_copied(monkeypatch: pytest.MonkeyPatch):
    copied: list[str] = []
    async with desk(planned(), size=(120, 40)) as it:
        monkeypatch.setattr(it.app, "copy_to_clipboard", copied.append)
        await it.press("3")
        await it.shows('"worker": "bob"')
        it.run.query_one(ValuePane).focus()
        await it.press(*["down"] * 6, "y")
        await it.shows("Of latest_draft.plan[1]:")
        await it.press("p")
        await it.until(lambda: len(copied) == 1, "a copy")
        await it.press("space", "y")
        await it.shows("Of latest_draft.plan[1]:")
        await it.press("v")
        await it.until(lambda: len(copied) == 2, "a copy")
    assert copied[0] == "latest_draft.plan[1]"
    assert msgspec.json.decode(copied[1]) == {"worker": "bob"}


@pytest.mark.slow
async def test_prose_has_no_cursor_and_says_that_it_does_not_fold():
    async with desk(size=(120, 40)) as it:
        await it.press("1", "space")
        await it.shows("only a value with parts folds")
        assert it.run.query_one(ValuePane).cursor_row is None


@pytest.mark.parametrize("size", [(120, 40), (240, 60)], ids=["120x40", "240x60"])
@pytest.mark.slow
async def test_prose_is_set_no_wider_than_one_reads_with_ease(size: tuple[int, int]):
    words = " ".join(f"w{number:03}" for number in range(100))
    async with desk(planned(words), size=size) as it:
        await it.press("1")
        await it.shows("w000", "w050")
        pane = it.run.query_one(ValuePane)
        if size[0] == 240:
            assert pane.scrollable_content_region.width > 100
        rows = [row for line in it.text().splitlines() for row in re.findall(r"w\d{3}(?: w\d{3})*", line)]
        widest = max(map(len, rows))
        assert widest <= 80
        if pane.scrollable_content_region.width >= 80:
            assert widest >= 72


@pytest.mark.slow
async def test_what_is_folded_in_a_megabyte_at_its_end_stays_where_it_is():
    rows = [{"id": number, "text": "words and more " * 4} for number in range(10_000)]
    async with desk(planned({"rows": rows}), size=(120, 40)) as it:
        await it.press("3")
        await it.shows('"rows": [')
        it.run.query_one(ValuePane).focus()
        await it.press("end", "up", "up")
        await it.until(lambda: title(it) == "latest_draft.rows[9999]", "the path")
        await it.press("space")
        await it.shows("{… 2 keys}")
        assert title(it) == "latest_draft.rows[9999]"


@pytest.mark.slow
async def test_rows_that_are_found_above_do_not_push_away_what_one_reads():
    rows = [{"id": number, "text": "words and more " * 4} for number in range(3_000)]
    async with desk(planned({"rows": rows}), size=(120, 40)) as it:
        await it.press("3")
        await it.shows('"rows": [')
        pane = it.run.query_one(ValuePane)
        pane.action_scroll_end()
        pane.action_page_up()
        pane.action_page_up()
        read = title(it)
        assert pane._long is not None
        while not pane._long.done:
            pane._find_more()
        await it.pilot.pause()
        assert title(it) == read
        assert pane.cursor_row is not None
        assert 0 <= pane.cursor_row - pane.scroll_y < pane.size.height


@pytest.mark.slow
async def test_the_cursor_stays_where_it_is_while_rows_above_are_found_and_in_another_width():
    rows = [{"id": number, "text": "words and more " * 9} for number in range(2_000)]
    async with desk(planned({"rows": rows}), size=(120, 40)) as it:
        await it.press("3")
        await it.shows('"rows": [')
        pane = it.run.query_one(ValuePane)

        def stands() -> bool:
            row = pane.cursor_row
            return title(it) == at and row is not None and 0 <= row - pane.scroll_y < pane.size.height

        pane.focus()
        await it.press("end", "pageup", "pageup", "up")
        at = title(it)
        assert int(at.partition("[")[2].partition("]")[0]) > 1_900
        for size in ((120, 40), (100, 30), (160, 45)):
            await it.pilot.resize_terminal(*size)
            await it.until(stands, "the cursor on screen")
            await it.until(lambda: pane._long is not None and pane._long.done, "all rows")
            assert stands()
