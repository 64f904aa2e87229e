"""While a screen is open, threads that compute give way sooner."""

from __future__ import annotations

import sys

import pytest

from hitl_tui.ui.terminal import short_turns


@pytest.fixture(autouse=True)
def interval():
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


def test_turns_are_short_while_a_screen_is_open_and_as_before_afterwards():
    sys.setswitchinterval(0.005)
    with short_turns():
        assert sys.getswitchinterval() == pytest.approx(0.001)
    assert sys.getswitchinterval() == pytest.approx(0.005)


def test_turns_that_are_shorter_already_stay():
    sys.setswitchinterval(0.0005)
    with short_turns():
        assert sys.getswitchinterval() == pytest.approx(0.0005)
