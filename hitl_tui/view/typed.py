"""Words that a person typed as the first value of a channel: text where it holds text, else JSON."""

from __future__ import annotations

from typing import Any

from hitl_tui.engine.graphs.description import GraphInfo
from hitl_tui.view.json_text import NotJson, read_json


def typed_input(graph: GraphInfo, name: str, word: str) -> Any:
    """The value that a word gives an input or a channel; JSON where it is and the channel isn't text.

    The input of a list is one of its items, and so is text, too.

    Args:
        name: of an input field, or of a channel.
    """
    fields = {field.name: field.channel for field in graph.inputs}
    kind = next((one.type for one in graph.channels if one.name == fields.get(name, name)), "")
    is_text = kind == "text" or (kind == "list" and name in fields)
    return word if is_text else json_or_text(word)


def json_or_text(word: str) -> Any:
    """What a word says as JSON, the word itself where it is none."""
    try:
        return read_json(word)
    except NotJson:
        return word
