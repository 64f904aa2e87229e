"""Content stands behind its bar, however long its lines are."""

from __future__ import annotations

import pytest

from hitl_tui.view.cells import cells, cut_middle, thread_name
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


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("research-loop-2026-11-26-1", 26, "research-loop-2026-11-26-1"),
        ("research-loop-2026-11-26-1", 15, "researc…11-26-1"),
        ("research-loop", 2, "r…"),
        ("research-loop", 1, "…"),
        ("research-loop", 0, ""),
        ("日本語のスレッド", 9, "日本…ッド"),
    ],
)
def test_what_is_too_long_is_cut_in_the_middle(text: str, limit: int, shown: str) -> None:
    assert cut_middle(text, limit) == shown
    assert cells(shown) <= limit


def test_the_id_of_a_thread_keeps_both_ends_and_steers_no_terminal() -> None:
    assert thread_name(f"graph-{'x' * 90}-7", 14).startswith("graph-")
    assert thread_name(f"graph-{'x' * 90}-7", 14).endswith("-7")
    assert "\x1b" not in thread_name("a\x1b[2Jb", 40)
