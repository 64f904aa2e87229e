"""From a key on the review card to a decision: a choice, a form, an edited text, several in a row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from textual import on

from hitl_tui.engine.log.requests import Request
from hitl_tui.errors import UsageError
from hitl_tui.ui.widgets.choices import Choices
from hitl_tui.ui.widgets.form import AnswerForm
from hitl_tui.ui.widgets.reason import ReasonField
from hitl_tui.ui.widgets.sending import GRACE, UNDO, SendingPane
from hitl_tui.view.card import (
    EDIT,
    AnswerDraft,
    ChoiceView,
    choice_answer,
    value_answer,
    wants_text,
    words_first,
)
from hitl_tui.view.form import mismatch


class AnsweringPane(SendingPane):
    """What is made up is checked here; sending it is another matter."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self._request: Request | None = None
        self._draft: AnswerDraft | None = None
        self._wanted: ChoiceView | None = None

    @abstractmethod
    def _made_more(self) -> None:
        """The answer stands elsewhere now: other words, other choices."""

    @property
    def draft(self) -> AnswerDraft:
        """The answer as it is made up."""
        assert self._draft is not None
        return self._draft

    @property
    def reason(self) -> str:
        """The words typed so far."""
        return self.query_one(ReasonField).text.strip()

    def _note(self) -> tuple[str, str]:
        """What is said below the choices: which words are wanted, else how the sending stands."""
        if self._wanted is not None and self.state == "open" and not self.reason and not self._problem:
            keymap = self.run_screen.keymap
            ways = f"{keymap.shown('reason.leave')}, then {keymap.shown('ask.take')}"
            words = "write what to change" if self._wanted.text == "required" else "say why, if you like"
            return f"{words}; {ways} for “{self._wanted.label}”", "accent"
        return super()._note()

    @on(Choices.Chosen)
    def _chosen(self, event: Choices.Chosen) -> None:
        event.stop()
        match event.option.id:
            case "_undo":
                self.take_back()
            case "_now":
                if self.clock() >= self._due - UNDO + GRACE:
                    self._send()
            case "_next":
                self.run_screen.threads.do_app_next()
            case "_later":
                self.run_screen.review.close_card()
            case "_edit" | "_inside":
                self.run_screen.review.do_card_edit()
            case "_free":
                self._decide_freely()
            case "_form" | "_take":
                self._decide_by_form()
            case "_write":
                self._write()
            case "_value" | "_same":
                self._prepare("your version", self.draft.value)
            case "_untake":
                self._stop_edit()
            case "_back":
                self.step_back()
            case chosen:
                self._decide(chosen)

    def step_back(self) -> None:
        """Back to the action that was decided about before."""
        if self.draft.part and not self.unsent:
            self.draft.back()
            self._stop_edit()

    def _stop_edit(self) -> None:
        self.draft.end_edit()
        self._made_more()

    def _decide(self, chosen: str) -> None:
        card, draft = self._card, self.draft
        choice = next((one for one in draft.choices if one.id == chosen), None)
        if card is None or choice is None:
            return
        if draft.action is not None and choice.id == EDIT:
            if draft.begin_edit():
                self._made_more()
                self.query_one(AnswerForm).focus_first()
            else:
                self._write()
            return
        again = self._wanted == choice and choice.text == "optional"
        if words_first(choice) and not self.reason and not again:
            self._wanted = choice
            self._problem = ""
            self.query_one(ReasonField).focus()
            self._show_state()
            return
        if draft.action is not None:
            self._decided(choice)
        else:
            self._prepare(choice.label, choice_answer(choice, self.reason), self.reason)

    def _decided(self, choice: ChoiceView, args: Any = None) -> None:
        """One action is decided about: ask about the next one, or send the decisions on all."""
        whole = self.draft.decide(choice, self.reason, args)
        if whole is None:
            self.query_one(ReasonField).text = ""
            self._made_more()
        else:
            note = self.reason if len(self.draft.actions) == 1 else ""
            self._made_more()
            self._prepare(*whole, note)

    def _decide_by_form(self) -> None:
        reading = self.query_one(AnswerForm).read()
        whole = reading.problems.get((), "")
        self._problem = f"the answer: {whole}" if whole else ""
        if reading.problems:
            self._show_note()
        elif self.draft.editing:
            self._decided(self._edit_choice(), reading.value)
        else:
            self._prepare("the answer", reading.value)

    def _edit_choice(self) -> ChoiceView:
        return next(one for one in self.draft.choices if one.id == EDIT)

    def _write(self) -> None:
        """Open the editor on the answer."""
        from hitl_tui.ui.screens.value import ValueScreen

        draft, request = self.draft, self.draft.request

        def written_(found: tuple[Any] | None) -> None:
            if found is None:
                draft.end_edit()
            elif draft.editing:
                self._decided(self._edit_choice(), found[0])
                return
            else:
                draft.take(found[0])
            self._made_more()

        schema = None if draft.editing else request.schema
        is_text = not draft.editing and wants_text(request.schema)
        self.app.push_screen(ValueScreen(request.title, draft.value, schema, text=is_text), written_)

    def _decide_freely(self) -> None:
        assert self._request is not None
        try:
            answer = value_answer(self._request, self.reason)
        except UsageError as error:
            self._problem = f"{error.message}; {error.hint}"
            self._show_note()
            return
        wrong = mismatch(self._request.schema or {}, answer)
        if wrong:
            self._problem = wrong
            self._show_note()
            return
        self._prepare("the answer", answer)
