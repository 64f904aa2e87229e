"""Screen for a thread that can't be opened because its log is damaged: why, and other threads to open."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import PurePath
from typing import Any, ClassVar

import msgspec
from textual.app import App, ComposeResult
from textual.binding import BindingType

from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.errors import HitlError, LogCorrupt
from hitl_tui.ui.bindings import bound, keymap_of
from hitl_tui.ui.guard import failure_words
from hitl_tui.ui.screens.check import CHECKS, CheckScreen
from hitl_tui.ui.screens.page import KeysBar
from hitl_tui.ui.screens.threads import ThreadsScreen
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.work import start_work
from hitl_tui.view.rows import wrapped
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Role


class Damage(msgspec.Struct, frozen=True):
    """Driver whose thread can't be opened, and why."""

    driver: Driver
    error: HitlError


def show_damage(
    app: App[Any], hub: Hub, damage: Damage, leave: str, done: Callable[[ViewSession | HitlError], None]
) -> None:
    """Show what is wrong with a thread until another one is open, or the user leaves.

    Args:
        leave: what leaving does, in a word for the footer.
        done: called with the thread that was opened instead, or with what was wrong when the user left.
    """

    def left(result: ViewSession | Damage | None) -> None:
        if isinstance(result, Damage):
            show_damage(app, hub, result, leave, done)
        else:
            done(result or damage.error)

    app.push_screen(DamagedScreen(hub, damage, leave), left)


_MOST = 1_000
_SECONDS = 12


class DamagedScreen(CheckScreen):
    """Returns another thread that was opened, with one that is damaged too, or None to leave.

    Nothing here changes anything.
    """

    CSS_PATH: ClassVar[list[str | PurePath]] = ["check.tcss", "damaged.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [bound("check.threads", "threads")]
    leads_to_steps = False

    def __init__(self, hub: Hub, damage: Damage, leave: str) -> None:
        """`leave` is what leaving does, in a word for the footer."""
        super().__init__(damage.driver)
        self._hub = hub
        self._error = damage.error
        self._word = leave

    def compose(self) -> ComposeResult:
        yield LineView("damage", "This thread can't be opened")
        yield LineView("checks", "Verify")
        yield LineView("findings", "Findings")
        yield LineView("finding", "What it means")
        checks = [(f"check.{kind}", name) for kind, name, _ in CHECKS]
        yield KeysBar((*checks, ("check.threads", "Threads"), ("page.close", self._word)))

    def on_mount(self) -> None:
        """Show why."""
        view = self.query_one("#damage", LineView)
        view.can_focus = False
        self._show_error()

    def on_resize(self) -> None:
        """Wrap for the new width."""
        self._show_error()

    def _show_error(self) -> None:
        view = self.query_one("#damage", LineView)
        width = max(20, self.size.width - 4)
        error = self._error
        key = keymap_of(self.app).shown("check.threads")
        rest = "`hitl-tui log` and `export` read what is left"
        rest = f"nothing was changed; {key} opens another thread; {rest}"
        rows: list[Line] = []
        texts: tuple[tuple[str, Role], ...] = (error.message, "error"), (error.hint, "plain"), (rest, "dim")
        for text, role in texts:
            rows += wrapped(sanitise_line(text, _MOST), width, role)
        view.show(rows)
        view.styles.height = min(len(rows) + 2, max(3, self.size.height // 3))

    def action_threads(self) -> None:
        """Choose another thread."""

        def chosen(thread_id: str | None) -> None:
            if thread_id:
                start_work(self, partial(self._open, thread_id), group="open")

        keys = keymap_of(self.app).bindings["check.threads"]
        self.app.push_screen(ThreadsScreen(self._hub, self._driver.thread_id, self._hub.now, keys), chosen)

    async def _open(self, thread_id: str) -> None:
        """Open another thread; if that fails, show why and stay."""
        try:
            driver = await self._hub.open(thread_id)
            try:
                session = await ViewSession.open(self._hub, driver)
            except LogCorrupt as error:
                self.dismiss(Damage(driver, error))
                return
        except HitlError as error:
            self.notify(
                failure_words(error),
                title=error.title,
                severity="error",
                markup=False,
                timeout=_SECONDS,
            )
            return
        self.dismiss(session)
