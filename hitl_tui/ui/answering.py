"""What a decision is before it is sent: from keys and words to an answer that a driver takes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hitl_tui.engine.records import Request
from hitl_tui.view.review import ChoiceView


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer with its label for people, bound to what was on screen."""

    request: Request
    label: str
    answer: Any
    note: str | None
    seen: bytes


def choice_answer(choice: ChoiceView, words: str) -> Any:
    """The id alone, or with words of one's own where the choice carries them."""
    if words and choice.text != "none":
        return {"choice": choice.id, "text": words}
    return choice.id


def wants_json(request: Request) -> bool:
    """Whether a free answer is typed as JSON: where its schema asks for something other than a text."""
    kind = (request.schema or {}).get("type", "string" if not request.schema else None)
    return kind != "string"


def free_answer(request: Request, words: str) -> Any:
    """A typed answer as a value; raises ValueError with what is wrong."""
    if not wants_json(request):
        return words
    try:
        return json.loads(words)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
