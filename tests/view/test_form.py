"""Forms drawn from the schema of an answer, without a screen: fields, texts, values, problems."""

from __future__ import annotations

import enum
from typing import Any, Literal

import pydantic
import pytest

from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.state.schema import as_schema
from hitl_tui.view.card import actions, edit_form
from hitl_tui.view.form import Field, Form, form_of, form_of_value, read_form


def form(properties: dict[str, Any], *required: str, **more: Any) -> Form:
    made = form_of({"type": "object", "properties": properties, "required": list(required), **more})
    assert made is not None
    return made


def one(schema: dict[str, Any]) -> Field:
    return form({"x": schema}).fields[0]


def read(made: Form, **texts: str) -> tuple[Any, dict[str, str]]:
    reading = read_form(made, {tuple(name.split("__")): text for name, text in texts.items()})
    return reading.value, {".".join(path): problem for path, problem in reading.problems.items()}


COLOURS = {"enum": ["red", "green"]}


@pytest.mark.parametrize(
    ("schema", "kind", "hint"),
    [
        ({"type": "string"}, "text", ""),
        ({"type": "string", "minLength": 2, "maxLength": 9}, "text", "2 to 9 characters"),
        ({"type": "string", "pattern": "^a"}, "text", "like ^a"),
        ({"type": "number", "minimum": 0}, "number", "number, at least 0"),
        ({"type": "integer", "minimum": 1, "maximum": 5}, "integer", "whole number, 1 to 5"),
        ({"type": "integer", "exclusiveMinimum": 1, "multipleOf": 2}, "integer",
         "whole number, above 1, a multiple of 2"),
        ({"type": "boolean"}, "yesno", ""),
        (COLOURS, "one", ""),
        ({"type": "integer", "enum": [1, 2]}, "one", ""),
        ({"oneOf": [{"const": "r", "title": "red"}, {"const": "g", "title": "green"}]}, "one", ""),
        ({"type": "array", "items": COLOURS, "minItems": 1}, "many", "any of these, at least 1 of them"),
        ({"type": "array", "items": {"type": "string"}}, "list", "with commas between"),
        ({"type": "string", "format": "date"}, "date", "a date, as 2026-11-30"),
        ({"type": ["integer", "null"]}, "integer", "whole number"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "text", ""),
        ({"type": "object"}, "json", "JSON"),
        ({"type": "array", "items": {"type": "object"}}, "json", "JSON"),
        (
            {"type": "array", "items": {"type": "object", "properties": {"name": {}, "share": {}}}},
            "json",
            'JSON, as [{"name": …, "share": …}]',
        ),
        (
            {"type": "array", "items": {"type": "object", "properties": {name: {} for name in "abcde"}}},
            "json",
            'JSON, as [{"a": …, "b": …, "c": …, "d": …, …}]',
        ),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "json", "JSON"),
        ({}, "json", "JSON"),
    ],
)  # fmt: skip
def test_what_a_property_becomes(schema: dict[str, Any], kind: str, hint: str) -> None:
    assert (one(schema).kind, one(schema).hint) == (kind, hint)


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, " a b ", " a b "),
        ({"type": "number"}, "1.5", 1.5),
        ({"type": "number"}, "3", 3),
        ({"type": "integer"}, " 3 ", 3),
        ({"type": "integer"}, "3.0", 3),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "no", False),
        (COLOURS, "red", "red"),
        (COLOURS, "GREEN", "green"),
        (COLOURS, "2", "green"),
        ({"enum": [3, 4]}, "4", 4),
        ({"oneOf": [{"const": "r", "title": "red"}]}, "red", "r"),
        ({"type": "array", "items": COLOURS}, "red, green", ["red", "green"]),
        ({"type": "array", "items": {"type": "string"}}, "a b,c", ["a b", "c"]),
        ({"type": "array", "items": {"type": "integer"}}, "1, 2", [1, 2]),
        ({"type": "array", "items": {"type": "string"}}, '["a,b"]', ["a,b"]),
        ({"type": "string", "format": "date"}, "2026-11-30", "2026-11-30"),
        ({"type": "object"}, '{"a": [1]}', {"a": [1]}),
    ],
)
def test_what_a_text_becomes(schema: dict[str, Any], text: str, value: Any) -> None:
    assert read(form({"x": schema}), x=text) == ({"x": value}, {})


