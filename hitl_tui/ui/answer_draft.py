"""An answer while it is made up: which action is decided about, what was decided, what was edited."""

from __future__ import annotations

from typing import Any, Final

from hitl_tui.engine.channels.values import thaw
from hitl_tui.engine.interrupts.foreign import Action
from hitl_tui.engine.log.requests import Request
from hitl_tui.view.answers import choice_answer
from hitl_tui.view.asking import EDIT, actions, allowed, answer_form, edit_form
from hitl_tui.view.form import Form
from hitl_tui.view.review import ChoiceView, choice_view

_NOT_YET: Final = object()
Decided = tuple[str, Any]


class AnswerDraft:
    """What has been chosen and written for one request; nothing of it is sent yet.

    Attributes:
        form: the form that is filled in now, None where there is none to fill in.
        editing: whether that form (or the editor) is about the arguments of the current action.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.actions = actions(request)
        self.form: Form | None = answer_form(request)
        self.editing = False
        self.outgoing: tuple[Decided, ...] = ()
        """What was decided about each of several actions, once it is about to be sent."""
        self._decided: list[Any] = []
        self._labels: list[Decided] = []
        self._value: Any = _NOT_YET

    @property
    def part(self) -> int:
        """The place of the action that is decided about."""
        return len(self._decided)

    @property
    def labels(self) -> tuple[Decided, ...]:
        """What was decided about the actions before it, in words, and the arguments that were edited."""
        return tuple(self._labels)

    @property
    def action(self) -> Action | None:
        """The action that is decided about, None for other requests."""
        return self.actions[self.part] if self.part < len(self.actions) else None

    @property
    def edited(self) -> bool:
        """True once there is a value from the editor."""
        return self._value is not _NOT_YET

    @property
    def choices(self) -> tuple[ChoiceView, ...]:
        """The answers there are now."""
        action = self.action
        choices = self.request.choices if action is None else allowed(action)
        return tuple(choice_view(one, self.request.recommended) for one in choices)

    @property
    def value(self) -> Any:
        """What the editor begins with: what it gave before, else what is asked about."""
        if self.edited:
            return self._value
        if self.editing and self.action is not None:
            return thaw(self.action.args)
        return thaw(self.request.payload) if self.request.kind == "edit" else None

    def take(self, value: Any) -> None:
        """Keep a value from the editor."""
        self._value = value

    def begin_edit(self) -> bool:
        """Edit the arguments of the current action; True where there is a form for it."""
        self.editing = True
        assert self.action is not None
        self.form = edit_form(self.request, self.action)
        return self.form is not None

    def end_edit(self) -> None:
        """Back to the choices."""
        self.editing, self.form, self._value = False, None, _NOT_YET

    def decide(self, choice: ChoiceView, words: str, args: Any = None) -> tuple[str, Any] | None:
        """Decide about the current action: the label and the answer once all are decided, else None."""
        answer = {"choice": EDIT, "args": args} if choice.id == EDIT else choice_answer(choice, words)
        self._decided.append(answer)
        self._labels.append((choice.label, args if choice.id == EDIT else None))
        self.end_edit()
        if self.part < len(self.actions):
            return None
        label, whole = ", ".join(words for words, _ in self._labels), list(self._decided)
        self.outgoing = self.labels
        self.back()
        return label, whole

    def back(self) -> bool:
        """Undo the last decision about an action; False where there is none."""
        if not self._decided:
            return False
        self._decided.pop()
        self._labels.pop()
        return True
