"""Showing a thread, on screen or in lines; the screen is painted before store, graph and hub are opened."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from hitl_tui.config import Settings
from hitl_tui.errors import ExitCode, HitlError, ReducerError, SchemaMismatch, UsageError, ValueRejected
from hitl_tui.suggest import did_you_mean

if TYPE_CHECKING:
    from hitl_tui.cli.desk import Desk
    from hitl_tui.drivers.hub import LocalHub
    from hitl_tui.drivers.protocol import Driver, Hub
    from hitl_tui.engine.description import InputField
    from hitl_tui.engine.runner import GraphRunner
    from hitl_tui.stores import Checkpointer
    from hitl_tui.ui.app import AppResult, Look


@dataclass(frozen=True)
class Target:
    """What to show.

    Args:
        thread_id: the thread; it need not exist where there is a runner.
        runner: its graph; None builds the one that the thread's record names.
        inputs: committed as a step before the screen takes over; None commits nothing.
    """

    thread_id: str
    runner: GraphRunner | None = None
    inputs: Mapping[str, Any] | None = None


OpenStore = Callable[[Settings], "Checkpointer"]
Choose = Callable[["Checkpointer"], Target]


def show(
    settings: Settings,
    open_store: OpenStore,
    choose: Choose,
    *,
    plain: bool = False,
    list_threads: bool = False,
    breaks: Sequence[str] = (),
) -> int:
    """Show a thread until the user leaves, and say what there is to know afterwards.

    Returns the exit code for where the thread then stands, on screen as in lines.

    Args:
        open_store, choose: called one after the other once something has been painted, off the
            screen's event loop.
        plain: in lines, as it is without a terminal that can show a screen.
        list_threads: begin with the list of threads.
        breaks: breakpoints to begin with, as NODE or NODE:CONDITION.

    Raises:
        UsageError: no such theme.
        HitlError: the thread can't be opened.
    """
    if plain or not has_screen():
        from hitl_tui.plain.session import run_plain

        return run_plain(
            lambda: _open(settings, open_store, choose, breaks),
            actor=settings.reviewer,
            breaks=breaks,
            go_on=lambda thread: _resume_command(thread, settings),
        )
    from hitl_tui.ui.app import run_app

    _check_theme(settings)

    async def open_driver() -> tuple[Hub, Driver]:
        try:
            return await _open(settings, open_store, choose, breaks)
        except HitlError:
            raise
        except Exception as error:
            from hitl_tui.cli.logs import write_crash

            raise HitlError(f"{type(error).__name__}: {error}", write_crash(error)) from error

    result = run_app(
        open_driver, actor=settings.reviewer, look=_look(settings), list_threads=list_threads, breaks=breaks
    )
    if result.error is not None:
        raise result.error
    for line in _farewell(result, settings):
        click.echo(line, err=bool(result.ended_by))
    if result.ended_by:
        raise click.exceptions.Exit(128 + result.ended_by)
    if result.progress is None:
        return ExitCode.DONE
    from hitl_tui.plain.outcome import standing_code

    return standing_code(result.progress)


def has_screen() -> bool:
    """Whether there is a terminal that can show a screen."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _example(field: InputField) -> str:
    """What may be typed for a field, as a shell takes it."""
    return shlex.quote(field.example) if field.example else "…"


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
    from hitl_tui.cli.desk import at_desk
    from hitl_tui.cli.headless import run_on
    from hitl_tui.cli.output import say
    from hitl_tui.drivers.breakpoints import read_breakpoints

    async def work(desk: Desk) -> ExitCode:
        target = await asyncio.to_thread(choose, desk.store)
        driver = await _open_target(desk.hub, target, settings, breaks)
        if (snapshot := await driver.snapshot()).progress.head < 0:
            if asked := snapshot.graph.inputs:
                words = " ".join(f"--input {field.name}={_example(field)}" for field in asked)
                raise UsageError(f"the graph {snapshot.graph.name!r} asks for its input", f"give {words}")
            await _start(driver, {}, settings)
        if snapshot.notice:
            say(f"hitl-tui: {snapshot.notice}", err=True)
        stops = read_breakpoints(breaks, snapshot.graph)
        return await run_on(driver, once=once, stop_before=stops, as_json=as_json)

    return at_desk(settings, open_store, work)


