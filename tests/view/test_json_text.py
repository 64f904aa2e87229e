"""JSON that a person wrote, and what is said where it is none."""

from __future__ import annotations

import pytest

from hitl_tui.view.format import NotJson, read_json
from hitl_tui.view.value_lines import json_spans


@pytest.mark.parametrize(
    ("text", "value"),
    [('{"a": [1, 2.5, null]}', {"a": [1, 2.5, None]}), ('"ä"', "ä"), (b'["\xc3\xa4"]', ["ä"]), (" 1 ", 1)],
)
def test_a_text_is_read(text: str | bytes, value: object) -> None:
    assert read_json(text) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "line 1, column 1: expecting value", id="nothing"),
        pytest.param('{"a": 1', "line 1, column 8: expecting ',' delimiter", id="an object without its end"),
        pytest.param('["a\nb"]', "line 1, column 4: invalid control character", id="a line break in a text"),
        pytest.param('[\n"a', "line 2, column 1: unterminated string", id="a text without its end"),
        pytest.param("1 2", "line 1, column 3: extra data", id="two values"),
        pytest.param("[NaN]", "NaN is not a JSON number", id="no number"),
        pytest.param("[-Infinity]", "-Infinity is not a JSON number", id="no finite number"),
        pytest.param("-1e400", "-1e400 is larger than any number here", id="beyond all floats"),
        pytest.param("[" * 200_000, "it is nested too deeply", id="deeper than anything"),
        pytest.param("1" * 5_000, "a number in it has too many digits", id="a number beyond Python's limit"),
        pytest.param(b'["\xff"]', "byte 2 is not UTF-8 text", id="bytes that are no text"),
    ],
)
def test_invalid_json_is_reported_with_its_place(text: str | bytes, said: str) -> None:
    with pytest.raises(NotJson) as error:
        read_json(text)
    assert str(error.value) == said


@pytest.mark.parametrize(
    ("line", "roles"),
    [
        ('  "worker": "ann",', ["plain", "name", "dim", "ok", "dim"]),
        ('  "n": -1.5', ["plain", "name", "dim", "human"]),
        ('  "a: b"', ["plain", "ok"]),
        ("  true,", ["plain", "human", "dim"]),
        ("{", ["value"]),
        ('"' + "x" * 100_000, ["plain"]),
    ],
)
def test_a_line_of_json_is_highlighted_by_its_parts(line: str, roles: list[str]) -> None:
    spans = json_spans(line)
    assert "".join(span.text for span in spans) == line
    assert [span.role for span in spans] == roles
