"""Files that wait to be fetched are bounded for each person, and in time."""

from __future__ import annotations

import pytest

from hitl_tui.team.web import downloads
from hitl_tui.team.web.downloads import LASTS, MOST, Downloads
from hitl_tui.team.web.page_session import Download


def file(size: int) -> Download:
    return Download("a.svg", "image/svg+xml", b"x" * size)


def test_a_new_file_takes_the_place_of_the_persons_oldest() -> None:
    waiting = Downloads()
    others = waiting.offer("bob", file(1))
    keys = [waiting.offer("ann", file(1)) for _ in range(3 * MOST)]
    assert [waiting.take("ann", key) is not None for key in keys] == [False] * 2 * MOST + [True] * MOST
    assert waiting.take("bob", others) is not None


def test_the_bytes_of_one_person_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "MOST_BYTES", 10)
    waiting = Downloads()
    keys = [waiting.offer("ann", file(size)) for size in (4, 4, 4)]
    assert [waiting.take("ann", key) is not None for key in keys] == [False, True, True]
    small, large = waiting.offer("ann", file(1)), waiting.offer("ann", file(99))
    assert waiting.take("ann", small) is None
    assert waiting.take("ann", large) is not None


def test_a_file_is_fetched_once_in_time_and_by_its_person_alone() -> None:
    now = [0.0]
    waiting = Downloads(lambda: now[0])
    key = waiting.offer("ann", file(1))
    assert waiting.take("bob", key) is None
    assert waiting.take("ann", key) is not None
    assert waiting.take("ann", key) is None
    late = waiting.offer("ann", file(1))
    now[0] += LASTS
    assert waiting.take("ann", late) is None
