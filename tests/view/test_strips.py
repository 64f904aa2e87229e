"""A value over the run in one row, and in a terminal that shows ASCII only."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui.drivers.history import Sample
from hitl_tui.view.glyphs import plain_chars
from hitl_tui.view.spans import plain_text
from hitl_tui.view.strips import strip


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
        ([0.2, None, 0.9], "▁·█"),
        ([5, 5], "▄▄"),
        ([0, 0], "▁▁"),
        ([False, True], "▁█"),
        ([[], [1], [1, 2]], "▁▅█"),
        (["a.csv", "b.csv", "a.csv"], "aba"),
        (["file a", "file b", ""], "ff_"),
        (["file a", "file b"], "ab"),
        ([1e308, -1e308], "█▁"),
        ([], ""),
    ],
)
def test_a_strip_shows_how_a_value_went(values: list[Any], shown: str) -> None:
    samples = [Sample(step, value) for step, value in enumerate(values)]
    assert plain_text(strip(samples, 40)) == shown
    assert plain_chars(shown).isascii()
    assert len(plain_chars(shown)) == len(shown)


def test_blocks_differ_in_ascii_too() -> None:
    assert len(set(plain_chars("▁▂▃▄▅▆▇█"))) == 8


def test_a_long_run_is_thinned_and_undefined_values_are_marked() -> None:
    samples = [Sample(step, step) for step in range(1_000)]
    line = plain_text(strip(samples, 8))
    assert line == "▁▂▃▄▅▆▇█"
    bars = strip([Sample(0, None, "why"), Sample(1, "\x1b[31m")], 8)
    assert plain_text(bars)[0] == "?"
    assert "\x1b" not in plain_text(bars)
