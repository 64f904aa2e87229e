"""`watch`, and the same in a session: notify a person of requests, deadlines and ends, by `[notify]`."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import click

from hitl_tui.cli.options import reviewer_option, store_option
from hitl_tui.cli.output import json_option, say
from hitl_tui.drivers.node_streams import in_browser, own_out
from hitl_tui.errors import ExitCode, HitlError, UsageError

if TYPE_CHECKING:
    from hitl_tui.config import Settings
    from hitl_tui.stores import Checkpointer
    from hitl_tui.team.notifiers import Notifier
    from hitl_tui.team.watch import Watch
    from hitl_tui.view.notices import Notice

_BEFORE = "5m"
_EVERY = 2.0
"""Seconds between checks of the store."""
_EVERY_ON_SCREEN = 5.0


@click.command()
@click.option("--once", is_flag=True, help="Check once, notify of what is new, and end.")
@store_option
@reviewer_option
@json_option
def watch(*, once: bool, store: str | None, reviewer: str | None, as_json: bool) -> ExitCode:
    """Notify you of what waits for you, expires soon or has ended.

    Prints a line for each notification, or a document with --json. It also sends each as [notify] of the
    configuration says: by a command, by services of Apprise, or in the terminal. Each is sent only once,
    even after a restart or if several of these commands run. ctrl+c or a signal ends it, with exit code 0.
    With --once the exit code is 3 if something waits for you.

        hitl-tui watch
        hitl-tui watch --once --json
    """
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings
    from hitl_tui.team.notifiers import TerminalNotice

    settings = load_settings({"store": store, "reviewer": reviewer})
    counted: list[int] = []
    out = own_out()
    notifiers: list[Notifier] = [_Lines(as_json=as_json)]
    terminal = settings.notify.get("terminal", ("bell",))
    if terminal and out.isatty():
        notifiers.insert(0, TerminalNotice(terminal, writing_to(out)))
    with closing(open_existing(settings)) as opened:
        watcher = _watch(
            opened,
            settings,
            [*notifiers, *_distant_notifiers(settings)],
            failed=_failed,
            counted=counted.append,
        )
        with closing(watcher.sent):
            if once:
                watcher.look()
                return ExitCode.WAITING if counted and counted[-1] else ExitCode.DONE
            for number in (signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)):
                signal.signal(number, lambda *_: watcher.stop())
            watcher.run(_EVERY)
    return ExitCode.DONE


class SessionNotices:
    """Sends notices while a session is open, from a thread that looks now and then.

    Args:
        failed: called with the error of a notice that could not be sent.
    """

    def __init__(self, settings: Settings, failed: Callable[[HitlError], object]) -> None:
        self._settings = settings
        self._failed = failed
        self._titled = False
        self._begin: Callable[[str, Checkpointer, Settings], object] | None = None
        self._stores: dict[str, tuple[Checkpointer, Settings]] = {}
        self._watches: dict[str, Watch] = {}
        self._numbers: dict[str, int] = {}
        self._stopped = False

    def start(
        self,
        write: Callable[[str], object],
        sees: Callable[[Notice], bool],
        print_line: Callable[[str], object] | None = None,
    ) -> Callable[[], object]:
        """Watch the stores that were added, each in a thread; return a function that stops it.

        Args:
            write: writes to the terminal, from any thread.
            sees: whether the person has seen what a notice says on screen.
            print_line: prints a notice, if no screen shows it.

        Raises:
            UsageError: see `_distant_notifiers`.
        """
        from hitl_tui.team.notifiers import TerminalNotice
        from hitl_tui.view.notices import KEEP_TITLE, title_bytes

        notify = self._settings.notify
        terminal = notify.get("terminal", ("bell",))
        if os.environ.get("TERM") == "dumb":  # it shows everything but the bell
            terminal = [signal for signal in terminal if signal == "bell"]
        # The console of Linux has no title, and prints the sequence that sets one.
        self._titled = bool(notify.get("title", True)) and os.environ.get("TERM") not in ("linux", "dumb")
        if self._titled:
            write(KEEP_TITLE)

        def begin(source: str, store: Checkpointer, settings: Settings) -> None:
            def counted(number: int) -> None:
                self._numbers[source] = number
                if self._titled and not self._stopped:
                    write(title_bytes(sum(self._numbers.values())))

            notifiers: list[Notifier] = [TerminalNotice(terminal, write)] if terminal else []
            notifiers += [_SessionLines(print_line)] if print_line is not None else []
            watcher = self._watches[source] = _watch(
                store, settings, [*notifiers, *_distant_notifiers(self._settings)], failed=self._failed,
                counted=counted, sees=sees, quiet=True, source=source,
            )  # fmt: skip
            threading.Thread(target=_run, args=(watcher,), name="notices", daemon=True).start()

        for source, (store, settings) in self._stores.items():
            begin(source, store, settings)
        self._begin = begin
        return self._stop

    def add(self, store: Checkpointer, settings: Settings, source: str = "") -> None:
        """Watch a store as well, instead of the one that its source had before.

        Args:
            settings: those with which it was opened.
            source: its name in the inbox, "" for the store of the session.
        """
        if (former := self._watches.pop(source, None)) is not None:
            former.stop()
        self._stores[source] = store, settings
        if self._begin is not None and not self._stopped:
            self._begin(source, store, settings)

    def _stop(self) -> None:
        self._stopped = True
        for watcher in self._watches.values():
            watcher.stop()

    def stop(self) -> None:
        """Stop the threads and restore the window's title."""
        from hitl_tui.view.notices import GIVE_TITLE_BACK

        self._stop()
        if self._titled and not in_browser():
            writing_to(own_out())(GIVE_TITLE_BACK)


