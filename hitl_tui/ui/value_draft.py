"""A channel value while it is edited: as text and back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hitl_tui.view.json_text import read_json
from hitl_tui.view.sanitise import sanitise


@dataclass(frozen=True, slots=True)
class Draft:
    """The text to begin with; `as_json` says how to read it back, `why` why it is not plain."""

    text: str
    as_json: bool
    why: str = ""


def draft_of(value: Any, channel_type: str) -> Draft:
    """Texts are edited as they are, all else as JSON.

    A text with characters that could steer a terminal is edited as JSON too, where they are escaped.
    """
    plain = isinstance(value, str) or (value is None and channel_type == "text")
    if plain:
        text = value or ""
        if sanitise(text) == text:
            return Draft(text, as_json=False)
        return Draft(json.dumps(text), as_json=True, why="as JSON, for it holds control characters")
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if sanitise(text) != text:
        text = json.dumps(value, indent=2)
    return Draft(text, as_json=True)


def read_draft(text: str, *, as_json: bool) -> Any:
    """The value a text stands for; raises `NotJson`."""
    return read_json(text) if as_json else text
