"""`play`: a tape of a real run on screen, at its pace; a fork of it can run live."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from hitl_tui.cli.opening import Target, find_thread
from hitl_tui.cli.options import (
    PACE,
    building_options,
    record_screen_option,
    reviewer_option,
    store_option,
    theme_option,
)
from hitl_tui.drivers.node_streams import has_screen
from hitl_tui.errors import UsageError

if TYPE_CHECKING:
    from hitl_tui.agents.tempo import Tempo
    from hitl_tui.drivers.hub import LocalHub
    from hitl_tui.drivers.played import PlayedThread
    from hitl_tui.engine.commands import Fork
    from hitl_tui.stores import Checkpointer


@click.command()
@click.argument("tape", metavar="TAPE|THREAD")
@click.option(
    "--pace",
    type=PACE,
    default=1.0,
    show_default=True,
    help="How fast; + and - change it.",
)
@record_screen_option
@building_options
@store_option
@theme_option
@reviewer_option
def play(
    *,
    tape: str,
    pace: float,
    record_screen: Path | None,
    store: str | None,
    theme: str | None,
    reviewer: str | None,
) -> int:
    """Play a recorded run on screen.

    TAPE is a file that `export` wrote, THREAD a thread of the store. Steps appear at their original pace,
    with what the models wrote; waits of more than three seconds are cut. Space goes to the next step, p
    holds, [ looks back and holds, home plays from the start. Nothing is written until f leaves it into a
    live fork, which continues with the real graph; the thread of a file is imported for that.

        hitl-tui play r1
        hitl-tui play r1.jsonl --pace 2
    """
    from hitl_tui.agents.tempo import TEMPO
    from hitl_tui.cli.screen import show
    from hitl_tui.cli.storage import open_existing, open_for_writing
    from hitl_tui.config import load_settings
    from hitl_tui.view.tape import TapeShow

    if not has_screen():
        raise UsageError("a tape needs a terminal", "`hitl-tui log THREAD` shows a thread as plain text")
    settings = load_settings({"store": store, "theme": theme, "reviewer": reviewer})
    file = Path(tape) if os.path.isfile(Path(tape)) else None
    played = Tape(tape, file)
    TEMPO.pace = pace
    return show(
        settings,
        open_for_writing if file else open_existing,
        played.choose,
        prepare_hub=lambda hub: played.adopt(hub, TEMPO),
        record_screen=record_screen,
        stores=(),
        perform=lambda hub: TapeShow(played.driver, played.name),
    )


class Tape:
    """Recorded thread, its copy in memory, and the store that its forks go to.

    Args:
        file: the file of an export; None for a thread of the store.
    """

    def __init__(self, name: str, file: Path | None) -> None:
        from hitl_tui.stores import MemoryCheckpointer

        self.name = name
        self._file = file
        self._copy = MemoryCheckpointer()
        self._store: Checkpointer | None = None
        self._driver: PlayedThread | None = None

    @property
    def driver(self) -> PlayedThread:
        """Driver that plays it."""
        assert self._driver is not None
        return self._driver

    def choose(self, store: Checkpointer) -> Target:
        """Copy the thread; return the copy's name."""
        self._store = store
        thread = self.copy(store)
        return Target(thread)

    def copy(self, store: Checkpointer) -> str:
        """Copy the whole thread into a store in memory, as private values are never shown; return its name.

        Raises:
            UnknownThread, UsageError: there is no such thread, or the file is no export of one.
        """
        from hitl_tui.stores.transfer import export_thread, import_thread

        if self._file is None:
            self.name = find_thread(store, self.name)
            return import_thread(
                self._copy, export_thread(store, self.name, private=True), f"{self.name}-tape"
            )
        with self._lines() as lines:
            thread = import_thread(self._copy, lines)
        self.name = thread
        with self._lines() as lines:
            return import_thread(self._copy, lines, f"{thread}-tape")

    @contextmanager
    def _lines(self) -> Iterator[BinaryIO]:
        """Return the lines of its file; raise `UsageError` if it can't be read."""
        from hitl_tui.given_files import open_given

        assert self._file is not None
        try:
            with open_given(self._file) as lines:
                yield lines
        except OSError as error:
            raise UsageError(
                f"{self._file} can't be read: {error.strerror}", "give a file that `export` wrote"
            ) from None

    def adopt(self, hub: LocalHub, tempo: Tempo) -> None:
        """Give the hub the driver that plays the tape."""
        from hitl_tui.drivers.played import PlayedThread

        async def fork(command: Fork) -> str:
            driver = await hub.open(self._live())
            tempo.held = False  # it continues live
            return await driver.execute(command)

        self._driver = PlayedThread(f"{self.name}-tape", self._copy, tempo, fork)
        hub.adopt(self._driver)

    def _live(self) -> str:
        """Return the thread itself in the store, imported if it does not exist there yet."""
        from hitl_tui.stores.transfer import import_thread

        assert self._store is not None
        if self._file is not None and self._store.info(self.name) is None:
            with self._lines() as lines:
                return import_thread(self._store, lines)
        return self.name
