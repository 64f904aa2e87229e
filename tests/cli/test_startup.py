from __future__ import annotations

from tests.benchmarks.startup import HELP_LIMIT, help_ratio


def test_help_starts_at_once() -> None:
    assert min(help_ratio(rounds=9) for _ in range(3)) <= HELP_LIMIT
