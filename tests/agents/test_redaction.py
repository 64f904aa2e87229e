"""What a file never gets to hold: the values of private channels, however a text quotes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from hitl_tui import END, START, Channel, StateGraph
from hitl_tui.agents.redaction import redactor
from tests.support.spec import spec

pytestmark = spec("8")


def hidden(private: Any, said: Any) -> Any:
    """What is left of something said below a node while the private channel `secret` has a value."""
    found: list[Any] = []

    def work(state: Any) -> dict[str, Any]:
        found.append(redactor({"api_key": "qwertz-asdf-99"})(said))
        return {}

    graph = StateGraph({"secret": Channel(private, reducer="overwrite", visibility="private")})
    graph.add_node("work", work).add_edge(START, "work").add_edge("work", END)
    graph.compile().invoke({})
    return found[0]


@pytest.mark.parametrize(
    ("private", "said", "left"),
    [
        ("Ada Lovelace", "Dear Ada Lovelace!", "Dear [private: secret]!"),
        ("Ada\nLovelace", "by Lovelace", "by [private: secret]"),
        ('say "hi"\n', r'{"text": "say \"hi\"\n"}', '{"text": "[private: secret]"}'),
        ('Zoë says "hi"', r'sent {"text": "Zoë says \"hi\""}', 'sent {"text": "[private: secret]"}'),
        ('a "b"', json.dumps({"body": json.dumps('a "b"')}), r'{"body": "\"[private: secret]\""}'),
        ('Zoë says "hi"', "q=Zo%C3%AB%20says%20%22hi%22", "q=[private: secret]"),
        ("it's \"so\"", repr({"text": "it's \"so\""}), "{'text': '[private: secret]'}"),
        (["Lovelace", "Ada Lovelace"], "Ada Lovelace", "[private: secret]"),
        ({"deep": [{"pin": 4242}]}, "4242 and 14242", "[private: secret] and 1[private: secret]"),
        (7, "7 of 17", "[private: secret] of 17"),
        ("ab", "ab, about", "[private: secret], about"),
        (True, "true or True", "true or True"),
        ("  ", "a  b", "a  b"),
    ],
    ids=["a text", "a line of it", "as JSON writes it", "in JSON beyond ASCII", "in JSON that stands in JSON",
         "in a URL",
         "in Python", "the longest first", "a number deep inside",
         "a short number by itself", "a short word by itself", "a flag tells nothing", "blanks tell nothing"],
)  # fmt: skip
def test_a_private_value_is_hidden(private: Any, said: str, left: str) -> None:
    assert hidden(private, said) == left


@pytest.mark.parametrize(
    "written", [str, json.dumps, repr, quote, quote_plus, lambda key: json.dumps([json.dumps(key)])]
)
def test_a_key_is_hidden_however_it_is_written(written: Callable[[str], str]) -> None:
    key = 'planted/key+with"odd=signs'
    said = redactor({"api_key": key})(f"wrong: {written(key)}!")
    assert "[secret]" in said
    assert "odd" not in said


def test_private_values_and_keys_are_masked_anywhere_in_json() -> None:
    said = {"a": ["Ada Lovelace", {"b": "with qwertz-asdf-99"}], "n": 1}
    assert hidden("Ada Lovelace", said) == {"a": ["[private: secret]", {"b": "with [secret]"}], "n": 1}
