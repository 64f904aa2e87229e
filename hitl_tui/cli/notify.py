"""`watch`, and the same in a session: telling a person what waits, expires or has ended, by `[notify]`."""

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
    from hitl_tui.team.watch import Watch
    from hitl_tui.team.ways import Way
    from hitl_tui.view.notices import Notice

_BEFORE = "10m"
_EVERY = 2.0
"""Seconds between looks at the store."""
_EVERY_ON_SCREEN = 5.0


@click.command()
@click.option("--once", is_flag=True, help="Check once, notify of what is new, and end.")
@store_option
@reviewer_option
@json_option
def watch(*, once: bool, store: str | None, reviewer: str | None, as_json: bool) -> ExitCode:
    """Notify you of what waits for you, expires soon or has ended.

    Prints a line or, with --json, a document for each notification, and sends it as [notify] of the
    configuration says: by a command, by services of Apprise, or in the terminal. Each is sent once, also
    after a restart and with several of them running. ctrl+c or a signal ends it, with exit code 0. With
    --once the exit code is 3 if something waits for you.
    """
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings
    from hitl_tui.team.ways import TerminalNotice

    settings = load_settings({"store": store, "reviewer": reviewer})
    counted: list[int] = []
    out = own_out()
    ways: list[Way] = [_Lines(as_json=as_json)]
    terminal = settings.notify.get("terminal", ("bell",))
    if terminal and out.isatty():
        ways.append(TerminalNotice(terminal, writing_to(out)))
    with closing(open_existing(settings)) as opened:
        at_it = _watch(opened, settings, [*ways, *_far(settings)], failed=_failed, counted=counted.append)
        with closing(at_it.sent):
            if once:
                at_it.look()
                return ExitCode.WAITING if counted and counted[-1] else ExitCode.DONE
            for number in (signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)):
                signal.signal(number, lambda *_: at_it.stop())
            at_it.run(_EVERY)
    return ExitCode.DONE


class SessionNotices:
    """Notices while a session is open, on screen or in lines: by a thread that looks now and then.

    Args:
        failed: is told what could not be told.
    """

    def __init__(self, settings: Settings, failed: Callable[[HitlError], object]) -> None:
        self._settings = settings
        self._failed = failed
        self._stop: Callable[[], object] = lambda: None
        self._titled = False

    def begin(
        self,
        store: Checkpointer,
        write: Callable[[str], object],
        sees: Callable[[Notice], bool],
        tell: Callable[[str], object] | None = None,
    ) -> Callable[[], object]:
        """Begin; gives what ends it.

        Args:
            write: puts bytes onto the terminal, from any thread.
            sees: whether the person has seen what a notice says.
            tell: is told each in words, where there is nothing else that shows it.
        """
        from hitl_tui.team.ways import TerminalNotice
        from hitl_tui.view.notices import KEEP_TITLE, title_bytes

        notify = self._settings.notify
        terminal = notify.get("terminal", ("bell",))
        if os.environ.get("TERM") == "dumb":  # it shows all of what is no bell
            terminal = [way for way in terminal if way == "bell"]
        ways: list[Way] = [TerminalNotice(terminal, write)] if terminal else []
        ways += [_Words(tell)] if tell is not None else []
        # The console of Linux has no title, and shows what sets one.
        self._titled = bool(notify.get("title", True)) and os.environ.get("TERM") not in ("linux", "dumb")
        if self._titled:
            write(KEEP_TITLE)

        def counted(number: int) -> None:
            if self._titled and not stopped:
                write(title_bytes(number))

        stopped: list[bool] = []
        at_it = _watch(
            store, self._settings, [*ways, *_far(self._settings)], failed=self._failed, counted=counted,
            sees=sees, quiet=True,
        )  # fmt: skip

        def run() -> None:
            with closing(at_it.sent):
                at_it.run(_EVERY_ON_SCREEN)

        def stop() -> None:
            stopped.append(True)
            at_it.stop()

        self._stop = stop
        threading.Thread(target=run, name="notices", daemon=True).start()
        return stop

    def end(self) -> None:
        """Once the session is over: the window has its own title again."""
        from hitl_tui.view.notices import GIVE_TITLE_BACK

        self._stop()
        if self._titled and not in_browser():
            writing_to(own_out())(GIVE_TITLE_BACK)


class _Words:
    """A sentence for whoever sits at a session in lines."""

    name = "session"

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say

    def tell(self, text: str, document: bytes) -> None:
        self._say(text)


class _Lines:
    """A line, or a document, on stdout."""

    def __init__(self, *, as_json: bool) -> None:
        self.name = "json" if as_json else "lines"

    def tell(self, text: str, document: bytes) -> None:
        if self.name == "json":
            out = own_out()
            out.write(f"{document.decode()}\n")
            out.flush()
        else:
            say(f"{time.strftime('%H:%M')} {text}")


def _watch(store: Checkpointer, settings: Settings, ways: Sequence[Way], **how: Any) -> Watch:
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
        ways,
        person=settings.reviewer,
        before=span_of(settings.notify.get("before", _BEFORE)),
        encode=_document,
        **how,
    )


def _far(settings: Settings) -> list[Way]:
    """The ways that lead away from the terminal.

    Raises:
        UsageError: a command that is a line for a shell without `shell = true`; Apprise is missing.
    """
    from hitl_tui.config import NOTIFY_URLS
    from hitl_tui.team.ways import CommandHook, Services

    ways: list[Way] = []
    command, shell = settings.notify.get("command"), settings.notify.get("shell", False)
    if command:
        if isinstance(command, str) != shell:
            raise UsageError(
                "notify.command is a list of a program and its arguments; one line only with shell = true",
                'write command = ["program", "argument"]',
            )
        ways.append(CommandHook(command))
    urls = os.environ.get(NOTIFY_URLS, "").split() or settings.notify.get("urls", ())
    return [*ways, Services(urls)] if urls else ways


def _document(notice: Notice) -> bytes:
    from hitl_tui.cli.documents import shown, to_json
    from hitl_tui.cli.reports import NoticeDocument

    return to_json(shown(NoticeDocument(notice=notice))).encode()


def writing_to(out: Any) -> Callable[[str], object]:
    """What writes to a stream as far as that still goes."""

    def write(text: str) -> None:
        with suppress(OSError, ValueError):
            out.write(text)
            out.flush()

    return write


def _failed(error: HitlError) -> None:
    say(f"hitl-tui: {error}", err=True)
