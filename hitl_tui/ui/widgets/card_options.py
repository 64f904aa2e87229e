"""What can be chosen on a review card, for each way of answering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hitl_tui.engine.records import Request
from hitl_tui.ui.composing import Composing
from hitl_tui.ui.keys import written
from hitl_tui.ui.widgets.choices import Option
from hitl_tui.view.answers import wants_text
from hitl_tui.view.sanitise import sanitise_line

LATER = Option("_later", "escape", "decide later, it stays waiting")


def card_options(
    making: Composing, ways: Mapping[str, str], edit_keys: Sequence[str], *, can_edit: bool
) -> list[Option]:
    """The options of a card whose answer is made up.

    Args:
        ways: where each choice would lead.
        edit_keys: what is pressed to edit.
        can_edit: whether the channel that is decided about can be edited first.
    """
    if making.editing:
        return [
            Option("_take", "enter", "take these arguments"),
            Option("_untake", "escape", "back to the choices"),
        ]
    options = _answers(making, ways, edit_keys)
    request = making.request
    taken = {key for option in options for key in (option.key, *option.also)}
    if request.subject and can_edit and not taken & set(map(written, edit_keys)):
        options.append(_editing("_edit", f"edit {sanitise_line(request.subject, 40)} first", edit_keys))
    if request.thread and request.choices and not taken & set(map(written, edit_keys)):
        options.append(
            _editing("_inside", f"edit it in {sanitise_line(request.thread, 40)} first", edit_keys)
        )
    return [*options, LATER]


def sending_options(undo_keys: Sequence[str]) -> list[Option]:
    """While a decision can be taken back."""
    key, also = (undo_keys[0], tuple(undo_keys[1:])) if undo_keys else ("", ())
    return [Option("_undo", key, "take it back", also=also), Option("_now", "enter", "send it now")]


def answer_label(request: Request, making: Composing) -> str:
    """What stands over the place to type."""
    if making.form is not None:
        return "The arguments (tab)" if making.editing else "Your answer (tab), * must be given"
    if making.edited:
        return "Your version stands in the editor"
    if request.kind == "edit" and not request.choices:
        return "Edit what is shown above"
    if request.choices or request.shape:
        return "Your reason (tab), it goes into the log"
    return "Your answer (tab)" if wants_text(request.schema) else "Your answer as JSON (tab)"


def _answers(making: Composing, ways: Mapping[str, str], edit_keys: Sequence[str]) -> list[Option]:
    request = making.request
    if request.choices or request.shape:
        options = []
        for choice in making.choices:
            key, also = ("enter", (choice.key,)) if choice.recommended else (choice.key, ())
            options.append(Option(choice.id, key, choice.label, ways.get(choice.id, ""), also))
        back = Option("_back", "backspace", f"back to action {making.part}")
        return [*options, back] if making.part else options
    again = _editing("_write", "edit it again", edit_keys)
    if request.kind == "edit":
        if making.edited:
            return [Option("_value", "enter", "send your version"), again]
        return [
            Option("_write", "enter", "edit it", also=tuple(edit_keys)),
            Option("_same", "u", "send it unchanged"),
        ]
    if making.form is not None:
        return [Option("_form", "enter", "send the answer")]
    if making.edited:
        return [Option("_value", "enter", "send the answer"), again]
    send = Option("_free", "enter", "send the answer")
    in_editor = _editing("_write", "write it in an editor", edit_keys)
    return [send] if wants_text(request.schema) else [send, in_editor]


def _editing(option_id: str, label: str, keys: Sequence[str]) -> Option:
    return Option(option_id, keys[0] if keys else "", label, also=tuple(keys[1:]))
