"""Rollback: what will run and with what, in order; then the result of each, as it happens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import PurePath
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input
from textual.worker import Worker, WorkerState

from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.commands import Pause, Rollback
from hitl_tui.engine.graph.compensation import RollbackEntry
from hitl_tui.engine.log.events import AttemptFailed, ChildMoved, NodeStarted, RunEnded, StepCommitted
from hitl_tui.errors import HitlError
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.screens.dialogs import DialogField, Labelled
from hitl_tui.ui.screens.modal import Host, Modal
from hitl_tui.ui.widgets.choices import Choices
from hitl_tui.ui.widgets.lines import ROLE_CLASSES, LineView
from hitl_tui.ui.work import start_work
from hitl_tui.view.keymap import BACK, Option
from hitl_tui.view.rollback import entry_rows, remaining, summary
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Span, untrusted

_MOST_ROWS = 14


class RollbackDialog(Modal[None]):
    """Previews a rollback, runs it on request, and stays open to show the results."""

    CSS_PATH: ClassVar[list[str | PurePath]] = ["undo.tcss"]
    COMPONENT_CLASSES: ClassVar[set[str]] = set(ROLE_CLASSES)
    BINDINGS: ClassVar[list[BindingType]] = [bound("ask.back", "close")]

    def __init__(self, driver: Driver, entries: Sequence[RollbackEntry], actor: str) -> None:
        super().__init__()
        self._driver = driver
        self._entries = tuple(entries)
        self._actor = actor
        self._handler = ("", "")
        self._under_way = False

    def compose(self) -> ComposeResult:
        some = bool(remaining(self._entries))
        go = Option("go", "r", "roll back", "runs them one by one")
        with Vertical(id="dialog") as box:
            box.border_title = Content("Roll back")
            yield LineView("undo-words")
            yield LineView("undo-entries")
            if some:
                yield Labelled(DialogField("why", "why (optional)"))
            yield Choices([BACK, go] if some else [BACK])

    def on_mount(self) -> None:
        """Put the close button first, so that enter alone runs nothing."""
        self.query_one("#undo-words", LineView).can_focus = False
        self._show()
        self._say(
            "These run in this order, each as its own step:"
            if remaining(self._entries)
            else f"Nothing is left to undo: {summary(self._entries)}."
            if self._entries
            else "There is nothing to undo: no step left a handler."
        )
        self.query_one(Choices).focus()

    def _show(self) -> None:
        shown = self._entries if self._under_way else remaining(self._entries) or self._entries
        rows = entry_rows(shown, *self._handler)
        view = self.query_one("#undo-entries", LineView)
        view.styles.height = max(1, min(len(rows), _MOST_ROWS, self.size.height - 14))
        view.show(rows, width=max((sum(len(span.text) for span in row) for row in rows), default=0))

    def _say(self, words: str, role: str = "plain") -> None:
        line = (untrusted(words, "error") if role == "error" else Span(words),)
        self.query_one("#undo-words", LineView).show([line, ()])

    @on(Input.Submitted)
    def _submitted(self) -> None:
        """Move on to the answers when enter is pressed in the field."""
        self.query_one(Choices).focus()

    def action_close(self) -> None:
        """Close; a running rollback continues."""
        self.dismiss(None)

    @on(Choices.Chosen)
    def _chosen(self, event: Choices.Chosen) -> None:
        option = event.option.id
        if option == "go":
            field = self.query_one(Input)
            note = field.value.strip() or None
            self.query_one(Labelled).display = False
            pause = Option("pause", "p", "pause", "after the handler that runs")
            self.query_one(Choices).set_options([pause, Option("back", "ask.back", "leave it running")])
            self._under_way = True
            self._say("Rolling back…")
            start_work(self, partial(self._roll_back, note))
        elif option == "pause":
            start_work(self, partial(self._driver.execute, Pause(self._actor)))
        else:
            self.dismiss(None)

    async def _roll_back(self, note: str | None) -> None:
        driver = self._driver
        seen = (await driver.snapshot()).last_event
        await driver.execute(Rollback(self._actor, note))
        ended = False
        while not ended:
            await driver.changed(seen)
            for stamped in driver.events(seen):
                seen = stamped.number
                match stamped.event:
                    case NodeStarted(node=node):
                        self._handler = (node, "")
                    case ChildMoved(running=node, thread_id=thread):
                        self._handler = (node, thread)
                    case StepCommitted() | AttemptFailed():
                        self._handler = ("", "")
                    case RunEnded():
                        ended = True
            self._entries = await driver.rollback_entries()
            self._show()
        await self._show_end()

    async def _show_end(self) -> None:
        progress = (await self._driver.snapshot()).progress
        left = remaining(self._entries)
        words = "Rolled back" if not left else "Paused" if progress.status == "waiting" else "Not complete"
        self._say(f"{words}: {summary(self._entries)}.", "error" if progress.status == "failed" else "plain")
        choices = self.query_one(Choices)
        choices.set_options([Option("back", "ask.back", "close")])
        choices.focus()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Show what refuses the rollback."""
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None:
            words = error.message if isinstance(error, HitlError) else f"{type(error).__name__}: {error}"
            self._say(sanitise_line(words, 200), "error")
            self.query_one(Choices).set_options([BACK])


async def ask_rollback(screen: Host, driver: Driver, actor: str) -> None:
    """Show what a rollback would run, and let the user run it."""
    entries = await driver.rollback_entries()
    screen.app.push_screen(RollbackDialog(driver, entries, actor))
