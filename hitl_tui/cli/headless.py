"""A run without a screen: events as they come, then where the thread stands, and the exit code for it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from hitl_tui.cli.output import emit, say

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from hitl_tui.drivers.protocol import Driver, Snapshot
    from hitl_tui.engine.events import Event
    from hitl_tui.errors import ExitCode


async def run_on(
    driver: Driver, *, once: bool = False, stop_before: Mapping[str, str] | None = None, as_json: bool
) -> ExitCode:
    """Run a thread until it waits, fails or ends, and tell what happens.

    Args:
        once: one node alone; a thread that could take another step is then done with it.
        stop_before: breakpoints: nodes, each with its condition.

    Raises:
        ThreadBusy: another process runs it.
    """
    run = partial(driver.run, stop_before=stop_before or {})
    await tell_run(driver, driver.step if once else run, as_json=as_json)
    progress = (await driver.snapshot()).progress
    stepped = once and progress.status == "waiting" and progress.reason == "paused"
    return await report(driver, as_json=as_json, done=stepped)


async def tell_run(driver: Driver, start: Callable[[], Awaitable[None]], *, as_json: bool) -> None:
    """Start something that runs, and tell its events until it has ended; a signal ends it, and is told so."""
    snapshot = await driver.snapshot()
    telling = _Telling(driver, snapshot, as_json)
    await start()
    try:
        while not telling.ended:
            await driver.changed(telling.seen)
            telling.news()
    except asyncio.CancelledError:
        # The run is put down first, so that its end is the last that is told.
        lost = await driver.close()
        telling.news()
        say(*([lost] if lost else []), err=True)
        raise


async def report(driver: Driver, *, as_json: bool, done: bool = False, **more: object) -> ExitCode:
    """Tell where a thread stands; returns the exit code for it.

    Args:
        done: the command has done its work wherever the thread stands.
        more: further fields of the result document.
    """
    from hitl_tui.cli import shapes
    from hitl_tui.errors import ExitCode
    from hitl_tui.plain.outcome import standing_code

    snapshot = await driver.snapshot()
    progress = snapshot.progress
    code = ExitCode.DONE if done else standing_code(progress)
    if as_json:
        emit(shapes.result(driver.thread_id, progress, snapshot.values, code, **more))
    else:
        say(*standing_lines(snapshot))
    return code


def standing_lines(snapshot: Snapshot) -> list[str]:
    """Where a thread stands, and for each request what is asked and how to answer it."""
    from hitl_tui.cli.asking import request_lines
    from hitl_tui.drivers.breakpoints import stopped_by
    from hitl_tui.plain.words import name, standing_line

    stop = stopped_by(snapshot.progress, snapshot.ledger)
    lines = [f"{name(snapshot.thread_id)}: {standing_line(snapshot.progress, snapshot.held_by, stop)}"]
    lines += _way_on(snapshot)
    for request in snapshot.progress.pending:
        lines += request_lines(snapshot, request)
    return lines


def _way_on(snapshot: Snapshot) -> list[str]:
    """The command that goes on with a thread that stands still without a question."""
    import shlex

    from hitl_tui.cli.options import same_store

    progress, thread = snapshot.progress, shlex.quote(snapshot.thread_id)
    if progress.status == "failed":
        return [f"  try again with: hitl-tui resume {thread} --headless{same_store()}"]
    if progress.pending or progress.status not in ("pending", "waiting"):
        return []
    if progress.reason == "limit":
        return [f"  raise it with: hitl-tui extend {thread} LIMIT=NUMBER{same_store()}"]
    return [f"  go on with: hitl-tui resume {thread} --headless{same_store()}"]


class _Telling:
    """Tells events, as documents or in words."""

    def __init__(self, driver: Driver, snapshot: Snapshot, as_json: bool) -> None:
        from hitl_tui.cli.shapes import has_secrets

        self.seen = snapshot.last_event
        self.ended = False
        self._driver = driver
        self._thread_id = driver.thread_id
        self._secret = has_secrets(snapshot.graph)
        self._as_json = as_json

    def news(self) -> None:
        """What has happened since the last time."""
        from hitl_tui.engine.events import RunEnded

        for stamped in self._driver.events(self.seen):
            if stamped.number > self.seen + 1:
                self._gap(stamped.number - self.seen - 1)
            self.seen = stamped.number
            self._event(stamped.event)
            self.ended = self.ended or isinstance(stamped.event, RunEnded)

    def _event(self, event: Event) -> None:
        """One event; ends and beginnings are for programs, for people the last line says it."""
        if self._as_json:
            from hitl_tui.cli.event_shapes import event as shape

            emit(shape(self._thread_id, event, self._secret))
        else:
            from hitl_tui.plain.words import event_lines

            say(*event_lines(event))

    def _gap(self, lost: int) -> None:
        """More happened than is kept: the log has all of it."""
        say(f"({lost} events were too fast to be told; `hitl-tui log` has the steps)", err=True)
