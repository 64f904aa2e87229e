"""Write a value that is an answer: in an editor, checked as one types, with what changes beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.app import ComposeResult

from hitl_tui.ui.bindings import keymap_of
from hitl_tui.ui.screens.edit import KEYS_OF_EDITOR, DraftScreen, EditHead
from hitl_tui.ui.screens.page import KeysBar
from hitl_tui.ui.widgets.lines import LineView, ours
from hitl_tui.view.form import mismatch
from hitl_tui.view.format import NotJson
from hitl_tui.view.rows import wrapped
from hitl_tui.view.spans import Line, untrusted
from hitl_tui.view.value_source import draft_of, read_draft


class ValueScreen(DraftScreen):
    """Hands back (value,), or None where nothing was taken.

    Args:
        title: what the value answers.
        value: what the editor begins with.
        schema: what the answer must fit.
        text: whether the answer is a text where there is no value yet.
    """

    lost = "They have not been taken."

    def __init__(
        self, title: str, value: Any, schema: Mapping[str, Any] | None, *, text: bool = False
    ) -> None:
        self._about = title
        self._before = value
        self._schema = schema or {}
        draft = draft_of(value, "text" if text else "")
        if value is None and draft.as_json and self._schema.get("type") == "object":
            draft = draft_of({}, "")
        super().__init__(draft)

    def compose(self) -> ComposeResult:
        yield EditHead(id="edit-head")
        yield from self._body("Your version")
        yield KeysBar(KEYS_OF_EDITOR)

    def on_mount(self) -> None:
        """Say what is answered, and show the first check."""
        head = self.query_one(EditHead)
        head.line = (ours(" answer ", "brand"), untrusted(self._about, "name"))
        self.query_one("#facts", LineView).can_focus = False
        self._check()

    @property
    def unapplied(self) -> tuple[str, str]:
        """The text that has not been taken, and what to call it; "" for none."""
        return (self.text if self.changed else ""), f"your answer to {self._about!r}"

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
        read = self._read()
        self._show_facts()
        if read is not None:
            self._show_change("answer", self._before, read[0])

    def _facts(self, width: int) -> list[Line]:
        key = keymap_of(self.app).shown("edit.apply")
        return wrapped(f"{key} takes it back to the question; it is sent from there.", width, "dim")

    def action_apply(self) -> None:
        """Take the value back to the card, if it fits."""
        read = self._read()
        self._show_facts()
        if read is not None and not self._problem:
            self.dismiss(read)
