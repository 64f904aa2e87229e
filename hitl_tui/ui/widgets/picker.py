"""Options side by side: one of them, or any number, chosen with the arrow keys and space."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import events
from textual.binding import BindingType
from textual.message import Message

from hitl_tui.ui.bindings import bound
from hitl_tui.ui.widgets.lines import LineView, ours
from hitl_tui.view.cells import cells
from hitl_tui.view.form import Field
from hitl_tui.view.spans import Line, Span

_MARKS: Final = {False: ("○", "●"), True: ("[ ]", "[x]")}
_GAP: Final = "  "
_MOST_ROWS: Final = 6


class Picker(LineView):
    """Options of a field; letters do nothing here, and `text` is the choice as a form reads it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("form.left", "move(-1)"),
        bound("form.right", "move(1)"),
        bound("form.choose", "choose"),
    ]

    class Changed(Message):
        """The choice has changed."""

    def __init__(self, name: str, field: Field) -> None:
        super().__init__(name)
        self._words = [option.word for option in field.options]
        self._many = field.kind == "many"
        self._required = field.required
        begins = field.text.split(", ") if self._many else [field.text]
        self._chosen = {place for place, word in enumerate(self._words) if word in begins}
        self._place = min(self._chosen, default=0)
        self._rows: list[list[int]] = []

    @property
    def text(self) -> str:
        """Chosen options as text."""
        return ", ".join(self._words[place] for place in sorted(self._chosen))

    def on_mount(self) -> None:
        """Draw for the available width."""
        self._redraw()

    def on_resize(self, event: events.Resize) -> None:
        """Draw for the new width."""
        self._redraw()

    def on_focus(self) -> None:
        """Show the cursor, which is hidden without the focus."""
        self._redraw()

    def on_blur(self) -> None:
        """Hide the cursor."""
        self._redraw()

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Keep letters typed here from being commands of the screen."""
        return character is not None and character.isprintable() and key != "space"

    def action_move(self, by: int) -> None:
        """Move to another option; if only one can be chosen, choose it."""
        nothing = not self._chosen and not self._many
        self._place = self._place if nothing else (self._place + by) % len(self._words)
        if not self._many:
            self._choose({self._place})
        self._redraw()

    def action_choose(self) -> None:
        """Choose the option under the cursor, or undo its choice."""
        if self._many:
            self._choose(self._chosen ^ {self._place})
        else:
            self._choose(set() if self._chosen == {self._place} and not self._required else {self._place})

    def on_click(self, event: events.Click) -> None:
        """Choose the clicked option."""
        row, offset = self.row_at(event), event.get_content_offset(self)
        event.stop()
        self.focus()
        if row is None or offset is None:
            return
        right = 0
        for place in self._rows[row]:
            right += cells(self._mark(place)) + len(_GAP)
            if offset.x < right:
                self._place = place
                self.action_choose()
                return

    def _choose(self, chosen: set[int]) -> None:
        self._chosen = chosen
        self._redraw()
        self.post_message(self.Changed())

    def _mark(self, place: int) -> str:
        return f"{_MARKS[self._many][place in self._chosen]} {self._words[place]}"

    def _redraw(self) -> None:
        width = max(self.size.width, 8)
        self._rows, taken = [[]], 0
        for place in range(len(self._words)):
            wide = cells(self._mark(place)) + len(_GAP)
            if self._rows[-1] and taken + wide > width + len(_GAP):
                self._rows.append([])
                taken = 0
            self._rows[-1].append(place)
            taken += wide
        self.show([self._line(row) for row in self._rows])
        self.styles.height = min(len(self._rows), _MOST_ROWS)
        here = next(row for row, places in enumerate(self._rows) if self._place in places)
        if not round(self.scroll_y) <= here < round(self.scroll_y) + _MOST_ROWS:
            self.scroll_to(y=max(0, here - _MOST_ROWS + 1), animate=False)

    def _line(self, places: list[int]) -> Line:
        spans: list[Span] = []
        for place in places:
            cursor = self.has_focus and place == self._place
            role = "cursor" if cursor else "value" if place in self._chosen else "dim"
            spans += [ours(self._mark(place), role), Span(_GAP)]
        return tuple(spans)
