"""All breakpoints: set, change, switch off and remove; typed text is checked at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import ClassVar, Final, TypeAlias

from msgspec.structs import replace
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input

from hitl_tui.drivers.breakpoints import BreakpointInvalid, describe, put, read_breakpoint
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.ui.bindings import LIST_MOVES, bound, keymap_of
from hitl_tui.ui.gate import TYPED_SECONDS, decides, gate_of
from hitl_tui.ui.screens.modal import Modal
from hitl_tui.ui.terminal_input import is_burst, is_held_down
from hitl_tui.ui.widgets.lines import ROLE_CLASSES, LineView
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.view.breakpoints import breakpoint_line
from hitl_tui.view.rows import wrapped
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span, untrusted

_NAME: Final = 40
Keep: TypeAlias = Callable[[tuple[Breakpoint, ...]], None]


class BreakpointList(LineView):
    """One row for each breakpoint, then the nodes without one, then a row for any other."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *LIST_MOVES,
        bound("breaks.switch", "switch"),
        bound("breaks.remove", "remove"),
        bound("breaks.condition", "type"),
    ]

    def __init__(self, session: ViewSession, node: str, keep: Keep) -> None:
        super().__init__("breakpoints")
        self.session = session
        self._keep = keep
        self._rows: list[Breakpoint | None] = []
        self._gather()
        at = [
            row
            for row, point in enumerate(self._rows)
            if point and (point.kind, point.place) == ("before", node)
        ]
        self.cursor_row = at[0] if at else 0

    def _gather(self) -> None:
        points = self.session.breakpoints
        stopped = {point.place for point in points if point.kind == "before"}
        names = [node.name for node in self.session.view.graph.nodes if node.name not in stopped]
        self._rows = [*points, *(Breakpoint("before", name) for name in names), None]

    @property
    def text(self) -> str:
        """Breakpoint under the cursor in the syntax of `--break`, "" on the row for any other."""
        point = self._rows[self.cursor_row or 0]
        return describe(point).removeprefix("before ") if point else ""

    @property
    def _is_set(self) -> bool:
        return (self.cursor_row or 0) < len(self.session.breakpoints)

    def write(self) -> None:
        """Show all as they are now."""
        self._gather()
        self.cursor_row = min(self.cursor_row or 0, len(self._rows) - 1)
        session, count = self.session, len(self.session.breakpoints)
        rows: list[Line] = []
        for number, point in enumerate(self._rows):
            if point is None:
                rows.append((Span("   new: after, change, tool, error …", "dim"),))
            elif number < count:
                rows.append((Span(" "), *breakpoint_line(point, session.view.graph, session.hits)))
            else:
                rows.append((Span("   "), untrusted(point.place, "dim", _NAME)))
        self.show(rows)

    def put(self, point: Breakpoint) -> None:
        """Set a breakpoint in place of the one under the cursor, or add one."""
        points = list(self.session.breakpoints)
        if self._is_set:
            points[self.cursor_row or 0] = point
        else:
            points = list(put(points, point))
        self._have(tuple(points))

    def restore(self, points: tuple[Breakpoint, ...]) -> None:
        """Replace all breakpoints by these."""
        self.session.breakpoints = points
        self._keep(points)
        self.write()

    def _have(self, points: tuple[Breakpoint, ...]) -> None:
        self.restore(points)
        self.post_message(self.RowChosen(self, self.cursor_row or 0))

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        row = self.cursor_row = min(max((self.cursor_row or 0) + by, 0), len(self._rows) - 1)
        self.reveal(row)
        self.repaint()
        self.post_message(self.RowChosen(self, row))

    def choose_other(self) -> None:
        """Move the cursor to the row for any other."""
        self.cursor_row = len(self._rows) - 1
        self.reveal(self.cursor_row)
        self.repaint()

    @decides
    def action_switch(self) -> None:
        """Set the breakpoint, or switch it off or on."""
        point = self._rows[self.cursor_row or 0]
        if point is None:
            self.action_type()
        else:
            self.put(replace(point, off=not point.off) if self._is_set else point)

    @decides
    def action_remove(self) -> None:
        """Remove the breakpoint."""
        if self._is_set:
            points = list(self.session.breakpoints)
            del points[self.cursor_row or 0]
            self._have(tuple(points))

    def action_type(self) -> None:
        """Type where and when it stops."""
        self.screen.query_one(Input).focus()