def new_thread_id(store: Checkpointer, stem: str) -> str:
    """A name nobody uses yet: stem, day and number, as in "demo-2026-11-21-2"."""
    from datetime import date

    day = f"{stem}-{date.today().isoformat()}"
    number = 1
    while store.info(f"{day}-{number}") is not None:
        number += 1
    return f"{day}-{number}"


async def _open(
    settings: Settings, open_store: OpenStore, choose: Choose, breaks: Sequence[str]
) -> tuple[Hub, Driver]:
    from hitl_tui.cli.logs import start_log
    from hitl_tui.drivers.hub import LocalHub
    from hitl_tui.loading.sources import reopen_graph

    def prepare() -> tuple[Checkpointer, Target]:
        start_log()
        store = open_store(settings)
        try:
            return store, choose(store)
        except BaseException:
            store.close()
            raise

    def without_graph(thread_id: str, error: HitlError) -> str:
        known = "hitl-tui run GRAPH" in error.hint
        hint = f" ({error.hint})" if error.hint and not known else ""
        again = _in_store(["hitl-tui", "run", "GRAPH", "--thread", thread_id], settings)
        return (
            f"its graph can't be built: {error.message}{hint}. Its log can be looked at; "
            f"to go on{'' if known else ', mend that, or'}: {again}"
        )

    store, target = await asyncio.to_thread(prepare)
    hub = LocalHub(store, lambda info: reopen_graph(info.thread_id, info.source, store), without_graph)
    try:
        driver = await _open_target(hub, target, settings, breaks)
    except BaseException:
        await hub.close()
        raise
    return hub, driver


async def _open_target(hub: LocalHub, target: Target, settings: Settings, breaks: Sequence[str]) -> Driver:
    """Open the thread; breakpoints that can't be are refused before anything is committed."""
    if target.runner is None:
        driver = await hub.open(target.thread_id)
    else:
        source = target.runner.source
        driver = await hub.new(target.thread_id, target.runner, source=source, actor=settings.reviewer)
    if breaks:
        from hitl_tui.drivers.breakpoints import read_breakpoints

        read_breakpoints(breaks, (await driver.snapshot()).graph)
    if target.inputs is not None:
        await _start(driver, target.inputs, settings)
    return driver


async def _start(driver: Driver, inputs: Mapping[str, Any], settings: Settings) -> None:
    """Commit the input; one that does not fit is wrong usage, and nothing was done."""
    try:
        await driver.start(inputs, actor=settings.reviewer)
    except (SchemaMismatch, ValueRejected, ReducerError) as error:
        raise UsageError(f"the input does not fit: {error.message}", error.hint) from None


def _look(settings: Settings) -> Look:
    from hitl_tui.config import user_themes
    from hitl_tui.ui.app import Look

    return Look(settings.theme, user_themes(), settings.keys, settings.key_places, settings.ascii)


def _check_theme(settings: Settings) -> None:
    from hitl_tui.config import user_themes
    from hitl_tui.ui.theming import theme_names

    known = theme_names(user_themes())
    # What is wrong in the settings is told on screen, where another theme is used meanwhile.
    if settings.origins["theme"] == "flag" and settings.theme and settings.theme not in known:
        raise UsageError(f"there is no theme {settings.theme!r} (flag)", did_you_mean(settings.theme, known))


def _farewell(result: AppResult, settings: Settings) -> list[str]:
    from hitl_tui.view.sanitise import sanitise

    lines = list(result.not_committed)
    unfinished = result.progress is not None and result.progress.status not in ("completed", "cancelled")
    if unfinished and (command := _resume_command(result.thread_id, settings)):
        lines.append(f"go on with: {command}")
    return [sanitise(line) for line in lines]


def _resume_command(thread_id: str, settings: Settings) -> str:
    """What to type to go on with a thread; "" where its store ends with this process."""
    if settings.store == "memory:":
        return ""
    return _in_store(["hitl-tui", "resume", thread_id], settings)


def _in_store(command: list[str], settings: Settings) -> str:
    """A command as a shell takes it, in the store that is open."""
    if settings.origins["store"] == "flag":
        command = [*command, "--store", settings.store]
    return shlex.join(command)