@pytest.mark.parametrize(
    ("schema", "text", "problem"),
    [
        ({"type": "number"}, "ten", "must be a number"),
        ({"type": "number"}, "nan", "must be a number"),
        ({"type": "integer"}, "1.5", "must be a whole number"),
        ({"type": "integer", "maximum": 5}, "7", "7 is greater than the maximum of 5"),
        ({"type": "boolean"}, "perhaps", "must be yes or no"),
        (COLOURS, "blue", "must be one of: red, green"),
        (COLOURS, "3", "must be one of: red, green"),
        ({"type": "array", "items": COLOURS}, "red, blue", "must be one of: red, green"),
        ({"type": "array", "items": COLOURS, "minItems": 2}, "red", "less than 2 items"),
        ({"type": "string", "minLength": 3}, "ab", "shorter than 3 characters"),
        ({"type": "string", "pattern": "^a+$"}, "b", 'does not match "^a+$"'),
        ({"type": "string", "format": "date"}, "tomorrow", "must be a date, as 2026-11-30"),
        ({"type": "string", "format": "date-time"}, "2026", "must be a date and a time"),
        ({"type": "object"}, "{oops", "is not JSON: line 1, column 2"),
        ({"type": "object"}, "[]", "object"),
    ],
)
def test_what_is_wrong_is_said_at_the_field(schema: dict[str, Any], text: str, problem: str) -> None:
    problems = read(form({"x": schema}), x=text)[1]
    assert list(problems) == ["x"]
    assert problem in problems["x"]


def test_a_required_field_must_be_given_and_another_is_left_out() -> None:
    made = form({"a": {"type": "string"}, "b": {"type": "integer"}}, "a")
    assert [field.required for field in made.fields] == [True, False]
    assert read(made, a="", b="") == ({}, {"a": "is required"})
    assert read(made, a="x", b="") == ({"a": "x"}, {})


def test_fields_show_their_defaults() -> None:
    made = form(
        {
            "a": {"type": "string", "default": "x"},
            "b": {"type": "boolean", "default": False},
            "c": {"type": "array", "items": COLOURS, "default": ["green"]},
            "d": {"type": "number", "default": 0.5},
            "e": {"type": "object", "default": {"k": 1}},
        }
    )
    assert list(made.texts.values()) == ["x", "no", "green", "0.5", '{"k": 1}']
    assert read_form(made, made.texts).value == {
        "a": "x", "b": False, "c": ["green"], "d": 0.5, "e": {"k": 1},
    }  # fmt: skip


def test_nested_objects_are_fields_with_dotted_names() -> None:
    address = {
        "type": "object",
        "properties": {"street": {"type": "string"}, "zip": {"type": "string"}},
        "required": ["street"],
    }
    made = form({"name": {"type": "string"}, "to": address})
    assert [field.label for field in made.fields] == ["name", "to.street", "to.zip"]
    assert not made.fields[1].required
    assert read(made, name="a") == ({"name": "a"}, {})
    assert read(made, to__street="x")[0] == {"to": {"street": "x"}}
    assert '"street" is a required property' in read(made, to__zip="1")[1][""]
    assert form({"to": address}, "to").fields[0].required


def test_rules_about_the_whole_are_checked_when_all_fields_are_right() -> None:
    made = form({"a": {"type": "string"}, "b": {"type": "string"}}, minProperties=2)
    assert list(read(made, a="x")[1]) == [""]
    assert read(made, a="x", b="y") == ({"a": "x", "b": "y"}, {})


def test_a_constant_is_not_asked_for() -> None:
    made = form({"kind": {"const": "mail"}, "to": {"type": "string"}}, "kind", "to")
    assert [field.label for field in made.fields] == ["to"]
    assert read(made, to="a") == ({"kind": "mail", "to": "a"}, {})


def test_a_schema_of_one_value_is_one_field() -> None:
    made = form_of({"type": "integer", "minimum": 1})
    assert made is not None
    assert (made.fields[0].path, made.fields[0].required) == ((), True)
    assert read_form(made, {(): "4"}).value == 4


@pytest.mark.parametrize(
    "schema",
    [None, {}, {"type": "object"}, {"type": "array", "items": {}}, {"anyOf": [{}, {"type": "null"}]}],
)
def test_what_no_form_can_show_has_none(schema: dict[str, Any] | None) -> None:
    assert form_of(schema) is None


class Level(enum.Enum):
    """How much it matters."""

    LOW = "low"
    HIGH = "high"


class Sender(pydantic.BaseModel):
    """Who sends it."""

    name: str
    level: Level = Level.LOW


class Order(pydantic.BaseModel):
    """What a pydantic model becomes."""

    amount: int = pydantic.Field(ge=1, description="how many")
    due: Literal["today", "later"] = "today"
    note: str | None = None
    must: int | None
    sender: Sender


