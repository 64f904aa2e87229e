"""How fast it starts, as ratios of programs that run side by side; a busy machine may need a second try."""

from __future__ import annotations

from tests.benchmarks.startup import HELP_LIMIT, PAINT_LIMIT, help_ratio, paint_ratio


def test_help_starts_at_once() -> None:
    assert any(help_ratio(rounds=7) <= HELP_LIMIT for _ in range(4))


def test_the_demo_paints_almost_as_soon_as_an_empty_app() -> None:
    assert any(paint_ratio(rounds=5) <= PAINT_LIMIT for _ in range(4))
