"""What can be chosen on a review card, for each way of answering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hitl_tui.engine.log.requests import Request
from hitl_tui.ui.widgets.choices import Option
from hitl_tui.view.actions import written
from hitl_tui.view.card import AnswerDraft, wants_text
from hitl_tui.view.sanitise import sanitise_line

LATER = Option("_later", "app.back", "decide later, it stays waiting")


def card_options(
    draft: AnswerDraft, ways: Mapping[str, str], edit_keys: Sequence[str], *, can_edit: bool
) -> list[Option]:
    """The options of a card whose answer is made up.

    Args:
        ways: where each choice would lead.
        edit_keys: what is pressed to edit.
        can_edit: whether the channel that is decided about can be edited first.
    """
    if draft.editing:
        return [
            Option("_take", "ask.take", "take these arguments"),
            Option("_untake", "app.back", "back to the choices"),
        ]
    options = _answers(draft, ways)
    request = draft.request
    taken = {key for option in options for key in (option.key, *option.also)}
    free = not taken & {"card.edit", *map(written, edit_keys)}
    if request.subject and can_edit and free:
        options.append(Option("_edit", "card.edit", f"edit {sanitise_line(request.subject, 40)} first"))
    if request.thread and request.choices and free:
        options.append(Option("_inside", "card.edit", "edit it in its own thread first"))
    return [*options, LATER]


def sending_options() -> list[Option]:
    """While a decision can be taken back."""
    return [
        Option("_undo", "card.undo", "take it back"),
        Option("_now", "ask.take", "send it now"),
        Option("_next", "app.next", "send it, on to the next thread"),
    ]


def over_options() -> list[Option]:
    """Where somebody else was faster."""
    return [Option("_later", "ask.take", "close this", also=("app.back",))]


def answer_label(request: Request, draft: AnswerDraft, key: str) -> str:
    """What stands over the place to type; `key` leads there, "" for none."""
    way = f" ({key})" if key else ""
    if draft.form is not None:
        return f"The arguments{way}" if draft.editing else f"Your answer{way}, * must be given"
    if draft.edited:
        return "Your version stands above"
    if request.kind == "edit" and not request.choices:
        return "Edit what is shown above"
    if request.choices or request.shape:
        return f"Your reason{way}, it goes into the log"
    return f"Your answer{way}" if wants_text(request.schema) else f"Your answer as JSON{way}"


def _answers(draft: AnswerDraft, ways: Mapping[str, str]) -> list[Option]:
    request = draft.request
    if request.choices or request.shape:
        options = []
        for choice in draft.choices:
            key, also = ("ask.take", (choice.key,)) if choice.recommended else (choice.key, ())
            options.append(Option(choice.id, key, choice.label, ways.get(choice.id, ""), also))
        back = Option("_back", "card.back", f"back to action {draft.part}")
        return [*options, back] if draft.part else options
    again = Option("_write", "card.edit", "edit it again")
    if request.kind == "edit":
        if draft.edited:
            return [Option("_value", "ask.take", "send your version"), again]
        return [
            Option("_write", "ask.take", "edit it", also=("card.edit",)),
            Option("_same", "u", "send it unchanged"),
        ]
    if draft.form is not None:
        return [Option("_form", "ask.take", "send the answer")]
    if draft.edited:
        return [Option("_value", "ask.take", "send the answer"), again]
    send = Option("_free", "ask.take", "send the answer")
    in_editor = Option("_write", "card.edit", "write it in an editor")
    return [send] if wants_text(request.schema) else [send, in_editor]
