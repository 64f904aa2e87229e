"""Short list to choose from by letter, by arrow keys and enter, or with the mouse."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Final

from msgspec.structs import replace
from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.timer import Timer

from hitl_tui.ui.bindings import bound, keymap_of
from hitl_tui.ui.gate import (
    DOUBLE,
    DOUBLE_CLICK_SECONDS,
    gate_of,
    is_other_button,
    rows_on_screen,
    say_refused,
)
from hitl_tui.ui.widgets.lines import LineView, Row, ours
from hitl_tui.view.cells import cells
from hitl_tui.view.keymap import Option
from hitl_tui.view.keys import written
from hitl_tui.view.spans import Line, Span, plain_text

_NAMES = {"enter": "Enter", "escape": "Esc", "backspace": "Bksp"}
_NOTE_LEAST: Final = 10
"""Cells below which a note is left out: a piece of a name is of no use."""


class Choices(LineView):
    """List to choose from; letters choose only while it has the focus, nothing does while not `armed`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("ask.up", "move(-1)"),
        bound("ask.down", "move(1)"),
        bound("ask.take", "choose"),
    ]

    class Chosen(Message):
        """A choice was made.

        Attributes:
            by_letter: its own key was pressed.
            refusal: why it may decide nothing, or "" if it may; only a `judged` list reports refused choices.
        """

        def __init__(self, option: Option, *, by_letter: bool = False, refusal: str = "") -> None:
            super().__init__()
            self.option = option
            self.by_letter = by_letter
            self.refusal = refusal

    def __init__(
        self,
        options: Sequence[Option] = (),
        *,
        name: str = "choices",
        elsewhere: Sequence[str] = ("ask.back", "app.back"),
        judged: bool = False,
    ) -> None:
        """Offer some options.

        Args:
            elsewhere: keys, by action, that work on the screen while another widget has the focus.
            judged: whether the receiver of a choice judges itself what a refused key or click may still do.
        """
        super().__init__(name)
        self._judged = judged
        self._clicked: Timer | None = None
        self._elsewhere = elsewhere
        self._entered: int | None = None
        self.options: tuple[Option, ...] = ()
        self.armed = True
        self.set_options(options)

    def set_options(self, options: Sequence[Option], cursor: int = 0) -> None:
        """Offer these options, with the cursor on one of them."""
        self.options = tuple(options)
        self.cursor_row = cursor if options else None
        self.show(range(len(self.options)))  # type: ignore[arg-type]
        self.styles.height = len(self.options)

    def take_keys_from(self, elsewhere: Sequence[str], entered: int | None = None) -> None:
        """Set the keys that choose while another widget has the focus; () while the user types there.

        Args:
            entered: the row that enter takes there.
        """
        self._elsewhere, self._entered = elsewhere, entered
        self.repaint()

    def line(self, row: int) -> Line:
        """Return the line of a choice; its key is dim while pressing it does something else."""
        option = self.options[row]
        note = (Span(f"  {option.note}", "dim"),) if option.note else ()
        entered = row == self._entered and not self.has_focus
        live = self.armed and (self.has_focus or entered or option.key in self._elsewhere)
        keys = ("enter",) if entered else option.keys(keymap_of(self.app))
        if not keys and row == self.cursor_row:  # without a letter, it is chosen by moving the cursor there
            keys = keymap_of(self.app).bindings["ask.take"]
        key = _NAMES.get(keys[0]) or written(keys[0]) if keys else ""
        risk = (Span(f" ! {option.risk} ", "badge-error"),) if option.risk else ()
        lead, label = ours(f" {key:^5}  ", "key" if live else "key-off"), Span(option.label, "value")
        whole = (lead, label, Span("  "), *risk) if risk else (lead, label)
        if risk and cells(plain_text(whole)) > self.size.width:  # it must not be cut
            whole = (lead, *risk, Span("  "), label)
        room = self.size.width - cells(plain_text(whole))
        return whole if note and room < min(len(note[0].text), _NOTE_LEAST) else (*whole, *note)

    def grounded(self, line: Line, ground: str) -> Row:
        """Return a line on its background; a risky choice keeps its colour under the cursor."""
        row = super().grounded(line, ground)
        kept = tuple(
            old if old.role == "badge-error" else new for old, new in zip(line, row.line, strict=True)
        )
        return replace(row, line=kept)

    def arm(self, armed: bool) -> None:
        """Accept keys and clicks, or ignore them."""
        self.armed = armed
        self.repaint()

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        if self.options:
            self.cursor_row = ((self.cursor_row or 0) + by) % len(self.options)
            self.repaint()

    def action_choose(self) -> None:
        """Take the choice under the cursor, or without a cursor the one whose key is enter."""
        says = next((row for row, option in enumerate(self.options) if option.key == "ask.take"), None)
        row = says if self.cursor_row is None else self.cursor_row
        if self.armed and row is not None:
            self._choose(row, gate_of(self.app).refusal)

    def _choose(self, row: int, refusal: str, *, by_letter: bool = False) -> None:
        """Report a choice; a refused one can at most lead back."""
        option = self.options[row]
        if not refusal and row not in rows_on_screen(self):
            refusal = f"“{option.label}” is not on screen; make the window larger"
        if self._judged or not refusal or option.key in ("ask.back", "app.back"):
            self.post_message(self.Chosen(option, by_letter=by_letter, refusal=refusal))
        else:
            say_refused(self.app, refusal)

    def on_key(self, event: events.Key) -> None:
        """Take a choice by its letter."""
        if not self.armed:
            return
        row = next((row for row, option in enumerate(self.options) if self._means(event, option)), None)
        if row is None or event.key in keymap_of(self.app).bindings["ask.take"]:
            return
        event.stop()
        event.prevent_default()
        self._choose(row, gate_of(self.app).refusal, by_letter=True)

    def _means(self, event: events.Key, option: Option) -> bool:
        keys = option.keys(keymap_of(self.app))
        return event.key in keys or (event.character is not None and event.character in keys)

    def on_click(self, event: events.Click) -> None:
        """Take the clicked choice, once it is clear that it isn't a double click."""
        event.stop()
        if is_other_button(event):
            return
        row = self.row_at(event)
        if self._clicked is not None or event.chain > 1:
            self._forget_click()
            say_refused(self.app, DOUBLE)
        elif row is not None and self.armed:
            self.cursor_row = row
            self.repaint()
            taken = partial(self._take_clicked, self.options[row], gate_of(self.app).click_refusal)
            self._clicked = self.set_timer(DOUBLE_CLICK_SECONDS, taken)

    def _take_clicked(self, option: Option, refusal: str) -> None:
        self._clicked = None
        # Meanwhile another page may have been opened, or the window may have another size.
        if self.app.screen is self.screen and option in self.options and self.armed:
            self._choose(self.options.index(option), refusal or gate_of(self.app).click_refusal)

    def _forget_click(self) -> None:
        if self._clicked is not None:
            self._clicked.stop()
            self._clicked = None
