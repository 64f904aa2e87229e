"""The pace of painting follows what a paint costs."""

from __future__ import annotations

import pytest

from hitl_tui.view.session import PaintPace


def test_the_first_batch_is_due_at_once():
    assert PaintPace().due(now=100.0, cpu=7.0)


@pytest.mark.parametrize(
    ("cost", "early", "late"),
    [
        pytest.param(0.003, 0.005, 0.02, id="a cheap paint holds nothing up"),
        pytest.param(0.03, 0.09, 0.11, id="a dear one is paid for first"),
        pytest.param(5.0, 0.2, 0.26, id="nothing is waited for longer than a quarter of a second"),
    ],
)
def test_painting_keeps_to_its_share_of_the_time(cost, early, late):
    pace = PaintPace()
    pace.take(now=100.0, cpu=7.0)
    assert not pace.due(now=100.0 + early, cpu=7.0 + cost)
    assert pace.due(now=100.0 + late, cpu=7.0 + cost)