class BreakpointsScreen(Modal[None]):
    """List of breakpoints, and a field with the text of the chosen one.

    Args:
        node: where the cursor begins.
        keep: called with all breakpoints whenever one has changed.
    """

    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "breakpoints.tcss"]
    COMPONENT_CLASSES: ClassVar[set[str]] = set(ROLE_CLASSES)
    BINDINGS: ClassVar[list[BindingType]] = [bound("breaks.back", "back")]
    AUTO_FOCUS = "#breakpoints"

    def __init__(self, session: ViewSession, node: str, keep: Keep) -> None:
        super().__init__()
        self._session = session
        self._by_letter: tuple[str, float, tuple[Breakpoint, ...]] | None = None
        """Letter that has switched a breakpoint, when, and all breakpoints before that."""
        self._list = BreakpointList(session, node, keep)

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog") as box:
            box.border_title = Content("Breakpoints")
            yield self._list
            numbers = [
                channel.name for channel in self._session.view.graph.channels if channel.type == "number"
            ]
            example = f"NODE: {numbers[0]} > 2" if numbers else "NODE: some_channel == 'a value'"
            yield SafeInput(
                id="condition", placeholder=f"{example} · after NODE · change CHANNEL · tool · error"
            )
            yield LineView("problem")

    def on_mount(self) -> None:
        """Show the breakpoints."""
        self.query_one("#problem", LineView).can_focus = False
        self._list.write()
        self._list.styles.height = min(len(self._list.lines), 12, max(self.app.size.height - 10, 2))
        self._show_chosen()

    @on(LineView.RowChosen)
    def _show_chosen(self) -> None:
        field = self.query_one(Input)
        field.border_title = Content('place [hit N] [log "text {n}"] [: condition]')
        text = self._list.text
        # A name that nobody could type is switched in the list alone; the field would show it unchanged.
        field.value = text if text.isprintable() else ""
        self._check(field.value)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._check(event.value)

    @property
    def _help(self) -> str:
        """Show the keys in a row."""
        keymap = keymap_of(self.app)
        words = {"switch": "on or off", "remove": "remove", "condition": "edit", "back": "back"}
        return " · ".join(f"{keymap.shown(f'breaks.{key}')}: {word}" for key, word in words.items())

    def _check(self, text: str) -> Breakpoint | None:
        """Show what is wrong with a text; return the breakpoint if nothing is."""
        lines: list[Line] = [(Span(self._help, "dim"),)]
        point = None
        try:
            if text.strip():
                point = read_breakpoint(text, self._session.view.graph)
        except BreakpointInvalid as error:
            room = self.query_one(Input).content_size.width
            # The mark is shown under the text as long as that is not scrolled.
            mark = " " * (2 + error.column - 1) + "^" if error.column <= room else ""
            lines = [(Span(mark, "error"),), *self._wrapped(f"column {error.column}: {error.why}")]
        self.query_one("#problem", LineView).show(lines)
        return point

    def _wrapped(self, text: str) -> list[Line]:
        width = max(self.query_one("#problem", LineView).content_size.width, 20)
        return wrapped(sanitise_line(text, 400), width, "error")

    @on(Input.Submitted)
    @decides
    def _submitted(self, event: Input.Submitted) -> None:
        """Set the breakpoint, unless it can't be read."""
        point = self._check(event.value)
        if point is not None:
            self._list.put(point)
            self._list.focus()

    def on_key(self, event: events.Key) -> None:
        """Set or close with the keys that opened it; other letters begin a new breakpoint."""
        bindings, by_letter = keymap_of(self.app).bindings, self._by_letter
        self._by_letter = None
        if not self._list.has_focus:
            return
        arrives_at_once = is_burst(event) and not is_held_down(event)
        if event.key in bindings["run.breaks"] and not arrives_at_once:
            event.stop()
            self.dismiss(None)
        elif event.key in bindings["run.break"] and not arrives_at_once:
            event.stop()
            self._switch_by(event)
        elif event.is_printable and event.character and not self._is_key(event.key):
            event.stop()
            self._begin_text(self._word_before(by_letter) + event.character)

    def _switch_by(self, event: events.Key) -> None:
        """Switch the breakpoint by a letter."""
        before = self._session.breakpoints
        self._list.action_switch()
        self._by_letter = event.character or "", gate_of(self.app).now(), before

    def _word_before(self, by_letter: tuple[str, float, tuple[Breakpoint, ...]] | None) -> str:
        """Undo the switch by the letter just before, as it begins a word; return that letter."""
        letter, at, before = by_letter or ("", 0.0, ())
        if not letter or gate_of(self.app).now() - at > TYPED_SECONDS:
            return ""
        if self._session.breakpoints != before:
            self._list.restore(before)
        return letter

    def _is_key(self, key: str) -> bool:
        """Whether a key does something in the list."""
        bindings = keymap_of(self.app).bindings
        return any(key in keys for name, keys in bindings.items() if name.startswith(("list.", "breaks.")))

    def _begin_text(self, character: str) -> None:
        """Type a new breakpoint: letters typed in the list go to the field, where a blank sets nothing."""
        self._list.choose_other()
        field = self.query_one(Input)
        field.value = character
        field.focus()
        field.cursor_position = len(field.value)

    def action_back(self) -> None:
        """Go from the field to the list, or from the list to the run."""
        if self._list.has_focus:
            self.dismiss(None)
        else:
            self._show_chosen()
            self._list.focus()
