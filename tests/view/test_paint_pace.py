"""The pace of painting follows what a paint costs."""

from __future__ import annotations

import pytest

from hitl_tui.view.session import FRAME, PaintPace


def paid(cost: float, *, after: float, steps: int = 0) -> float:
    """How long to wait yet, so many seconds after a batch; the last one is a second older."""
    pace = PaintPace()
    pace.take(now=99.0, cpu=6.0, steps=0)
    pace.take(now=100.0, cpu=7.0, steps=steps)
    return pace.rest(now=100.0 + after, cpu=7.0 + cost)


def test_the_first_batch_is_due_at_once():
    assert PaintPace().rest(now=100.0, cpu=7.0) == 0


def test_waits_that_take_too_long_do_not_add_up():
    pace = PaintPace()
    pace.take(now=100.0, cpu=0.0, steps=0)
    for frame in range(1, 31):
        now = 100.0 + frame * FRAME + 0.003
        assert pace.rest(now=now, cpu=0.0) == 0
        pace.take(now=now, cpu=0.0, steps=0)
    assert pace.rest(now=now, cpu=0.0) == pytest.approx(FRAME - 0.003)


def test_what_could_not_be_painted_is_not_made_up_for():
    pace = PaintPace()
    pace.take(now=100.0, cpu=0.0, steps=0)
    assert pace.rest(now=100.5, cpu=0.0) == 0
    pace.take(now=100.5, cpu=0.0, steps=0)
    assert pace.rest(now=100.5, cpu=0.0) == pytest.approx(FRAME)


@pytest.mark.parametrize(
    ("cost", "steps", "pause"),
    [
        pytest.param(0.003, 0, FRAME, id="a cheap paint holds nothing up for longer than a frame"),
        pytest.param(0.03, 0, 0.1, id="a dear one is paid for first"),
        pytest.param(5.0, 0, 0.25, id="nothing is waited for longer than a quarter of a second"),
        pytest.param(0.006, 1_000, 0.2, id="a run that nobody can follow has most of the time for itself"),
        pytest.param(0.006, 100, FRAME, id="one that can be followed has not"),
        pytest.param(5.0, 1_000, 0.5, id="and of a fast run, too, something is seen twice a second"),
    ],
)
def test_painting_keeps_to_its_share_of_the_time(cost, steps, pause):
    assert paid(cost, steps=steps, after=pause / 2) == pytest.approx(pause / 2)
    assert paid(cost, steps=steps, after=pause + 0.001) == 0
