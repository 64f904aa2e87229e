"""Shows a thread, on screen or in plain text mode."""

from __future__ import annotations

import asyncio
import logging
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hitl_tui.cli.inbox import InboxStore, first_with_threads, inbox_stores, join_inbox
from hitl_tui.cli.invocation import note_store, same_store, store_ends_with_process
from hitl_tui.cli.langgraph import listed
from hitl_tui.cli.opening import Choose, OpenStore, Target, hub_over, open_target, reasons_in
from hitl_tui.cli.output import keep_nodes_apart, say
from hitl_tui.collector import collect_as_usual
from hitl_tui.drivers.node_streams import has_screen, own_out
from hitl_tui.errors import ExitCode, HitlError, UsageError
from hitl_tui.shell import command_line
from hitl_tui.suggest import did_you_mean

if TYPE_CHECKING:
    from hitl_tui.cli.notify import SessionNotices
    from hitl_tui.config import Settings
    from hitl_tui.drivers.hub import LocalHub
    from hitl_tui.drivers.protocol import Driver, Hub
    from hitl_tui.drivers.unsent_answers import UnsentAnswers
    from hitl_tui.plain.loop import OpenDriver
    from hitl_tui.stores import Checkpointer
    from hitl_tui.ui.app import AppResult
    from hitl_tui.ui.theme import Look
    from hitl_tui.view.notices import Notice
    from hitl_tui.view.stage import Performance


def show(
    settings: Settings,
    open_store: OpenStore,
    choose: Choose,
    *,
    plain: bool = False,
    list_threads: bool = False,
    breaks: Sequence[str] = (),
    perform: Callable[[LocalHub], Performance] | None = None,
    prepare_hub: Callable[[LocalHub], object] = lambda hub: None,
    record_screen: Path | None = None,
    request: str = "",
    guest: bool = False,
    read_only: str = "",
    stores: Sequence[InboxStore] | None = None,
) -> int:
    """Show a thread until the user leaves, and print a summary afterwards.

    Return the exit code for the thread's state at that time, in both modes.

    Args:
        open_store, choose: called one after the other, off the screen's event loop.
        plain: whether to use plain text mode, as without a terminal that can show a screen.
        list_threads: whether to begin with the list of threads on screen; plain text mode has none.
        breaks: breakpoints to begin with, as `--break` takes them.
        record_screen: the file that the screen is recorded into, None for none.
        prepare_hub: called with the hub before the thread is opened.
        perform: makes the presentation once the hub is open; None for none.
        request: the id of the request whose card is opened once the thread is shown; "" for none.
        guest: somebody else than the account's owner, who can't agree to run graphs, and takes threads out
            only as a login of the database that may.
        read_only: as for `LocalHub`.
        stores: the stores of the inbox, () for none besides the opened one; None for those of the settings.

    Raises:
        UsageError: no such theme.
        HitlError: the thread can't be opened.
    """
    shows = has_screen() and not plain  # asked before the standard streams are the nodes'
    keep_nodes_apart()

    inbox = stores if stores is not None else () if read_only else inbox_stores(settings)
    opened = Opened(prepare_hub)

    def hub_of(store: Checkpointer, source: InboxStore | None = None) -> LocalHub:
        person = settings.reviewer if guest else None
        options = same_store() if source is None else source.option
        if source is not None:
            opened.connecting[source.name] = store, source.settings
        return hub_over(
            store, settings, partial(_unbuilt, options), asks=not guest, guest=person, read_only=read_only,
            options=options,
        )  # fmt: skip

    def make_hub(store: Checkpointer) -> LocalHub:
        hub = hub_of(store)
        join_inbox(
            inbox, hub, store, settings, make_hub=hub_of, connected=opened.add_source, is_live=shows
        )  # fmt: skip
        return hub

    open_thread = partial(_open, settings, open_store, choose, breaks, opened, make_hub=make_hub)
    if not shows:
        return _show_lines(settings, open_thread, opened, breaks)
    from hitl_tui.ui.app import run_app
    from hitl_tui.view.presence import Attention

    _check_theme(settings)
    reasons = reasons_in(settings)

    async def open_driver() -> tuple[Hub, Driver]:
        try:
            return await open_thread(on_screen=True)
        except HitlError:
            raise
        except Exception as error:
            from hitl_tui.cli.logs import write_crash

            raise HitlError(f"{type(error).__name__}: {error}", write_crash(error)) from error

    async def open_hub() -> Hub:
        opened.store = store = open_store(settings)
        return make_hub(store)

    try:
        result = run_app(
            None if list_threads else open_driver, actor=settings.reviewer, look=screen_look(settings),
            breaks=breaks, prepare=opened.prepare, waits_for=_waits_for,
            notices=lambda write, sees: opened.start_notices(settings, write, sees),
            open_hub=open_hub if list_threads else None,
            attention=Attention(
                settings.claim_minutes,
                settings.look_seconds,
                settings.after_decision == "stay",
                reasons,
            ),
            record_screen=record_screen, request=request, unsent=partial(opened.unsent_answers, settings),
            perform=lambda: perform(opened.hub) if perform is not None and opened.hub is not None else None,
        )  # fmt: skip
    finally:
        opened.stop_notices()
    keep_nodes_apart()
    return _after_screen(result, settings, opened)


