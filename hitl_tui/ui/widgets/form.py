"""Form in a pane: a row to type or choose in for each field; typing checks, and never decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.widgets import Input, TextArea

from hitl_tui.ui.bindings import bound, keymap_of
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.widgets.picker import Picker
from hitl_tui.ui.widgets.safe_text import FieldArea, SafeInput
from hitl_tui.view.form import Field, FieldProblem, Form, Path, Reading, read_field, read_form
from hitl_tui.view.glyphs import UNICODE
from hitl_tui.view.rows import wrap_line, wrap_rich, wrapped
from hitl_tui.view.spans import Span, untrusted

_NARROWEST: Final = 16
_USUAL: Final = 58
"""Usual width of a field in cells, before it is known."""


class FieldBox(Vertical):
    """One field: its name and hint, the typed text, and what is wrong with it."""

    class Typed(Message):
        """The text of a field has changed."""

    def __init__(self, field: Field, number: int) -> None:
        super().__init__(classes="field")
        self.field = field
        self._head = LineView(f"field-head-{number}")
        self._problem = LineView(f"field-problem-{number}")
        self._head.can_focus = self._problem.can_focus = False
        self.entry = _entry(field, number)

    def compose(self) -> ComposeResult:
        yield self._head
        yield self.entry
        yield self._problem

    @property
    def text(self) -> str:
        """Text that is typed or chosen."""
        entry = self.entry
        return entry.value if isinstance(entry, Input) else entry.text

    def on_mount(self) -> None:
        """Show no problem before something is typed."""
        self._problem.display = False
        self.lay_out()

    def lay_out(self) -> None:
        """Wrap name and hint for the width."""
        field, width = self.field, max(self.size.width or _USUAL, _NARROWEST)
        name: list[Span] = [untrusted(field.label, "name")]
        name += [Span(" *", "accent")] if field.required else []
        name += [Span("  "), untrusted(field.hint, "dim")] if field.hint else []
        if field.long and (key := keymap_of(self.app).shown("form.line")):
            name.append(Span(f"  ({key}: next line)", "dim"))
        lines = wrap_rich(tuple(name), width)
        lines += wrapped(field.help, width, "dim")
        self._head.show(lines)
        self._head.styles.height = len(lines)

    def show_problem(self, problem: str) -> None:
        """Show a problem, or "" for none."""
        self._problem.display = bool(problem)
        width = max(self.size.width, _NARROWEST)
        rows = wrap_line(f"{UNICODE.failed} {problem}", width, "  ") if problem else []
        self._problem.show([(untrusted(row, "error"),) for row in rows])
        self._problem.styles.height = max(len(rows), 1)

    @on(Input.Changed)
    @on(TextArea.Changed)
    @on(Picker.Changed)
    def _typed(self, event: Message) -> None:
        event.stop()
        problem = ""
        try:
            if self.text.strip():
                read_field(self.field, self.text)
        except FieldProblem as wrong:
            problem = str(wrong)
        self.show_problem(problem)
        self.post_message(self.Typed())

    def on_resize(self, event: events.Resize) -> None:
        """Wrap again."""
        self.lay_out()


class AnswerForm(VerticalScroll, can_focus=False):
    """Fields of a form; the last one leads out of it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("form.next", "move(1)"),
        bound("form.previous", "move(-1)"),
        bound("form.done", "move(1)", priority=True),
        bound("form.leave", "leave"),
    ]

    class Left(Message):
        """The user has finished typing."""

    def __init__(self) -> None:
        super().__init__(id="card-form")
        self.form: Form | None = None
        self.changed = False
        self.boxes: list[FieldBox] = []
        self._made = 0

    @property
    def texts(self) -> Mapping[Path, str]:
        """Texts of the fields."""
        return {box.field.path: box.text for box in self.boxes}

    def show_form(self, form: Form | None) -> None:
        """Show the fields of a form; the same form keeps what was typed."""
        if form is self.form:
            return
        self.form, self.changed = form, False
        self.remove_children()
        # Numbers are never reused: the fields of the previous form are removed a moment later.
        self.boxes = [
            FieldBox(field, self._made + at) for at, field in enumerate(form.fields if form else ())
        ]
        self._made += len(self.boxes)
        self.mount_all(self.boxes)
        self.scroll_home(animate=False)

    def read(self) -> Reading:
        """Return the value and show problems at their fields."""
        assert self.form is not None
        reading = read_form(self.form, self.texts)
        self.show_problems(reading)
        return reading

    def show_problems(self, reading: Reading) -> None:
        """Show each field's problem; focus the first one with a problem."""
        wrong = [box for box in self.boxes if box.field.path in reading.problems]
        for box in self.boxes:
            box.show_problem(reading.problems.get(box.field.path, ""))
        if wrong:
            wrong[0].entry.focus()

    def focus_first(self) -> None:
        """Focus the first field."""
        if self.boxes:
            self.boxes[0].entry.focus()

    def action_move(self, by: int) -> None:
        """Move to another field, or out of the form."""
        boxes = self.boxes
        at = next((place for place, box in enumerate(boxes) if box.entry.has_focus), -1) + by
        if 0 <= at < len(boxes):
            boxes[at].entry.focus()
        else:
            self.post_message(self.Left())

    def action_leave(self) -> None:
        """Move back to the choices."""
        self.post_message(self.Left())

    @on(FieldBox.Typed)
    def _typed(self) -> None:
        assert self.form is not None
        self.changed = self.texts != self.form.texts


def _entry(field: Field, number: int) -> Input | FieldArea | Picker:
    name = f"field-{number}"
    if field.options:
        return Picker(name, field)
    if field.long:
        return FieldArea(field.text, id=name, compact=True)
    return SafeInput(field.text, id=name, compact=True)