def test_a_pydantic_model_with_references_and_options() -> None:
    made = form_of(as_schema(Order, "answer"))
    assert made is not None
    assert [(field.label, field.kind, field.required, field.text) for field in made.fields] == [
        ("amount", "integer", True, ""),
        ("due", "one", False, "today"),
        ("note", "text", False, ""),
        ("must", "integer", False, ""),
        ("sender.name", "text", True, ""),
        ("sender.level", "one", False, "low"),
    ]
    assert made.fields[0].help == "how many"
    texts = {**made.texts, ("amount",): "2", ("sender", "name"): "bo", ("sender", "level"): "high"}
    reading = read_form(made, texts)
    assert (reading.problems, Order.model_validate(reading.value).sender.level) == ({}, Level.HIGH)
    assert reading.value["must"] is None


def test_references_that_go_in_circles_become_json() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"$ref": "#/$defs/A"}},
    }
    assert form_of(schema).fields[0].kind == "json"  # type: ignore[union-attr]
    tree = {"type": "object", "properties": {"sub": {"$ref": "#"}, "n": {"type": "integer"}}}
    assert len(form_of(tree).fields) < 20  # type: ignore[union-attr]


def test_a_value_without_a_schema_is_edited_by_the_types_of_its_parts() -> None:
    value = {
        "to": "a@b.c",
        "n": 2,
        "urgent": True,
        "tags": ["x"],
        "cc": None,
        "body": "one\ntwo",
        "empty": "",
    }
    made = form_of_value(value)
    assert made is not None
    kinds = ["text", "number", "yesno", "json", "json", "text", "text"]
    assert [field.kind for field in made.fields] == kinds
    assert [field.label for field in made.fields if field.long] == ["body"]
    assert read_form(made, made.texts).value == value
    changed = read_form(made, {**made.texts, ("n",): "3", ("to",): ""})
    assert (changed.value["n"], changed.value["to"], changed.problems) == (3, "", {})


def test_hostile_words_never_reach_a_field() -> None:
    made = form({"x\x1b[2J": {"type": "string", "description": "a\x1b]0;b\x07", "default": "\x1b[31mred"}})
    field = made.fields[0]
    assert "\x1b" not in field.label + field.help + field.text
    assert (field.kind, read_form(made, made.texts).value) == ("json", {"x\x1b[2J": "\x1b[31mred"})


def test_the_arguments_of_a_tool_are_edited_by_the_schema_of_the_tool() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 5}}, "required": ["n"]}
    payload = {"type": "tool_approval", "name": "roll", "args": {"n": 2}, "args_schema": schema}
    request = Request("r", "approve", "a", "inside", 0, "roll?", payload=payload, shape="tool_approval")
    made = edit_form(request, actions(request)[0])
    assert made is not None
    assert (made.fields[0].kind, made.fields[0].text, made.fields[0].hint) == (
        "integer", "2", "whole number, at most 5",
    )  # fmt: skip


ITEMS = {
    "type": "object",
    "required": ["items"],
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["article", "pieces"],
                "properties": {
                    "article": {"type": "string"},
                    "pieces": {"type": "integer", "minimum": 1},
                    "gift": {"type": "boolean"},
                },
            },
        }
    },
}
TWO = [{"article": "tea, green", "pieces": 2, "gift": True}, {"article": "cup", "pieces": 1}]


def test_a_list_of_objects_is_filled_in_with_a_line_each():
    form = form_of(ITEMS)
    assert form is not None
    (field,) = form.fields
    assert (field.kind, field.hint, field.long) == ("rows", "a line each: article, pieces, gift", True)
    assert read_form(form, {("items",): '"tea, green", 2, yes\n\ncup, 1'}).value == {"items": TWO}
    assert read_form(form, {("items",): '[{"article": "cup", "pieces": 1}]'}).value == {"items": TWO[1:]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tea, many", "line 1: pieces must be a whole number"),
        ("tea, 1\ncup, 1, maybe", "line 2: gift must be yes or no"),
        ("tea, 1, yes, red", "line 1 has 4 values, for article, pieces, gift"),
    ],
)
def test_what_is_wrong_with_a_line_is_said_with_its_number(text: str, problem: str):
    form = form_of(ITEMS)
    assert form is not None
    assert read_form(form, {("items",): text}).problems[("items",)] == problem


def test_a_list_of_objects_is_shown_as_lines_and_read_back_as_it_was():
    form = form_of(ITEMS, {"items": TWO})
    assert form is not None
    assert form.fields[0].text == '"tea, green",2,yes\ncup,1,'
    assert read_form(form, form.texts).value == {"items": TWO}


def test_objects_with_parts_of_their_own_stay_json():
    form = form_of(ITEMS, {"items": [{"article": "tea", "pieces": 1, "extra": {}}]})
    assert form is not None
    assert form.fields[0].kind == "json"
