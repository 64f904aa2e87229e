"""The file of the graph is saved: the offer, its key and what differs are seen on any screen."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace

from hitl_tui.drivers.local import only_reading
from hitl_tui.drivers.protocol import Stamped
from hitl_tui.engine.commands import ReloadGraph
from hitl_tui.engine.log.events import Event, GraphChanged
from tests.support import tape as tapes
from tests.ui.harness import desk

LONG = (
    "the thread goes on at node 'advisor', which is gone",
    "channel 'more' is new and starts at its default",
    "channel 'other' is gone; its value stays in the log",
)
SIZES = [(120, 40), (80, 24)]


def tape_with(*events: Event) -> tapes.Tape:
    """At its end, where it waits for a decision; then these."""
    tape = tapes.advisor_tape()
    number = tape.end.last_event + 1
    stamped = tuple(Stamped(number + place, event) for place, event in enumerate(events))
    return dataclasses.replace(tape, begin=tape.end, events=stamped)


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_the_key_is_seen_though_much_differs_and_goes_when_it_is_loaded(size: tuple[int, int]):
    told = tape_with(GraphChanged(LONG))
    async with desk(told, at_end=False, size=size) as it:
        await it.shows("your turn" if size[0] > 100 else "decide")
        it.driver.advance()
        await it.shows("The graph's file was saved", "R run again")
        await it.press("R")
        assert it.driver.commands == [ReloadGraph(it.run.actor)]


async def test_with_room_what_differs_is_told_whole():
    async with desk(tape_with(GraphChanged(LONG)), at_end=False, size=(120, 40)) as it:
        it.driver.advance()
        await it.shows(
            "The graph's file was saved   R run again", "goes on at node 'advisor'", "'other' is gone; its"
        )


async def test_what_the_file_says_can_not_steer_the_terminal():
    hostile = GraphChanged(("it can't be loaded: \x1b]52;c;aGk=\x07\x9b31m [red]",))
    async with desk(tape_with(hostile), at_end=False, size=(120, 40)) as it:
        it.driver.advance()
        await it.shows("it can't be loaded", "[red]")
        assert not set("\x1b\x07\x9b") & set(it.text())


async def test_a_thread_that_is_shown_from_its_log_offers_the_reload_once_its_graph_is_mended():
    tape = tape_with(GraphChanged(()))
    broken = "its graph can't be built"
    refusals = only_reading(broken, can_reload=True)
    tape = dataclasses.replace(tape, begin=replace(tape.begin, refusals=refusals))
    async with desk(tape, at_end=False, size=(120, 40)) as it:
        await it.shows(broken)
        it.driver.advance()
        await it.gone(broken)
        await it.shows("The graph's file was saved", "R run again")
