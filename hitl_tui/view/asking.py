"""How a request wants to be answered: by a choice, by a form, by an edited payload, or by any value."""

from __future__ import annotations

from hitl_tui.engine.interrupts.foreign import Action, actions_of, choices_of
from hitl_tui.engine.log.requests import Choice, Request
from hitl_tui.view.form import Form, form_of, form_of_value

EDIT = "edit"
"""The choice of an action that takes changed arguments."""


def actions(request: Request) -> tuple[Action, ...]:
    """The actions that a request asks to approve, in their order; none for other requests."""
    return actions_of(request.shape, request.payload)


def allowed(action: Action) -> tuple[Choice, ...]:
    """The decisions that one action takes."""
    return choices_of([action])


def answer_form(request: Request) -> Form | None:
    """The form of a free answer; None where it is a choice, an edit, a text or any JSON."""
    if request.choices or request.shape or request.kind == "edit":
        return None
    return form_of(request.schema)


def edit_form(request: Request, action: Action | None = None) -> Form | None:
    """The form to edit an action's arguments in, or the payload of a request to edit it; None for a text."""
    schema, value = (action.schema, action.args) if action else (request.schema, request.payload)
    return form_of(schema, value) or form_of_value(value)
