"""From what a person chose or typed to an answer that a request takes; wrong ones are told at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hitl_tui.engine.log.requests import Choice, Request
from hitl_tui.errors import UsageError
from hitl_tui.view.json_text import NotJson, read_json
from hitl_tui.view.review import ChoiceView

_REFUSALS: Final = frozenset(
    {"reject", "revise", "refuse", "deny", "decline", "disapprove", "no", "redo", "rework", "stop", "abort"}
)
"""Answers by whose name the asker does not get what was asked for, and so wants to know why."""


def choice_answer(choice: Choice | ChoiceView, words: str | None) -> Any:
    """A choice as an answer, with words of one's own where it carries them.

    Raises:
        UsageError: it needs words and there are none.
    """
    if choice.text == "required" and not (words or "").strip():
        raise UsageError(f"the answer {choice.id!r} needs words of yours", 'give them: --note "…"')
    return {"choice": choice.id, "text": words} if words and choice.text != "none" else choice.id


def words_first(choice: ChoiceView) -> bool:
    """Whether words are asked for before an answer is taken: where it needs some, and where it says no."""
    return choice.text == "required" or (choice.text == "optional" and choice.id.lower() in _REFUSALS)


def value_answer(request: Request, word: str) -> Any:
    """A typed value: text where text is asked for, JSON otherwise.

    Raises:
        UsageError: not JSON; says where.
    """
    if wants_text(request.schema):
        return word
    try:
        return read_json(word)
    except NotJson as error:
        raise UsageError(
            f"the answer to {request.title!r} must be JSON: {error}",
            "a text is written in quotation marks, as '\"a text\"'",
        ) from None


def wants_text(schema: Mapping[str, Any] | None) -> bool:
    """Whether a free answer is a text: where its schema says so, or says nothing."""
    return not schema or schema.get("type") == "string"
