"""All nodes with their breakpoints: set, take away, give a condition that is checked as one types."""

from __future__ import annotations

from pathlib import PurePath
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input

from hitl_tui.drivers.breakpoints import check_breakpoint
from hitl_tui.drivers.expressions import ExpressionInvalid
from hitl_tui.errors import HitlError
from hitl_tui.ui.bindings import LIST_MOVES, bound, keymap_of
from hitl_tui.ui.screens.modal import Modal
from hitl_tui.ui.widgets.lines import ROLE_CLASSES, LineView, ours
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.view.glyphs import UNICODE
from hitl_tui.view.rows import wrapped
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span, untrusted

_NAME: Final = 24


class NodeList(LineView):
    """A node a row, with its breakpoint."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *LIST_MOVES,
        bound("breaks.switch", "switch"),
        bound("breaks.condition", "type"),
    ]

    def __init__(self, session: ViewSession, node: str) -> None:
        super().__init__("nodes")
        self.session = session
        known = [node.name for node in session.view.graph.nodes]
        # A node may have gone with a new version of the graph's file.
        self.nodes = [*known, *(name for name in session.breakpoints if name not in known)]
        self.cursor_row = self.nodes.index(node) if node in self.nodes else 0

    @property
    def node(self) -> str:
        """The node under the cursor."""
        return self.nodes[self.cursor_row or 0]

    def write(self) -> None:
        """Show all nodes as they are now."""
        self.show([self._row(node) for node in self.nodes])

    def _row(self, node: str) -> Line:
        condition = self.session.breakpoints.get(node)
        name = f"{sanitise_line(node, _NAME):<{_NAME}} "
        if condition is None:
            return (Span("   "), Span(name, "dim"))
        glyph = UNICODE.condition if condition else UNICODE.breakpoint
        return (ours(f" {glyph} ", "human"), Span(name, "name"), untrusted(condition or "always", limit=200))

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        row = self.cursor_row = min(max((self.cursor_row or 0) + by, 0), len(self.nodes) - 1)
        self.reveal(row)
        self.post_message(self.RowChosen(self, row))

    def action_switch(self) -> None:
        """Set the breakpoint for always, or take it away."""
        if self.session.breakpoints.pop(self.node, None) is None:
            self.session.breakpoints[self.node] = ""
        self.write()
        self.post_message(self.RowChosen(self, self.cursor_row or 0))

    def action_type(self) -> None:
        """Type a condition."""
        self.screen.query_one(Input).focus()

    def on_click(self, event: events.Click) -> None:
        """Move to a row; a second click sets or takes away its breakpoint."""
        event.stop()
        row = self.row_at(event)
        if row is not None:
            again = row == self.cursor_row
            self.action_move(row - (self.cursor_row or 0))
            if again:
                self.action_switch()


class BreakpointsScreen(Modal[None]):
    """What is changed here holds for the next run.

    Args:
        node: where the cursor begins.
    """

    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "breakpoints.tcss"]
    COMPONENT_CLASSES: ClassVar[set[str]] = set(ROLE_CLASSES)
    BINDINGS: ClassVar[list[BindingType]] = [bound("breaks.back", "back")]
    AUTO_FOCUS = "#nodes"

    def __init__(self, session: ViewSession, node: str) -> None:
        super().__init__()
        self._session = session
        self._list = NodeList(session, node)

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog") as box:
            box.border_title = Content("Breakpoints")
            yield self._list
            numbers = [
                channel.name for channel in self._session.view.graph.channels if channel.type == "number"
            ]
            example = f"{numbers[0]} > 2" if numbers else "some_channel == 'a value'"
            yield SafeInput(id="condition", placeholder=f"always; or as in: {example}")
            yield LineView("problem")

    def on_mount(self) -> None:
        """Show what there is."""
        self.query_one("#problem", LineView).can_focus = False
        self._list.styles.height = min(len(self._list.nodes), 12)
        self._list.write()
        self._show_node()

    @on(LineView.RowChosen)
    def _show_node(self) -> None:
        field = self.query_one(Input)
        field.border_title = Content(f"stop before {sanitise_line(self._list.node, 30)} where")
        field.value = self._session.breakpoints.get(self._list.node, "")
        self._check(field.value)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._check(event.value)

    @property
    def _help(self) -> str:
        """The keys, in a row."""
        keymap = keymap_of(self.app)
        switch = " or ".join(key for key in map(keymap.shown, ("breaks.switch", "run.break")) if key)
        rest = f"{keymap.shown('breaks.condition')}: to the condition · {keymap.shown('breaks.back')}: back"
        return f"{switch}: on and off · {rest}"

    def _check(self, text: str) -> bool:
        """Say what is wrong with a condition; True where nothing is."""
        lines: list[Line] = [(Span(self._help, "dim"),)]
        try:
            if text.strip():
                check_breakpoint(self._list.node, text.strip(), self._session.view.graph)
        except ExpressionInvalid as error:
            room = self.query_one(Input).content_size.width
            # The mark stands under the text as long as that is not scrolled.
            mark = " " * (2 + error.column - 1) + "^" if error.column <= room else ""
            lines = [(Span(mark, "error"),), *self._wrapped(f"column {error.column}: {error.why}")]
        except HitlError as error:
            lines = [(), *self._wrapped(str(error))]
        self.query_one("#problem", LineView).show(lines)
        return len(lines) == 1

    def _wrapped(self, text: str) -> list[Line]:
        width = max(self.query_one("#problem", LineView).content_size.width, 20)
        return wrapped(sanitise_line(text, 400), width, "error")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        """Set the breakpoint with this condition, unless it can't be read."""
        text = event.value.strip()
        if self._check(text):
            self._session.breakpoints[self._list.node] = text
            self._list.write()
            self._list.focus()

    def on_key(self, event: events.Key) -> None:
        """The keys that opened it: one sets and takes away, the other closes."""
        bindings = keymap_of(self.app).bindings
        if self._list.has_focus and event.key in bindings["run.breaks"]:
            event.stop()
            self.dismiss(None)
        elif self._list.has_focus and event.key in bindings["run.break"]:
            event.stop()
            self._list.action_switch()

    def action_back(self) -> None:
        """From the field to the list, from the list to the run."""
        if self._list.has_focus:
            self.dismiss(None)
        else:
            self._show_node()
            self._list.focus()
