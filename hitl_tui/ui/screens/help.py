"""All actions with their keys and what they do, from the one table."""

from __future__ import annotations

from pathlib import PurePath
from typing import ClassVar, get_args

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Key

from hitl_tui.ui.actions import ACTIONS, Action, Group, ScreenGroup, Situation
from hitl_tui.ui.keymap import Keymap
from hitl_tui.ui.screen_actions import SCREEN_ACTIONS
from hitl_tui.ui.widgets.lines import LineView, RoleScreen, ours
from hitl_tui.view.spans import Line, Span

_ALSO: tuple[tuple[str, str], ...] = (
    ("tab", "to the next pane; shift+tab to the one before"),
    (
        "↑ ↓",
        "select a channel, scroll a pane; ← → in the timeline and anywhere nothing scrolls sideways: travel",
    ),
    ("esc", "close what is open, or back to the newest step"),
    ("mouse", "click a channel, a step, a tab, a choice or a key in the footer"),
)

_KEYS = len("backspace")
_LABELS = max(len(action.label) for action in (*ACTIONS, *SCREEN_ACTIONS))


class HelpScreen(RoleScreen):
    """One scrolled page."""

    CSS_PATH: ClassVar[list[str | PurePath]] = ["help.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Back", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
    ]

    def __init__(self, situation: Situation, keymap: Keymap) -> None:
        super().__init__()
        self._situation = situation
        self._keymap = keymap

    def compose(self) -> ComposeResult:
        """The page."""
        yield LineView("help", "Keys")

    def on_mount(self) -> None:
        """Write the page."""
        page = self.query_one("#help", LineView)
        page.set_titles("Keys", "esc back")
        page.show(self._lines())
        page.focus()

    def _lines(self) -> list[Line]:
        lines: list[Line] = []
        for group in get_args(Group):
            lines += [(Span(group, "title"),)]
            lines += [self._row(action) for action in ACTIONS if action.group == group]
            lines.append(())
        lines.append((Span("Also", "title"),))
        lines += [(ours(f"  {key:<{_KEYS}} ", "key"), Span(text, "dim")) for key, text in _ALSO]
        for screen in get_args(ScreenGroup):
            lines += [(), (Span(screen, "title"),)]
            lines += [self._row(action) for action in SCREEN_ACTIONS if action.group == screen]
        return lines

    def _row(self, action: Action) -> Line:
        """An action: its keys, what it does, and why not now."""
        why = action.why_not(self._situation)
        return (
            ours(f"  {self._keymap.all_shown(action.id):<{_KEYS}} ", "key"),
            Span(f"{action.label:<{_LABELS}} "),
            Span(action.help, "dim"),
            *((Span(f"   now: {why}", "dim"),) if why else ()),
        )

    def on_key(self, event: Key) -> None:
        """The key that opened it closes it."""
        if event.key in self._keymap.bindings["app.help"]:
            event.stop()
            self.dismiss(None)

    def action_close(self) -> None:
        """Back to the run."""
        self.dismiss(None)

    def action_scroll(self, by: int) -> None:
        """Scroll the page."""
        page = self.query_one("#help", LineView)
        page.scroll_relative(y=by, animate=False)