def _show_lines(settings: Settings, open_driver: OpenDriver, opened: Opened, breaks: Sequence[str]) -> int:
    """Show a thread in plain text mode; return the exit code."""
    collect_as_usual()
    from hitl_tui.plain.loop import run_plain

    def notices(print_line: Callable[[str], object], sees: Callable[[Notice], bool]) -> Callable[[], object]:
        from hitl_tui.cli.notify import writing_to

        if not (sys.stdin.isatty() and own_out().isatty()):
            return lambda: None  # no person reads the output
        return opened.start_notices(settings, writing_to(own_out()), sees, print_line)

    try:
        return run_plain(
            open_driver,
            actor=settings.reviewer,
            breaks=breaks,
            go_on=opened.resume_command,
            claim_minutes=settings.claim_minutes,
            reasons=reasons_in(settings),
            notices=notices,
        )
    finally:
        opened.stop_notices()


def browse(store_url: str | None) -> bool:
    """Show the threads of a store on screen; return False if it has none yet.

    Raises:
        NoSuchStore: there is no store of that name.
    """
    from hitl_tui.cli.storage import open_existing, open_if_made
    from hitl_tui.config import load_settings

    settings = load_settings({"store": store_url})
    stores = inbox_stores(settings)
    if stores:
        first = first_with_threads(stores)
        if first is None:
            return False
        note_store()(first.url)
        show(first.settings, open_existing, lambda _: Target(""), list_threads=True, stores=stores)
        return True
    store = open_if_made(settings, part="none")
    if store is None:
        return False
    newest = listed(store, "", 1, None) or store.threads(limit=1)
    if newest:
        thread = newest[0].info.thread_id
        show(settings, lambda _: store, lambda _: Target(thread), list_threads=True)
    else:
        store.close()
    return bool(newest)


def _after_screen(result: AppResult, settings: Settings, opened: Opened) -> int:
    """Print what the screen left to print, and return the exit code for it."""
    if result.error is not None:
        raise result.error
    say(*_last_lines(result, opened), err=bool(result.ended_by))
    if result.ended_by:
        raise click.exceptions.Exit(128 + result.ended_by)
    if result.progress is None:
        return ExitCode.DONE
    from hitl_tui.view.status import standing_code

    return standing_code(result.progress)


class Opened:
    """What is being opened, to prepare other work while somebody reads it."""

    def __init__(self, prepare_hub: Callable[[LocalHub], object] = lambda hub: None) -> None:
        self.prepare_hub = prepare_hub
        self.target: Target | None = None
        self.store: Checkpointer | None = None
        self.hub: LocalHub | None = None
        self.connecting: dict[str, tuple[Checkpointer, Settings]] = {}
        """As `others`, while it is tried whether their requests can be read."""
        self.others: dict[str, tuple[Checkpointer, Settings]] = {}
        """The other stores of the inbox that are open, by source, and the settings with each."""
        self._notices: SessionNotices | None = None

    def start_notices(
        self,
        settings: Settings,
        write: Callable[[str], object],
        sees: Callable[[Notice], bool],
        print_line: Callable[[str], object] | None = None,
    ) -> Callable[[], object]:
        """Start to notify the person of what happens in the open stores; return a function that stops it."""
        from hitl_tui.cli.notify import SessionNotices

        assert self.store is not None
        self._notices = SessionNotices(settings, _log_unsent)
        self._notices.add(self.store, settings)
        for source, (store, of_source) in self.others.items():
            self._notices.add(store, of_source, source)
        return self._notices.start(write, sees, print_line)

    def add_source(self, source: str) -> None:
        """Watch another open store of the inbox from now on."""
        self.others[source] = store, settings = self.connecting.pop(source)
        if self._notices is not None:
            self._notices.add(store, settings, source)

    def unsent_answers(self, settings: Settings, source: str) -> UnsentAnswers | None:
        """Return where answers are kept until they are sent; None if the store ends with this process.

        Args:
            source: the source of the inbox whose requests are answered; "" for a single store.
        """
        from hitl_tui.config import unsent_folder
        from hitl_tui.drivers.unsent_answers import UnsentAnswers
        from hitl_tui.stores.opening import without_password

        store: Checkpointer | None = self.store
        if source in self.others:
            store, settings = self.others[source]
        elif store_ends_with_process():
            return None
        if settings.store == "memory:":
            return None
        place = getattr(store, "path", None) or without_password(settings.store)
        return UnsentAnswers(unsent_folder(), str(place), settings.reviewer)

    def resume_command(self, source: str, thread_id: str) -> str:
        """Return the command that continues a thread; "" if its store ends with this process.

        Args:
            source: as for `unsent_answers`.
        """
        if source in self.others:
            from hitl_tui.cli.inbox import InboxStore

            return command_line(
                "resume", thread_id, options=InboxStore(source, self.others[source][1]).option
            )
        if store_ends_with_process():
            return ""
        return command_line("resume", thread_id, options=same_store())

    def stop_notices(self) -> None:
        """Stop the notices, if they were started."""
        if self._notices is not None:
            self._notices.stop()

    async def prepare(self, driver: Driver) -> None:
        """Import ahead what its models need: those of its agents, or without a graph those of its log."""
        from hitl_tui.agents.models import prepare

        if self.target is not None and self.target.runner is not None:
            prepare([agent.model for agent in self.target.runner.graph.agents.values()])
        else:
            # An unreadable thread was reported; another one may be shown by now.
            with suppress(HitlError):
                points = (await driver.snapshot()).checkpoints
                prepare([f"{use.provider}/{use.model}" for point in points for use in point.uses])


