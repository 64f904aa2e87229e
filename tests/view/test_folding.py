"""JSON that is folded: which lines are left, what they say, and where each of them stands."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui.view.rows import LongRows
from hitl_tui.view.value_lines import FoldedLines, JsonLines

PLAN: dict[str, Any] = {
    "goal": "lunch",
    "plan": [{"worker": "ann", "tools": ["knife"]}, {"worker": "bob", "tools": []}],
    "notes": {},
}


def folded(value: Any = PLAN) -> FoldedLines:
    return FoldedLines(JsonLines(value))


def at(lines: FoldedLines, text: str) -> int:
    return next(number for number, line in enumerate(lines) if text in line)


def test_what_is_folded_says_how_much_it_holds_and_unfolds_to_what_it_was():
    lines = folded()
    before = list(lines)
    assert lines.turn(at(lines, '"bob"')) == at(lines, "… 2 keys}")
    assert "    {… 2 keys}" in list(lines)
    lines.turn(at(lines, '"plan"'))
    assert list(lines) == ["{", '  "goal": "lunch",', '  "plan": [… 2 items],', '  "notes": {}', "}"]
    assert lines.turn(2) == 2
    assert list(lines) == before


def test_a_line_that_starts_no_fold_folds_its_parent():
    lines = folded()
    assert lines.turn(at(lines, "knife")) == at(lines, '"tools": [… 1 item]')
    assert lines.turn(1) == 0
    assert list(lines) == ["{… 3 keys}"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('"goal"', ".goal"),
        ('"plan"', ".plan"),
        ('"bob"', ".plan[1].worker"),
        ("knife", ".plan[0].tools[0]"),
        ('"notes"', ".notes"),
    ],
)
@pytest.mark.parametrize("first", [False, True], ids=["all", "with the first worker folded"])
def test_every_line_knows_its_path(text: str, path: str, first: bool):
    lines = folded()
    if first and text != "knife":
        lines.turn(at(lines, '"ann"'))
    number = at(lines, text)
    assert lines.part(number).path == path
    assert lines.place(lines.number(number)) == number


def test_all_fold_and_all_unfold():
    lines = folded([{"a": 1}, 2, [3, 4]])
    before = list(lines)
    lines.turn_all()
    assert list(lines) == ["[", "  {… 1 key},", "  2,", "  [… 2 items]", "]"]
    lines.turn_all()
    assert list(lines) == before


def test_a_hidden_line_has_the_place_of_its_fold_and_can_be_shown():
    lines = folded()
    knife = at(lines, "knife")
    lines.turn(at(lines, '"plan"'))
    assert lines.place(knife) == 2
    assert lines.unfold(knife)
    assert "knife" in lines[lines.place(knife)]
    assert not lines.unfold(knife)


def test_a_fold_in_a_large_value_makes_no_other_lines(monkeypatch: pytest.MonkeyPatch):
    lines = folded({"rows": [{"id": number, "text": "word " * 10} for number in range(20_000)]})
    asked: list[int] = []
    whole = JsonLines.line

    def line(self: JsonLines, at: int) -> str:
        if self is lines.whole:
            asked.append(at)
        return whole(self, at)

    monkeypatch.setattr(JsonLines, "line", line)
    rows = LongRows(lines, lambda line: 60)
    rows.find_more(1_000)
    asked.clear()
    line = lines.turn(len(lines) // 2)
    rows.change(lines, line)
    assert rows.row(rows.known_row(line))[:2] == (line, 0)
    assert len(asked) < 10


def test_only_rows_after_a_change_are_computed_again():
    rows = LongRows(["a " * 10, "b", "c"], lambda line: 10)
    while not rows.done:
        rows.find_more(100)
    before = len(rows)
    rows.change(["a " * 10, "B " * 10], 1)
    assert not rows.done
    while not rows.done:
        rows.find_more(100)
    assert len(rows) == 2 * (before - 2)
    assert rows.row(rows.known_row(1))[0] == 1
