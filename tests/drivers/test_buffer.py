"""What a watcher gets of the buffer of events: all that is kept behind a number, in order."""

from __future__ import annotations

from hitl_tui.drivers.buffer import KEPT, EventBuffer
from hitl_tui.engine.log.events import NodeStarted


def _filled(buffer: EventBuffer, count: int) -> None:
    for step in range(count):
        buffer.add(NodeStarted("work", step, 1, 0))


def _numbers(buffer: EventBuffer, since: int) -> list[int]:
    return [stamped.number for stamped in buffer.since(since)]


def test_a_new_watcher_gets_all_kept_events() -> None:
    buffer = EventBuffer()
    _filled(buffer, KEPT)
    assert _numbers(buffer, 0) == list(range(1, KEPT + 1))


def test_the_newest_events_are_given_in_order_however_few_are_asked_for() -> None:
    buffer = EventBuffer()
    _filled(buffer, 10)
    assert _numbers(buffer, 7) == [8, 9, 10]
    assert _numbers(buffer, 10) == []
    buffer.skip()
    _filled(buffer, 2)
    assert _numbers(buffer, 10) == [12, 13]