def _run(watcher: Watch) -> None:
    with closing(watcher.sent):
        watcher.run(_EVERY_ON_SCREEN)


class _SessionLines:
    """Prints notices in a session in plain text mode."""

    name = "session"
    gathers = False

    def __init__(self, print_line: Callable[[str], object]) -> None:
        self._print_line = print_line

    def send(self, text: str, document: bytes) -> None:
        self._print_line(text)


class _Lines:
    """Prints a line or a document on stdout."""

    gathers = False

    def __init__(self, *, as_json: bool) -> None:
        self.name = "json" if as_json else "lines"

    def send(self, text: str, document: bytes) -> None:
        if self.name == "json":
            out = own_out()
            out.write(f"{document.decode()}\n")
            out.flush()
        else:
            say(f"{time.strftime('%H:%M')} {text}")


def _watch(store: Checkpointer, settings: Settings, notifiers: Sequence[Notifier], **how: Any) -> Watch:
    from hitl_tui.config import sent_notices_file
    from hitl_tui.engine.log.units import span_of
    from hitl_tui.stores.opening import without_password
    from hitl_tui.team.sent_notices import SentNotices
    from hitl_tui.team.watch import Watch

    elsewhere = without_password(settings.store) if store.login else f"memory {os.getpid()}"
    place = getattr(store, "path", None) or elsewhere
    return Watch(
        store,
        SentNotices(sent_notices_file(), f"{place}\n{settings.reviewer}"),
        notifiers,
        person=settings.reviewer,
        before=span_of(settings.notify.get("before", _BEFORE)),
        encode=_document,
        **how,
    )


def _distant_notifiers(settings: Settings) -> list[Notifier]:
    """Return the notifiers outside the terminal.

    Raises:
        UsageError: a command that is a line for a shell without `shell = true`; Apprise is missing.
    """
    from hitl_tui.config import NOTIFY_URLS
    from hitl_tui.team.notifiers import CommandHook, Services

    notifiers: list[Notifier] = []
    command, shell = settings.notify.get("command"), settings.notify.get("shell", False)
    if command:
        if isinstance(command, str) != shell:
            raise UsageError(
                "notify.command is a list of a program and its arguments; one line only with shell = true",
                'write command = ["program", "argument"]',
            )
        notifiers.append(CommandHook(command))
    urls = os.environ.get(NOTIFY_URLS, "").split() or settings.notify.get("urls", ())
    return [*notifiers, Services(urls)] if urls else notifiers


def _document(notice: Notice) -> bytes:
    from hitl_tui.cli.documents import shown, to_json
    from hitl_tui.cli.reports import NoticeDocument

    return to_json(shown(NoticeDocument(notice=notice))).encode()


def writing_to(out: Any) -> Callable[[str], object]:
    """Return a function that writes to a stream and ignores a closed one."""

    def write(text: str) -> None:
        with suppress(OSError, ValueError):
            out.write(text)
            out.flush()

    return write


def _failed(error: HitlError) -> None:
    say(f"hitl-tui: {error}", err=True)
