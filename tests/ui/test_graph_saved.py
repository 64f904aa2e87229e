"""The file of the graph is saved: the offer, its key and what differs are seen on any screen."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from msgspec.structs import replace

from hitl_tui import SQLiteCheckpointer
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.local import only_reading
from hitl_tui.drivers.protocol import Driver, Stamped
from hitl_tui.engine.commands import ReloadGraph
from hitl_tui.engine.log.events import Event, GraphChanged
from hitl_tui.loading.code import forget_code
from hitl_tui.loading.sources import open_graph, reopen_graph
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.verbs.actions import BY_ID
from tests.plain.test_graph_saved import GRAPH
from tests.support import tape as tapes
from tests.ui.harness import Screen, booted, desk

LONG = (
    "the thread continues at node 'advisor', which is gone",
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


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_the_key_is_seen_though_much_differs_and_goes_when_it_is_loaded(size: tuple[int, int]):
    tape = tape_with(GraphChanged(LONG))
    async with desk(tape, at_end=False, size=size) as it:
        await it.shows("your turn" if size[0] > 100 else "decide")
        it.driver.advance()
        await it.shows("The graph's file was saved", "R run again")
        await it.press("R")
        assert it.driver.commands == [ReloadGraph(it.run.actor)]


@pytest.mark.slow
async def test_with_enough_room_all_differences_are_shown():
    async with desk(tape_with(GraphChanged(LONG)), at_end=False, size=(120, 40)) as it:
        it.driver.advance()
        await it.shows(
            "The graph's file was saved   R run again", "continues at node 'advisor'", "'other' is gone; its"
        )


@pytest.mark.slow
async def test_text_of_the_graph_file_has_no_control_characters():
    hostile = GraphChanged(("it can't be loaded: \x1b]52;c;aGk=\x07\x9b31m [red]",))
    async with desk(tape_with(hostile), at_end=False, size=(120, 40)) as it:
        it.driver.advance()
        await it.shows("it can't be loaded", "[red]")
        assert not set("\x1b\x07\x9b") & set(it.text())


@pytest.mark.slow
async def test_a_thread_shown_from_its_log_offers_a_reload_once_its_graph_is_fixed():
    tape = tape_with(GraphChanged(()))
    broken = "its graph can't be built"
    refusals = only_reading(broken, can_reload=True)
    tape = dataclasses.replace(tape, begin=replace(tape.begin, refusals=refusals))
    async with desk(tape, at_end=False, size=(120, 40)) as it:
        await it.shows(broken)
        it.driver.advance()
        await it.gone(broken)
        await it.shows("The graph's file was saved", "R run again")


@pytest.mark.slow
async def test_a_broken_graph_file_is_fixed_while_the_thread_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hitl_tui.drivers.graph_file.EVERY", 0.02)
    file, store = tmp_path / "small.py", SQLiteCheckpointer(tmp_path / "runs.db")
    file.write_text(GRAPH)
    open_graph(str(file), store).step({}, thread_id="t")
    forget_code(tmp_path)
    file.write_text(GRAPH + "1 / 0\n")

    async def opened() -> tuple[LocalHub, Driver]:
        hub = LocalHub(
            store,
            lambda info: reopen_graph(info.thread_id, info.source, store),
            lambda thread, error: f"its graph can't be built: {error.message}",
        )
        return hub, await hub.open("t")

    app = HitlApp(AppStart(opened, "tester"))
    try:
        async with booted(app) as pilot:
            it = Screen(app, pilot)
            await it.shows(" t ", "WORD")
            await it.press("s")
            await it.shows("its graph can't be built", "division by zero")
            file.write_text(GRAPH)
            await it.shows("The graph's file was saved", "R run again")
            await it.press("R")
            await it.shows("only reload the graph")
            await it.press("l")
            await it.gone("its graph can't be built")
            await it.until(lambda: it.app.screen is it.run, "the run screen")
            await it.until(
                lambda: not BY_ID["run.step"].disabled_reason(it.run.situation), "a graph that runs"
            )
            await it.shows("press s to step")
            await it.press("s")
            await it.shows("reached the end")
    finally:
        assert app.hub is not None
        await app.hub.close()
        forget_code(tmp_path)
