"""Write a value that is an answer: in an editor, checked as one types, with what changes beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import TextArea

from hitl_tui.ui.bindings import bound, keymap_of
from hitl_tui.ui.screens.dialogs import ask_drop
from hitl_tui.ui.screens.edit import EditFooter, EditHead
from hitl_tui.ui.screens.opening import BREAKPOINTS
from hitl_tui.ui.widgets.lines import LineView, RoleScreen, ours
from hitl_tui.ui.widgets.safe_text import DraftArea, elsewhere
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.view.diff import value_diff
from hitl_tui.view.form import mismatch
from hitl_tui.view.format import NotJson
from hitl_tui.view.rows import wrap_line
from hitl_tui.view.spans import Line, Span, untrusted
from hitl_tui.view.value_source import ValueText, draft_of, read_draft

_DEBOUNCE: Final = 0.15


class ValueScreen(RoleScreen):
    """Hands back (value,), or None where nothing was taken.

    Args:
        title: what the value answers.
        value: what the editor begins with.
        schema: what the answer must fit.
        text: whether the answer is a text where there is no value yet.
    """

    CSS_PATH: ClassVar = ["base.tcss", "dialogs.tcss", "edit.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("edit.apply", "apply", priority=True),
        bound("edit.editor", "editor", priority=True),
        bound("edit.back", "back", priority=True),
    ]
    HORIZONTAL_BREAKPOINTS = BREAKPOINTS
    AUTO_FOCUS = "#editor"

    def __init__(
        self, title: str, value: Any, schema: Mapping[str, Any] | None, *, text: bool = False
    ) -> None:
        super().__init__()
        self._about = title
        self._before = value
        self._schema = schema or {}
        self.draft = draft_of(value, "text" if text else "")
        if value is None and self.draft.as_json:
            self.draft = draft_of({}, "") if self._schema.get("type") == "object" else self.draft
        self._timer: Timer | None = None
        self._problem = ""

    def compose(self) -> ComposeResult:
        """Editor and difference side by side."""
        yield EditHead(id="edit-head")
        with Horizontal(id="edit-body"):
            editor = DraftArea(self.draft.text, "editor")
            editor.border_title = Content("Your version")
            editor.border_subtitle = Content(self.draft.why or ("JSON" if self.draft.as_json else "text"))
            yield editor
            with Vertical(id="edit-right"):
                yield LineView("facts", "What it does")
                yield ValuePane("preview")
        yield EditFooter()

    def on_mount(self) -> None:
        """Say what is answered, and show the first check."""
        head = self.query_one(EditHead)
        head.line = (ours(" answer ", "brand"), untrusted(self._about, "name"))
        self.query_one("#facts", LineView).can_focus = False
        self._check()

    @property
    def text(self) -> str:
        """The text as it stands."""
        return self.query_one(DraftArea).whole

    @property
    def unapplied(self) -> tuple[str, str]:
        """The text that has not been taken, and what to call it; "" for none."""
        return (self.text if self.text != self.draft.text else ""), f"your answer to {self._about!r}"

    @on(TextArea.Changed)
    def _typed(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(_DEBOUNCE, self._check)

    def _read(self) -> tuple[Any] | None:
        """The value as it stands, None with `_problem` said where it is none."""
        try:
            value = read_draft(self.text, as_json=self.draft.as_json)
        except NotJson as error:
            self._problem = f"no JSON yet: {error}"
            return None
        self._problem = mismatch(self._schema, value)
        return (value,)

    def _check(self) -> None:
        found = self._read()
        self._show_facts()
        if found is None:
            return
        rows = value_diff(self._before, found[0])
        same = all(row.kind == "same" for row in rows)
        pane = self.query_one("#preview", ValuePane)
        lines, kinds = tuple(row.text for row in rows), tuple(row.kind for row in rows)
        pane.show_text(ValueText("answer", "diff", lines, kinds), titled=False)
        pane.set_titles("No change yet" if same else "Before and after")

    def _show_facts(self) -> None:
        facts = self.query_one("#facts", LineView)
        width = max(facts.scrollable_content_region.width, 24)
        problem = wrap_line(self._problem, width) if self._problem else []
        lines: list[Line] = [(untrusted(row, "error"),) for row in problem]
        if self.query_one(DraftArea).is_too_large:
            lines.append((Span(elsewhere(self.app), "accent"),))
        words = (
            f"{keymap_of(self.app).shown('edit.apply')} takes it back to the question; it is sent from there."
        )
        lines += [(Span(row, "dim"),) for row in wrap_line(words, width)]
        facts.show(lines)
        facts.styles.height = len(lines) + 2

    def action_apply(self) -> None:
        """Take the value back to the card, if it fits."""
        found = self._read()
        self._show_facts()
        if found is not None and not self._problem:
            self.dismiss(found)

    def action_editor(self) -> None:
        """Write in the user's own editor; the text comes back into this one."""
        from hitl_tui.ui.editor import EditorFailed, edited_outside

        try:
            edited = edited_outside(self.app, self.text, as_json=self.draft.as_json)
        except EditorFailed as error:
            self._problem = str(error)
        else:
            self.query_one(DraftArea).take(edited)
        self.refresh(repaint=True)
        self._show_facts()

    def action_back(self) -> None:
        """Leave; with changes only after asking."""
        if self.text == self.draft.text:
            self.dismiss(None)
            return
        ask_drop(self, "They have not been taken.", lambda: self.dismiss(None))
