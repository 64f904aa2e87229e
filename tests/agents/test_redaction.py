"""What a file never gets to hold: the values of private channels, however a text quotes them."""

from __future__ import annotations

from typing import Any

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
        (["Lovelace", "Ada Lovelace"], "Ada Lovelace", "[private: secret]"),
        ({"deep": [{"pin": 4242}]}, "4242 and 14242", "[private: secret] and 1[private: secret]"),
        (7, "7 of 17", "[private: secret] of 17"),
        ("ab", "ab, about", "[private: secret], about"),
        (True, "true or True", "true or True"),
        ("  ", "a  b", "a  b"),
    ],
    ids=["a text", "a line of it", "as JSON writes it", "the longest first", "a number deep inside",
         "a short number by itself", "a short word by itself", "a flag tells nothing", "blanks tell nothing"],
)  # fmt: skip
def test_a_private_value_is_hidden(private: Any, said: str, left: str) -> None:
    assert hidden(private, said) == left


def test_it_is_hidden_wherever_it_stands_in_json_and_so_is_a_key() -> None:
    said = {"a": ["Ada Lovelace", {"b": "with qwertz-asdf-99"}], "n": 1}
    assert hidden("Ada Lovelace", said) == {"a": ["[private: secret]", {"b": "with [secret]"}], "n": 1}
