"""What is typed for an input becomes what its channel holds, whichever way it is asked."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui.engine.graph.builder import END, START, StateGraph
from hitl_tui.engine.graph.description import InputField
from hitl_tui.engine.state.channel import Channel
from hitl_tui.view.format import typed_input

GRAPH = (
    StateGraph(
        {
            "text": Channel("", schema=str),
            "whole": Channel(0, schema=int),
            "sure": Channel(False, schema=bool),
            "facts": Channel({}, schema=dict),
            "lines": Channel([], reducer="append", schema=list[str]),
            "kept": Channel([], reducer="last_n(3)", schema=list[str]),
            "spliced": Channel([], reducer="extend", schema=list),
            "free": Channel(None),
        }
    )
    .add_node("node", lambda state: {})
    .add_edge(START, "node")
    .add_edge("node", END)
    .compile(
        inputs=[
            InputField("line", "lines", "Line"),
            InputField("kept", "kept", "Kept"),
            InputField("all", "spliced", "All"),
        ]
    )
    .graph.info
)


@pytest.mark.parametrize(
    ("name", "word", "value"),
    [
        ("text", "5", "5"),
        ("whole", "5", 5),
        ("whole", "five", "five"),
        ("whole", "1e400", "1e400"),
        ("sure", "true", True),
        ("facts", '{"a": 1}', {"a": 1}),
        ("lines", '["a"]', ["a"]),
        ("line", "5", "5"),
        ("line", '["a"]', '["a"]'),
        ("kept", '["a"]', '["a"]'),
        ("all", '[["user", "hi"]]', [["user", "hi"]]),
        ("all", "5", "5"),
        ("all", "hi", "hi"),
        ("free", "null", None),
        ("free", "as it is", "as it is"),
    ],
)
def test_a_word_is_text_or_json_as_its_channel_wants(name: str, word: str, value: Any) -> None:
    assert typed_input(GRAPH, name, word) == value
