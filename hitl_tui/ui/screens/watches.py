"""Watches: their pane above the channels, and the dialog that adds or removes an expression."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import PurePath
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from hitl_tui.drivers.expressions import ExpressionInvalid, check_expression
from hitl_tui.drivers.history import Sample
from hitl_tui.engine.state.channel import ChannelInfo
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.gate import decides
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.widgets.header import PageHeader
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.ui.work import start_work
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span, untrusted
from hitl_tui.view.watches import WatchedValue, watch, watch_columns, watch_line

_SAMPLES: Final = 60
"""Number of steps of the history."""


class WatchesPane(LineView):
    """Expressions, their values at the shown step, and their history over the run.

    The history is read while the thread is at rest: it never delays a run.
    """

    def __init__(self) -> None:
        super().__init__("watches", "Watches")
        self.can_focus = False
        self._watches: Sequence[WatchedValue] = ()
        self._samples: Sequence[Sequence[Sample]] = ()
        self._sampled: tuple[object, ...] = (None, 0, ())

    def show_session(self, session: ViewSession, texts: tuple[str, ...]) -> None:
        """Show expressions at the shown step of a thread."""
        step, channels = session.step_view, session.view.graph.channels
        wanted = (session, step.step, texts)
        if (wanted[0], wanted[2]) != (self._sampled[0], self._sampled[2]):
            self._samples, self._sampled = (), (session, -1, texts)
        self.fill([watch(text, step, channels) for text in texts], self._samples)
        self.set_titles(f"Watches at step {step.step}")
        if step.checkpoint is not None and not session.running and wanted != self._sampled:
            self._sampled = wanted
            start_work(self, partial(self._sample, session, texts), group="watches", exclusive=True)

    async def _sample(self, session: ViewSession, texts: tuple[str, ...]) -> None:
        thread_id = session.shown[0] if session.shown else session.thread_id
        driver = await session.driver_of(thread_id)
        samples = await driver.series(texts, session.step_view.step, _SAMPLES)
        if self._sampled[::2] == (session, texts):
            self.fill(self._watches, samples)

    def fill(self, watches: Sequence[WatchedValue], samples: Sequence[Sequence[Sample]]) -> None:
        """Show expressions with samples of their history, as far as they are available."""
        self._watches, self._samples = watches, samples
        self._fill_rows()

    def _fill_rows(self) -> None:
        columns, width = watch_columns(self._watches), self.scrollable_content_region.width
        lines = [
            watch_line(shown, self._samples[at] if at < len(self._samples) else (), columns, width)
            for at, shown in enumerate(self._watches)
        ]
        if lines != list(self.lines):
            self.show(lines)

    def on_resize(self, event: events.Resize) -> None:
        """Fill the rows again: before the first layout there is no room for the strips yet."""
        super().on_resize(event)
        self._fill_rows()


class WatchScreen(OverlayScreen):
    """Returns an expression; one that is already watched is to be removed."""

    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "find.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("find.back", "close", priority=True),
        bound("find.go", "go", priority=True),
        bound("find.up", "select(-1)", priority=True),
        bound("find.down", "select(1)", priority=True),
    ]
    AUTO_FOCUS = "#find"

    def __init__(self, texts: Sequence[str], channels: Sequence[ChannelInfo], channel: str) -> None:
        super().__init__()
        self._texts = tuple(texts)
        self._channels = channels
        private = {info.name for info in channels if info.visibility == "private"}
        self._begins = "" if channel in private or channel in texts else channel

    def compose(self) -> ComposeResult:
        hint = "an expression to watch, as in: len(facts), facts[-1].source"
        yield PageHeader()
        yield SafeInput(self._begins, id="find", placeholder=hint)
        yield LineView("places", "Watches")
        entries = ("find.go", "Add or remove"), ("find.up find.down", "Select"), ("find.back", "Back")
        yield KeysBar(entries)

    def on_mount(self) -> None:
        """Keep the focus off the list."""
        self.query_one("#places", LineView).can_focus = False
        self._show(self._begins)
        # The typed text replaces the channel's name; the arrows keep it.
        self.query_one("#find", Input).action_select_all()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._show(event.value)

    def _show(self, text: str) -> None:
        lines: list[Line] = [
            (Span("≠ " if text.strip() == other else "  ", "warning"), untrusted(other, "name"))
            for other in self._texts
        ]
        wrong = self._wrong(text)
        lines += [(untrusted(line, "warning"),) for line in wrong.splitlines()]
        self.query_one("#places", LineView).show(lines or [(Span("no watches yet", "dim"),)])

    def _wrong(self, text: str) -> str:
        if not text.strip() or text.strip() in self._texts:
            return ""
        try:
            check_expression(text.strip(), self._channels)
        except ExpressionInvalid as error:
            return f"{error.message}\n{error.hint}"
        return ""

    def action_select(self, by: int) -> None:
        """Select another watch, to remove it."""
        field = self.query_one("#find", Input)
        if self._texts:
            at = self._texts.index(field.value) + by if field.value in self._texts else min(by, 0)
            field.value = self._texts[at % len(self._texts)]
            field.action_select_all()

    @decides
    def action_go(self) -> None:
        """Add the watch or remove it; an expression that can't be parsed stays to be fixed."""
        text = self.query_one("#find", Input).value.strip()
        if text and not self._wrong(text):
            self.dismiss(text)
