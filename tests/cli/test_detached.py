"""When a thread may begin that is left to workers: by the store's clock, in the zone of whoever says it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from hitl_tui.cli.detached import begins_at
from hitl_tui.errors import UsageError


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process is in Berlin, where clocks go forward on 2026-03-29."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def micros(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1_000_000)


@pytest.mark.parametrize(
    ("now", "begin"),
    [
        ("2026-03-28T07:59+01:00", "2026-03-28T08:00+01:00"),
        ("2026-03-28T08:00+01:00", "2026-03-29T08:00+02:00"),
        ("2026-03-28T23:30+00:00", "2026-03-29T08:00+02:00"),
        ("2031-07-01T05:59+00:00", "2031-07-01T08:00+02:00"),
    ],
    ids=["today", "tomorrow, of 23 hours", "already tomorrow there", "whatever day it is here"],
)
def test_a_time_of_day_is_the_next_one_after_the_stores_clock(now: str, begin: str) -> None:
    assert begins_at("08:00", None)(micros(now)) == micros(begin)


@pytest.mark.parametrize(
    ("written", "begin"),
    [
        ("2026-03-28T08:00", "2026-03-28T08:00+01:00"),
        ("2026-07-01T08:00", "2026-07-01T08:00+02:00"),
        ("2026-07-01T08:00-05:00", "2026-07-01T08:00-05:00"),
    ],
)
def test_a_time_without_a_zone_is_local(written: str, begin: str) -> None:
    assert begins_at(written, None)(0) == micros(begin)


def test_a_span_counts_from_the_stores_clock() -> None:
    assert begins_at(None, "90m")(micros("2026-03-28T08:00+00:00")) == micros("2026-03-28T09:30+00:00")
    assert begins_at(None, None)(0) is None


@pytest.mark.parametrize("written", ["25:00", "8", "2026-13-01", "tomorrow"])
def test_an_invalid_time_is_refused_before_a_store_is_opened(written: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        begins_at(written, None)
