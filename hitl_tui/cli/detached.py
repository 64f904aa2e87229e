"""`run --detach`, `resume --detach`: leave a thread to workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING

from hitl_tui.cli.headless import ask_for_inputs, report
from hitl_tui.cli.opening import Choose, OpenStore, open_target, start
from hitl_tui.cli.output import say
from hitl_tui.cli.thread import OpenThread, work_on
from hitl_tui.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hitl_tui.config import Settings

Begins = Callable[[int], int | None]
"""Start time of a thread, given the store's current time; in microseconds, None for at once."""


def begins_at(at: str | None, after: str | None) -> Begins:
    """Return the start time that `--at` and `--in` give.

    Raises:
        UsageError: both are given, or one can't be parsed.
    """
    from hitl_tui.engine.log.units import span_of

    if at and after:
        raise UsageError("--at and --in don't go together", "give one of them")
    if after:
        try:
            span = span_of(after)
        except ValueError as error:
            raise UsageError(str(error)) from None
        return lambda now: now + span
    if at:
        return _moment(at)
    return lambda now: None


def _moment(text: str) -> Begins:
    """Return a written time in microseconds: local unless it names a zone; a time of day is the next one."""
    try:
        if "-" in text:
            moment = _microseconds(datetime.fromisoformat(text))
            return lambda now: moment
        hour = datetime.strptime(text, "%H:%M").time()
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text!r} is not a time", "write 2026-03-01T08:00, with +01:00 for another place, or 08:00"
        ) from None
    return lambda now: _next(hour, now)


def _next(hour: time, now: int) -> int:
    """Return the next occurrence of a time of day in this process's zone, from the given current time."""
    moment = datetime.combine(datetime.fromtimestamp(now / 1_000_000), hour)
    following = moment + timedelta(days=_microseconds(moment) <= now)
    return _microseconds(following)


def _microseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)


def run_detached(
    settings: Settings,
    open_store: OpenStore,
    choose: Choose,
    begins: Begins,
    priority: int,
    *,
    as_json: bool,
) -> ExitCode:
    """Leave a thread to workers; create it if it does not exist yet.

    A plain breakpoint that it waited at is passed; other requests stay, and it continues
    after their answers.

    Raises:
        UsageError: the store has no workers, or inputs are missing.
        StoreUnusable: it has no queue yet, or this user may not use it.
    """
    from hitl_tui.cli.langgraph import keeps_langgraph
    from hitl_tui.cli.worker import jobs_of
    from hitl_tui.engine.commands import Answer

    async def work(opened: OpenThread) -> ExitCode:
        if keeps_langgraph(opened.store):
            raise UsageError(
                "workers run no LangGraph graphs",
                "leave out --detach and run it here, or on a LangGraph server: --server URL",
            )
        jobs = jobs_of(opened.store)
        jobs.need()
        target = await asyncio.to_thread(choose, opened.store)
        driver = await open_target(opened.hub, target, settings, ())
        begins_now = target.inputs is not None
        if (snapshot := await driver.snapshot()).progress.head < 0:
            ask_for_inputs(snapshot)
            await start(driver, {}, settings)
        for request in snapshot.progress.pending:
            # Nobody has seen the stop that a graph makes before its first node.
            if request.breakpoint and not begins_now:
                await driver.execute(
                    Answer(request.id, "continue", request.step, settings.reviewer, "resumed")
                )
        at = begins(opened.store.now())
        await asyncio.to_thread(jobs.hand, driver.thread_id, priority=priority, at=at)
        code = await report(driver, as_json=as_json, done=True)
        if not as_json:
            say("  workers continue it: hitl-tui workers")
        return code

    return work_on(settings, open_store, work, as_json=as_json)
