"""What the buffer of events keeps: all that nobody has asked for yet, a part of the rest."""

from __future__ import annotations

from hitl_tui.drivers.buffer import KEPT, KEPT_SEEN, EventBuffer
from hitl_tui.engine.log.events import NodeStarted


def _filled(buffer: EventBuffer, count: int) -> None:
    for step in range(count):
        buffer.add(NodeStarted("work", step, 1, 0))


def _numbers(buffer: EventBuffer, since: int) -> list[int]:
    return [stamped.number for stamped in buffer.since(since)]


def test_a_watcher_that_has_seen_nothing_gets_all_that_is_kept() -> None:
    buffer = EventBuffer()
    _filled(buffer, KEPT)
    assert _numbers(buffer, 0) == list(range(1, KEPT + 1))


def test_what_a_watcher_has_gone_on_from_makes_room_but_for_a_part() -> None:
    buffer = EventBuffer()
    _filled(buffer, 3 * KEPT_SEEN)
    seen = 2 * KEPT_SEEN
    assert _numbers(buffer, seen) == list(range(seen + 1, 3 * KEPT_SEEN + 1))
    # One that is further behind than that part finds a gap in the numbers; another finds none.
    assert _numbers(buffer, 0)[0] == seen - KEPT_SEEN + 1
    assert _numbers(buffer, seen - KEPT_SEEN)[0] == seen - KEPT_SEEN + 1


def test_the_newest_events_are_given_in_order_however_few_are_asked_for() -> None:
    buffer = EventBuffer()
    _filled(buffer, 10)
    assert _numbers(buffer, 7) == [8, 9, 10]
    assert _numbers(buffer, 10) == []
    buffer.skip()
    _filled(buffer, 2)
    assert _numbers(buffer, 10) == [12, 13]
