"""A run without a screen: events as they come, then where the thread stands, and the exit code for it."""

from __future__ import annotations

import asyncio
import shlex
from functools import partial
from typing import TYPE_CHECKING

from hitl_tui.cli.desk import Desk, work_on
from hitl_tui.cli.opening import Choose, OpenStore, open_target, start
from hitl_tui.cli.options import same_store
from hitl_tui.cli.output import emit, say
from hitl_tui.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from hitl_tui.config import Settings
    from hitl_tui.drivers.protocol import Driver, Snapshot
    from hitl_tui.engine.graphs.description import InputField
    from hitl_tui.engine.log.events import Event


def run_headless(
    settings: Settings,
    open_store: OpenStore,
    choose: Choose,
    *,
    once: bool = False,
    breaks: Sequence[str] = (),
    as_json: bool,
) -> ExitCode:
    """Run a thread without a screen until it waits, fails or ends.

    Args:
        once: one node alone.
        breaks: breakpoints, as NODE or NODE:CONDITION.

    Raises:
        UsageError: a new thread of a graph that asks for inputs, and none were given.
    """
    from hitl_tui.drivers.breakpoints import read_breakpoints

    async def work(desk: Desk) -> ExitCode:
        target = await asyncio.to_thread(choose, desk.store)
        driver = await open_target(desk.hub, target, settings, breaks)
        await driver.prepare()
        if (snapshot := await driver.snapshot()).progress.head < 0:
            if asked := snapshot.graph.inputs:
                words = " ".join(f"--input {field.name}={_example(field)}" for field in asked)
                raise UsageError(f"the graph {snapshot.graph.name!r} asks for its input", f"give {words}")
            await start(driver, {}, settings)
        if snapshot.notice:
            say(f"hitl-tui: {snapshot.notice}", err=True)
        stops = read_breakpoints(breaks, snapshot.graph)
        return await run_on(driver, once=once, stop_before=stops, as_json=as_json)

    return work_on(settings, open_store, work)


def _example(field: InputField) -> str:
    """What may be typed for a field, as a shell takes it."""
    return shlex.quote(field.example) if field.example else "…"


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
        from hitl_tui.plain.words import NodeText

        self.seen = snapshot.last_event
        self.ended = False
        self._driver = driver
        self._thread_id = driver.thread_id
        self._secret = has_secrets(snapshot.graph)
        self._as_json = as_json
        self._told = NodeText()

    def news(self) -> None:
        """What has happened since the last time."""
        from hitl_tui.engine.log.events import RunEnded

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
            say(*self._told.lines(event))

    def _gap(self, lost: int) -> None:
        """More happened than is kept: the log has all of it."""
        say(f"({lost} events were too fast to be told; `hitl-tui log` has the steps)", err=True)
