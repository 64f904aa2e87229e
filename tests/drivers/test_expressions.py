"""The language of expressions: what it allows, what it may read, and where an error is."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui.drivers.expressions import (
    Expression,
    ExpressionInvalid,
    ExpressionUndefined,
    check_expression,
    state_names,
)
from hitl_tui.engine.state.channel import ChannelInfo
from hitl_tui.engine.state.frozen import freeze


def info(name: str, visibility: Any = "public") -> ChannelInfo:
    return ChannelInfo(name, "any", "overwrite", visibility, "", {})


CHANNELS = [info("n"), info("limit"), info("notes"), info("key", "private")]


@pytest.mark.parametrize(
    ("text", "column", "why"),
    [
        ("n >", 4, "invalid syntax"),
        ("n = 2", 3, "write == to compare"),
        ("n && limit", 4, "write and"),
        ("(n) | limit", 5, "write or"),
        ("!n", 1, "write not"),
        ("'ä' < nn", 7, "there is no channel 'nn'; did you mean 'n'?"),
        ("n and key", 7, "the channel 'key' is private"),
        ("key[0] == 'x'", 1, "the channel 'key' is private"),
        ("[key for n in notes]", 2, "the channel 'key' is private"),
        ("open('x')", 1, "there is not a function 'open'"),
        ("n.bit_length()", 1, "only plain functions can be called"),
        ("n ** n", 3, "more than an expression may do"),
        ("1 << n", 3, "more than an expression may do"),
        ("lambda: n", 1, "more than an expression may do"),
        ("(n := 3)", 2, "more than an expression may do"),
        ("f'{n:99999}'", 1, "more than an expression may do"),
        ("__import__('os')", 1, "there is not a function '__import__'"),
        ("n\0", 1, "can't be seen"),
        ("(" * 300, 1, ""),
        ("n + " * 200 + "n", 1, "longer than 500 characters"),
        ("", 1, ""),
    ],
)
def test_an_invalid_expression_is_reported_with_its_place(text: str, column: int, why: str) -> None:
    with pytest.raises(ExpressionInvalid) as caught:
        check_expression(text, CHANNELS)
    assert why in caught.value.why
    if why:
        assert caught.value.column == column
    assert caught.value.message.endswith("^")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n > 2 and not notes", False),
        ("len(notes) == 2", True),
        ("'now 1' in notes", True),
        ("notes[-1] == 'now 2'", True),
        ("person.age >= 18", True),
        ("person['age'] in [20, 21]", True),
        ("any('2' in note for note in notes)", True),
        ("lower(person.name) == 'ann' if n else False", True),
        ("nothing is None", True),
        ("max(1, n) % 2 == 1", True),
        ("nothing==null", True),
        ("n != null and (n > 2) == true", True),
        ("[note for note in notes if note == false]", False),
    ],
)
def test_what_an_expression_can_say(text: str, expected: bool) -> None:
    values = {"n": 3, "notes": ["now 1", "now 2"], "person": {"age": 20, "name": "Ann"}, "nothing": None}
    check_expression(text, [info(name) for name in values])
    assert Expression(text).holds(values) is expected


def test_a_channel_takes_precedence_over_a_keyword_of_its_name() -> None:
    assert Expression("null == 3").holds({"null": 3})
    private = [info("true", "private")]
    with pytest.raises(ExpressionInvalid, match="private"):
        check_expression("true", private)


@pytest.mark.parametrize(
    "text",
    [
        "n.real > 0",
        "notes.__class__",
        "person.items",
        "'%999999999d' % n",
        "'x' * 10000000",
        "n / 0",
        "person.no",
    ],
)
def test_an_expression_keeps_to_values_and_to_bounds(text: str) -> None:
    with pytest.raises(ExpressionUndefined):
        Expression(text).holds({"n": 3, "notes": [], "person": {}})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("facts[-1].source", "b.csv"),
        ("len(facts) + n", 5),
        ("[fact.source for fact in facts]", ["a.csv", "b.csv"]),
        ("facts[0]", {"source": "a.csv"}),
        ("nothing", None),
        ("null", None),
        ("n > 2", True),
    ],
)
def test_an_expression_gives_a_value(text: str, expected: Any) -> None:
    values = freeze({"n": 3, "nothing": None, "facts": [{"source": "a.csv"}, {"source": "b.csv"}]})
    value = Expression(text).value(values)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("text", "column", "why"),
    [
        ("n and facts[-1].source", 12, "there is no item -1 among 0"),
        ("person.ago > 3", 7, "there is no part 'ago'"),
        ("person['no']", 7, "there is no part 'no'"),
        ("n.real", 2, "a whole number has no part 'real'"),
        ("'ä' == 'ä' and nothing > 2", 24, "null can't be compared with a whole number"),
        ("1 + n / 0", 7, "it divides by 0"),
        ("facts['a']", 6, "items go by number, not by text"),
        ("n[0]", 2, "a whole number has no items"),
        ("len(n)", 1, "TypeError: object of type 'int' has no len()"),
    ],
)
def test_an_expression_that_values_can_not_answer_is_reported_with_its_place(
    text: str, column: int, why: str
) -> None:
    values = {"n": 3, "nothing": None, "facts": [], "person": {"age": 20}}
    expression = Expression(text)
    with pytest.raises(ExpressionUndefined) as caught:
        expression.value(values)
    assert caught.value.message == f"{why}, at column {column}"
    # It is as it was for the next values.
    with pytest.raises(ExpressionUndefined) as again:
        expression.value(values)
    assert again.value.column == column


def test_the_names_of_an_expression_are_those_from_outside() -> None:
    assert Expression("any(note == n for note in notes) and null != len(notes)").names == {
        "n",
        "notes",
        "null",
    }


def test_the_channels_read_through_the_state_are_named() -> None:
    assert state_names("state.amount < 5 and state['kind'] == 'x' and other.state == 1") == {"amount", "kind"}
