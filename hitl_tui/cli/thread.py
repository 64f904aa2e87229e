"""One thread, opened for one command over the same hub and driver as the screen's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from hitl_tui.cli.opening import OpenStore, agreed, find_thread, hub_over, may_ask
from hitl_tui.cli.options import building_options, reviewer_option, store_option
from hitl_tui.cli.output import json_option, keep_nodes_apart, say

if TYPE_CHECKING:
    from hitl_tui.config import Settings
    from hitl_tui.drivers.hub import LocalHub
    from hitl_tui.drivers.protocol import Driver
    from hitl_tui.drivers.reading import RecordedThread
    from hitl_tui.loading.trust import Question
    from hitl_tui.stores import Checkpointer

T = TypeVar("T")


class OpenThread(NamedTuple):
    """Store with its hub, open while one command works on it."""

    settings: Settings
    store: Checkpointer
    hub: LocalHub
    as_json: bool

    async def thread(self, thread: str | None) -> Driver:
        """Open the driver of an existing thread; its graph is built from its record to run it."""
        return await self.hub.open(find_thread(self.store, thread))

    async def reading(self, thread: str | None) -> Driver:
        """Open the driver of a thread for commands without a graph: none is ever built."""
        return await self.hub.look_at(find_thread(self.store, thread))


class OpenStored(NamedTuple):
    """Store that is open while one command reads its threads."""

    settings: Settings
    store: Checkpointer
    as_json: bool

    def thread(self, thread: str) -> RecordedThread:
        """Return a thread from its log."""
        from hitl_tui.drivers.reading import RecordedThread

        return RecordedThread(self.store, find_thread(self.store, thread))


def on_thread(
    *, acts: bool = False, builds: bool = False, alone: bool = False
) -> Callable[[Callable[..., Awaitable[T]]], Callable[..., T]]:
    """Return a decorator for commands on threads of an existing store: it adds their options.

    Args:
        acts: whether a person is recorded as acting: `--reviewer`.
        builds: whether it takes the thread's graph: `--graph` and `--trust`.
        alone: whether it is also useful without a store: then it gets an empty one.
    """

    def decorate(work: Callable[..., Awaitable[T]]) -> Callable[..., T]:
        @wraps(work)
        def command(*, store: str | None, as_json: bool, reviewer: str | None = None, **given: Any) -> T:
            from hitl_tui.cli.storage import open_existing, open_or_empty
            from hitl_tui.config import load_settings

            settings = load_settings({"store": store, "reviewer": reviewer})
            opening = open_or_empty if alone else partial(open_existing, thread=_named(given))
            return work_on(settings, opening, lambda opened: work(opened, **given), as_json=as_json)

        wrapped = _with_options(command, acts=acts)
        return building_options(wrapped) if builds else wrapped

    return decorate


def on_log(*, acts: bool = False) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Decorate as `on_thread`, for commands that read threads' logs: no graph is built."""

    def decorate(work: Callable[..., T]) -> Callable[..., T]:
        @wraps(work)
        def command(*, store: str | None, as_json: bool, reviewer: str | None = None, **given: Any) -> T:
            from hitl_tui.cli.storage import open_existing
            from hitl_tui.config import load_settings

            settings = load_settings({"store": store, "reviewer": reviewer})
            opened = open_existing(settings, thread=_named(given))
            try:
                return work(OpenStored(settings, opened, as_json), **given)
            finally:
                opened.close()

        return _with_options(command, acts=acts)

    return decorate


def _named(given: Mapping[str, Any]) -> str | None:
    """Return the only thread that a command is about, None if it may be about others."""
    name = given.get("thread") or given.get("place")
    return name.partition("@")[0] if isinstance(name, str) else None


def _with_options(command: Callable[..., T], *, acts: bool) -> Callable[..., T]:
    return store_option(reviewer_option(json_option(command)) if acts else json_option(command))


def work_on(
    settings: Settings, open_store: OpenStore, work: Callable[[OpenThread], Awaitable[T]], *, as_json: bool
) -> T:
    """Open a store, do the work, close everything; print on stderr what was not committed."""

    async def sit() -> T:
        from hitl_tui.cli.logs import start_log

        start_log()
        store = open_store(settings)
        hub = hub_over(store, settings)
        if may_ask():
            hub.ask_by(ask_on_terminal)
        try:
            return await work(OpenThread(settings, store, hub, as_json))
        finally:
            say(*await hub.close(), err=True)

    from hitl_tui.drivers.node_streams import keyboard_kept

    keep_nodes_apart()
    with keyboard_kept():
        return _run(sit())


async def ask_on_terminal(question: Question) -> bool:
    """Ask whether the person at the terminal trusts a graph."""
    return agreed(question)


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run on a new loop; a signal to end is a quit, so that the thread is suspended properly."""
    import asyncio
    import signal

    async def main() -> T:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        signals: list[int] = []

        def quit_on(number: int) -> None:
            signals.append(number)
            if task:
                task.cancel()

        for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, quit_on, number)
        try:
            return await work
        except asyncio.CancelledError:
            if signals:
                raise click.exceptions.Exit(128 + signals[0]) from None
            raise

    return asyncio.run(main())
