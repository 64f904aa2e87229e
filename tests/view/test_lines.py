"""Content stands behind its bar, however long its lines are."""

from __future__ import annotations

import pytest

from hitl_tui.view.cells import cells
from hitl_tui.view.lines import BAR, content


@pytest.mark.parametrize(
    "text",
    [
        "word " * 100,
        "x" * 1000,
        "漢字" * 300,
        "x" * 36,
        "漢" + "x" * 34,
        "a" + "\u0301" * 4 + "b" * 300,
        "tab\t" * 60,
        "one\r\ntwo\u2028three\n\nfour",
        "",
    ],
)
def test_no_row_is_wider_than_the_terminal(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    rows = content([text])
    assert all(row.startswith(BAR) for row in rows)
    assert max(map(cells, rows)) < 40
    assert BAR not in rows or "\n" in text or not text
    shown = "".join(row.removeprefix(BAR) for row in rows)
    assert shown.count("b") == text.count("b")
    assert shown.count("漢") == text.count("漢")


@pytest.mark.parametrize("length", range(30, 41))
def test_the_row_after_a_long_word_begins_with_the_next_word(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    shown = [row.removeprefix(BAR) for row in content([f"{'x' * length} then more"])]
    assert not any(row.startswith(" ") for row in shown)
    assert "".join(shown).replace(" ", "") == f"{'x' * length}thenmore"


def test_more_than_the_limit_is_said() -> None:
    assert content(["a", "b", "c"], 2)[-1] == f"{BAR}(more)"
    assert content(["a", "b", "c"], 2, "v draft")[-1] == f"{BAR}(more: v draft)"
    assert len(content(["a", "b"], 2)) == 2