def _log_unsent(error: HitlError) -> None:
    logging.getLogger("hitl_tui").warning("%s", error)


def _waits_for() -> str:
    """Return what a node waits for before its first call of a model; "" for nothing."""
    backend = sys.modules.get("hitl_tui.agents.litellm_backend")
    return "waits for litellm, which is being imported" if backend and backend.is_awaited() else ""


async def _open(
    settings: Settings,
    open_store: OpenStore,
    choose: Choose,
    breaks: Sequence[str],
    opened: Opened,
    *,
    make_hub: Callable[[Checkpointer], LocalHub],
    on_screen: bool = False,
) -> tuple[Hub, Driver]:
    from hitl_tui.cli.logs import start_log

    def prepare() -> tuple[Checkpointer, Target]:
        start_log()
        store = open_store(settings)
        try:
            return store, choose(store)
        except BaseException:
            store.close()
            raise

    store, target = await asyncio.to_thread(prepare)
    hub = make_hub(store)
    try:
        opened.prepare_hub(hub)
        driver = await open_target(hub, target, settings, breaks, on_screen=on_screen)
    except BaseException:
        await hub.close()
        raise
    opened.target, opened.store, opened.hub = target, store, hub
    return hub, driver


def _unbuilt(store: str, thread_id: str, error: HitlError) -> str:
    """Return why a thread is read-only, and the command that can continue it.

    Args:
        store: as from `same_store`.
    """
    from hitl_tui.loading.trust import NotTrusted

    if isinstance(error, NotTrusted):
        again = command_line("resume", thread_id, options=f"--trust{store}")
        return f"{error.message}. Its log can be viewed; to run it anyway: {again}"
    known = "hitl-tui run GRAPH" in error.hint
    hint = f" ({error.hint})" if error.hint and not known else ""
    again = f"{shlex.join(['hitl-tui', 'run', 'GRAPH', '--thread', thread_id])}{store}"
    return (
        f"its graph can't be built: {error.message}{hint}. Its log can be viewed; "
        f"to continue{'' if known else ', fix that, or'}: {again}"
    )


def screen_look(settings: Settings) -> Look:
    """Return the look that the settings want."""
    from hitl_tui.config import REVIEWER, user_themes
    from hitl_tui.ui.theme import Look

    return Look(
        settings.theme, user_themes(), settings.keys, settings.key_places, settings.ascii,
        reviewing=settings.role == REVIEWER,
    )  # fmt: skip


def _check_theme(settings: Settings) -> None:
    from hitl_tui.config import user_themes
    from hitl_tui.ui.theme import theme_names

    known = theme_names(user_themes())
    # The screen reports what is wrong in the settings, and meanwhile uses another theme.
    if settings.origins["theme"] == "flag" and settings.theme and settings.theme not in known:
        raise UsageError(f"there is no theme {settings.theme!r} (flag)", did_you_mean(settings.theme, known))


def _last_lines(result: AppResult, opened: Opened) -> list[str]:
    lines = list(result.not_committed)
    unfinished = result.progress is not None and result.progress.status not in ("completed", "cancelled")
    if unfinished and (command := opened.resume_command(result.source, result.thread_id)):
        lines.append(f"continue with: {command}")
    elif unfinished:
        from hitl_tui.cli.headless import ENDED_WITH_PROCESS

        lines.append(f"{result.thread_id}: {ENDED_WITH_PROCESS}")
    return lines
