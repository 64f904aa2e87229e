"""Titles of questions that a node asks without one.

A title is a question that a person would ask. It is taken from what the payload says: its text, or the
names of its parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

PARTS: Final = ("title", "question", "message", "prompt", "instruction", "description", "text")
"""Keys of a payload under which a question may be found, the likeliest first."""
_LONGEST: Final = 200
_NAME: Final = 40
"""Most characters of a part's name."""
_NAMED: Final = 3
"""Most parts that are named."""
_VERBS: Final[Mapping[str, str]] = {"approve": "Approve", "edit": "Edit", "choose": "Choose", "ask": "Review"}


def question_title(payload: Any, place: str, kind: str = "ask") -> str:
    """Return a question for a payload.

    Args:
        place: the node that asks, or its branch.
        kind: what is wanted; a text to approve or to edit is no question, unless it says so.
    """
    said = _text(payload)
    if said and (kind in ("ask", "choose") or said.endswith("?")):
        return said if len(said) <= _LONGEST else f"{said[: _LONGEST - 1]}…"
    if what := _object(payload):
        return f"{_VERBS[kind]} {what}?"
    return f"Your answer to {place}?"


def _text(payload: Any) -> str:
    """Return the first line of the payload's text, "" if it has none."""
    if isinstance(payload, Mapping):
        payload = next((payload[part] for part in PARTS if isinstance(payload.get(part), str)), "")
    return payload.strip().partition("\n")[0].rstrip() if isinstance(payload, str) else ""


def _object(payload: Any) -> str:
    """Describe the payload's contents; "" if the description would say nothing."""
    if isinstance(payload, str):
        return "this text" if payload.strip() else ""
    if isinstance(payload, Sequence) and payload:
        return "this item" if len(payload) == 1 else f"these {len(payload)} items"
    if not isinstance(payload, Mapping) or not payload:
        return ""
    names = [str(name).replace("_", " ")[:_NAME] for name in payload]
    if len(names) == 1:
        return f"this {names[0]}"
    more = len(names) - _NAMED
    *first, last = [*names[:_NAMED], f"{more} more"] if more > 0 else names
    return f"{', '.join(first)} and {last}"
