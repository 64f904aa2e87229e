"""An update is checked against its part of the schema, the value against the whole."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from typing import Annotated, Any, Literal, TypedDict

import pydantic
import pytest

from hitl_tui import Channel, GraphInvalid, HitlError, NodeFailed, SchemaMismatch
from tests.engine.building import bound, one_node, returning
from tests.support.spec import spec

pytestmark = spec("3")

TEXTS = {"type": "array", "items": {"type": "string"}}
NUMBERS = {"type": "array", "items": {"type": "number"}}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
    "additionalProperties": False,
}


def write(channel: Channel, *updates: Any) -> Any:
    """The value of a channel after updates, each by a node of its own."""
    one = bound(channel)
    value = one.default
    for update in updates:
        value = one.reduce(value, one.accept(update))
    return value


FITS = {
    "{} fits anything": ({}, "overwrite", [1, "a", None], None),
    "overwrite: the whole schema": ({"type": "string"}, "overwrite", ["a", "b"], "b"),
    "overwrite: null where allowed": ({"type": ["string", "null"]}, "overwrite", ["a", None], None),
    "sum: the whole schema": ({"type": "number"}, "sum", [1, 2.5], 3.5),
    "append: items": (TEXTS, "append", ["a", "b"], ["a", "b"]),
    "last_n: items": (TEXTS, "last_n(1)", ["a", "b"], ["b"]),
    "extend: each member against items": (TEXTS, "extend", [["a"], [], ["b"]], ["a", "b"]),
    "set_union: an item against items": (TEXTS, "set_union", ["a", "b", "a"], ["a", "b"]),
    "set_union: each member against items": (TEXTS, "set_union", [["a", "b"]], ["a", "b"]),
    "merge: the property, then the whole": (PERSON, "merge", [{"name": "A"}, {"age": 3}], ...),
    "1.0 is an integer of JSON Schema": ({"type": "integer"}, "overwrite", [1.0], 1.0),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "reducer", "updates", "value"), FITS.values(), ids=FITS)
def test_fits(schema: dict[str, Any], reducer: str, updates: list[Any], value: Any) -> None:
    found = write(Channel(schema=schema, reducer=reducer), *updates)
    assert found == ({"name": "A", "age": 3} if value is ... else value)


TREE = {
    "type": "array",
    "items": {"type": "object", "properties": {"name": {"type": "string"}, "parts": {"$ref": "#"}}},
}
INTEGER = {"type": "integer"}
DRAFT_4 = "http://json-schema.org/draft-04/schema#"
BELOW_5 = {"type": "integer", "maximum": 5, "exclusiveMaximum": True}
PARTS: dict[str, tuple[dict[str, Any], str, Any, Any]] = {
    "a list of trees": (TREE, "append", {"name": "a", "parts": [{"name": "b"}]}, {"parts": [{"name": 1}]}),
    "definitions under another name": (
        {"items": {"$ref": "#/parts/x"}, "parts": {"x": INTEGER}}, "append", 1, "a",
    ),
    "one property like another": (
        {"properties": {"a/b %": INTEGER, "c": {"$ref": "#/properties/a~1b%20%25"}}},
        "merge", {"c": 1, "a/b %": 2}, {"c": "x"},
    ),
    "an anchor": (
        {"items": {"$ref": "#n"}, "$defs": {"x": {"$anchor": "n", **INTEGER}}}, "append", 1, "a",
    ),
    "the schema's own address": (
        {"$id": "https://a.b/c", "items": {"$ref": "https://a.b/c#/$defs/x"}, "$defs": {"x": INTEGER}},
        "append", 1, "a",
    ),
    "an address of its own without a host": (
        {"$id": "c.json", "items": {"$ref": "c.json#/$defs/x"}, "$defs": {"x": INTEGER}},
        "extend", [1], ["a"],
    ),
    "itself, by a dynamic reference": (
        {"$dynamicAnchor": "n", "type": "array", "items": {"anyOf": [INTEGER, {"$dynamicRef": "#n"}]}},
        "append", [1, [2]], "a",
    ),
    "an older dialect": ({"$schema": DRAFT_4, "items": BELOW_5}, "append", 4, 5),
    "definitions of the part's own": (
        {"items": {"$ref": "#/items/$defs/x", "$defs": {"x": INTEGER}}, "$defs": {"x": {"type": "string"}}},
        "append", 1, "a",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "reducer", "good", "bad"), PARTS.values(), ids=PARTS)
def test_a_part_of_a_schema_refers_to_what_it_refers_to_in_the_whole(
    schema: dict[str, Any], reducer: str, good: Any, bad: Any
) -> None:
    channel = Channel(schema=schema, reducer=reducer)
    write(channel, good)
    one = bound(channel)
    with pytest.raises(SchemaMismatch, match=r"see the rule .+ in the channel's schema"):
        one.accept(bad)


def test_items_applies_after_the_prefix_items() -> None:
    channel = Channel(
        schema={"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, reducer="append"
    )
    assert write(channel, "a", 1, 2) == ["a", 1, 2]
    for updates in ([1], ["a", "b"]):
        with pytest.raises(SchemaMismatch):
            write(channel, *updates)


REFUSED = {
    "overwrite: another type": ({"type": "string"}, "overwrite", 1, "'c'"),
    "overwrite: null": ({"type": "string"}, "overwrite", None, "'c'"),
    "overwrite: deep inside": (
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}},
        "overwrite",
        {"a": [1, "x"]},
        r"at a\[1\]",
    ),
    "overwrite: not one of the enum": ({"enum": ["approved", "revise"]}, "overwrite", "maybe", "maybe"),
    "sum: the update against the whole schema": ({"type": "number", "minimum": 0}, "sum", -1, "minimum"),
    "sum: the value against the whole schema": ({"type": "number", "maximum": 5}, "sum", 5, "maximum"),
    "min: the value against the whole schema": ({"type": "number", "minimum": 3}, "min", 4, "minimum"),
    "append: an element against items": (TEXTS, "append", 1, "expected text"),
    "append: the value against maxItems": ({**TEXTS, "maxItems": 0}, "append", "a", "more than 0|maxItems"),
    "append: the value against uniqueItems": ({"uniqueItems": True}, "append", "a", "unique"),
    "append: items that are never valid": (
        {"type": "array", "items": False},
        "append",
        1,
        "items|False|false",
    ),
    "append: a schema that no list fits": ({"type": "string"}, "append", "a", "expected text"),
    "last_n: an element against items": (TEXTS, "last_n(2)", 1, "expected text"),
    "extend: one bad member": (TEXTS, "extend", ["a", 1], "expected text"),
    "set_union: one bad member": (TEXTS, "set_union", ["a", 1], "expected text"),
    "set_union: an item": (TEXTS, "set_union", 1, "expected text"),
    "merge: a property": (PERSON, "merge", {"name": 1}, "at name: expected text"),
    "merge: a property the whole schema forbids": (PERSON, "merge", {"name": "A", "x": 1}, "x"),
    "merge: the value lacks what is required": (PERSON, "merge", {"age": 1}, "name"),
    "merge_deep: the value": (PERSON, "merge_deep", {"name": {"first": "A"}}, "string"),
}


@pytest.mark.filterwarnings("ignore:channel 'c'. m")
@pytest.mark.parametrize(("schema", "reducer", "update", "match"), REFUSED.values(), ids=REFUSED)
def test_refused(schema: dict[str, Any], reducer: str, update: Any, match: str) -> None:
    channel = Channel(schema=schema, reducer=reducer)
    values = [update, update] if reducer == "sum" or "uniqueItems" in schema else [update]
    with pytest.raises(SchemaMismatch, match=match):
        write(channel, *values)


BOOLS = {
    "number": ({"type": "number"}, "overwrite", True),
    "integer": ({"type": "integer"}, "overwrite", False),
    "int": (int, "overwrite", True),
    "float": (float, "overwrite", True),
    "an element": (NUMBERS, "append", True),
    "a member": (NUMBERS, "extend", [1, True]),
    "enum of numbers": ({"enum": [0, 1]}, "overwrite", True),
}


@pytest.mark.parametrize(("schema", "reducer", "update"), BOOLS.values(), ids=BOOLS)
def test_a_bool_is_never_a_number(schema: Any, reducer: str, update: Any) -> None:
    with pytest.raises(SchemaMismatch):
        write(Channel(schema=schema, reducer=reducer), update)


@pytest.mark.parametrize(
    ("reducer", "schema", "default", "update"),
    [
        ("sum", {"type": "number", "minimum": 0}, 10, -1),
        ("min", {"type": "number", "maximum": 10}, 5, 99),
        ("max", {"type": "number", "minimum": 0}, 5, -1),
    ],
    ids=["sum", "min", "max"],
)
def test_an_update_that_does_not_fit_is_refused_though_the_value_after_it_would_fit(
    reducer: str, schema: Any, default: Any, update: Any
) -> None:
    channel = bound(Channel(default, schema=schema, reducer=reducer))
    with pytest.raises(SchemaMismatch, match="imum"):
        channel.accept(update)
    graph = one_node({"c": Channel(default, schema=schema, reducer=reducer)}, returning({"c": update}))
    with pytest.raises(NodeFailed, match="channel 'c'"):
        graph.invoke()


@pytest.mark.parametrize("reducer", ["append", "last_n(5)"])
def test_a_list_appended_where_its_members_belong_suggests_extend(reducer: str) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        write(Channel(schema=TEXTS, reducer=reducer), ["a", "b"])
    assert "extend" in caught.value.hint


@pytest.mark.parametrize("update", [["a", 1], [], 1], ids=repr)
def test_extend_is_not_suggested_where_it_would_not_help(update: Any) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        write(Channel(schema=TEXTS, reducer="append"), update)
    assert "extend" not in caught.value.hint


def test_a_list_of_lists_takes_a_list_as_one_element() -> None:
    assert write(Channel(schema={"items": TEXTS}, reducer="append"), ["a"], []) == [["a"], []]


class Severity(enum.Enum):
    LOW = "low"


@dataclasses.dataclass
class Finding:
    path: str
    line: int = 0


class Note(TypedDict):
    text: str


class Person(pydantic.BaseModel):
    name: str
    age: int


class Step(pydantic.BaseModel):
    do: str


class Plan(pydantic.BaseModel):
    steps: list[Step]


TYPES: dict[str, tuple[Any, Any, Any]] = {
    "str": (str, "a", 1),
    "int": (int, 1, "a"),
    "int takes no fraction": (int, 2, 1.5),
    "float": (float, 1.5, "a"),
    "float takes an int": (float, 1, None),
    "bool": (bool, True, 1),
    "list[str]": (list[str], ["a"], [1]),
    "dict[str, int]": (dict[str, int], {"a": 1}, {"a": "x"}),
    "str | None": (str | None, None, 1),
    "Literal": (Literal["a", "b"], "b", "c"),
    "an enum": (Severity, Severity.LOW, "high"),
    "a dataclass": (Finding, Finding("a", 1), {"line": 1}),
    "a TypedDict": (Note, {"text": "a"}, {"text": 1}),
    "a list of dataclasses": (list[Finding], [Finding("a")], [{"path": 1}]),
    "a pydantic model": (Plan, Plan(steps=[Step(do="x")]), {"steps": [{"do": 1}]}),
    "a list of pydantic models": (list[Plan], [Plan(steps=[])], [{"steps": 1}]),
    "a pydantic model or null": (Plan | None, None, {"steps": 1}),
}


@pytest.mark.parametrize(("given", "good", "bad"), TYPES.values(), ids=TYPES)
def test_a_python_type_or_model_becomes_a_schema(given: Any, good: Any, bad: Any) -> None:
    channel = Channel(schema=given)
    assert isinstance(bound(channel).json_schema, dict)
    write(channel, good)
    with pytest.raises(SchemaMismatch):
        write(channel, bad)


class Named(pydantic.BaseModel):
    first: int = pydantic.Field(alias="firstName")


class Dumped(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(serialize_by_alias=True)
    first: int = pydantic.Field(alias="firstName")


class Renamed(pydantic.BaseModel):
    first: int = pydantic.Field(1, serialization_alias="1st", validation_alias="one")


@pytest.mark.parametrize(
    ("model", "held"),
    [
        (Named(firstName=1), {"first": 1}),
        (Dumped(firstName=1), {"firstName": 1}),
        (Renamed(one=1), {"first": 1}),
    ],
    ids=["an alias", "an alias that is written", "two of them"],
)
def test_a_model_fits_the_schema_made_from_it_by_the_names_that_it_is_held_with(
    model: pydantic.BaseModel, held: Any
) -> None:
    kind: Any = type(model)
    assert write(Channel(schema=kind), model) == held
    assert write(Channel(schema=list[kind], reducer="append"), model, held) == [held, held]
    with pytest.raises(SchemaMismatch):
        write(Channel(schema=kind), dict.fromkeys(held, "x"))


@pytest.mark.parametrize(
    ("given", "good", "bad"),
    [
        (pydantic.PositiveInt, 1, 0),
        (Annotated[str, pydantic.Field(max_length=1)], "a", "ab"),
        (list[Annotated[str, pydantic.StringConstraints(pattern="^a")]], ["ab"], ["b"]),
        (dict[str, pydantic.PositiveInt] | None, {"a": 1}, {"a": 0}),
    ],
    ids=["a type of pydantic's", "a field", "inside a list", "inside alternatives"],
)
def test_pydantics_constraints_are_not_left_out(given: Any, good: Any, bad: Any) -> None:
    write(Channel(schema=given), good)
    with pytest.raises(SchemaMismatch):
        write(Channel(schema=given), bad)


@pytest.mark.parametrize("reducer", ["append", "extend"])
@pytest.mark.parametrize("given", [list[Plan], list[Finding]], ids=["models", "dataclasses"])
def test_elements_are_checked_against_a_model_too(given: Any, reducer: str) -> None:
    good: Any = Plan(steps=[]) if given == list[Plan] else Finding("a")
    updates = {"append": (good, {"x": 1}), "extend": ([good], [{"x": 1}])}[reducer]
    channel = Channel(schema=given, reducer=reducer)
    assert len(write(channel, updates[0])) == 1
    with pytest.raises(SchemaMismatch):
        write(channel, updates[1])


@pytest.mark.parametrize(
    "schema",
    [{"type": "text"}, {"type": "array", "items": 3}, 5],
    ids=["unknown type", "items", "5"],
)
def test_an_invalid_schema_is_refused_when_built(schema: Any) -> None:
    with pytest.raises(GraphInvalid, match="channel 'c'"):
        bound(Channel(schema=schema))


def test_a_class_without_a_schema_is_reported_in_one_line() -> None:
    with pytest.raises(GraphInvalid, match="no schema can be made from <class ") as refused:
        bound(Channel(schema=GraphInvalid))
    assert "\n" not in refused.value.message


def test_a_mismatch_of_a_node_names_node_channel_path_and_rule() -> None:
    runner = one_node({"c": Channel(schema=PERSON)}, returning({"c": {"name": "A", "age": "old"}}))
    with pytest.raises(NodeFailed) as caught:
        runner.invoke()
    assert "'n1'" in caught.value.message
    assert "channel 'c' at age" in caught.value.message
    assert "integer" in caught.value.message
    assert "properties/age/type" in caught.value.hint


def test_a_long_value_does_not_fill_the_error() -> None:
    with pytest.raises(SchemaMismatch) as caught:
        write(Channel(schema={"type": "object"}), "x" * 10_000)
    assert len(str(caught.value)) < 500


def test_a_result_of_a_custom_reducer_must_pass_the_whole_schema() -> None:
    channel = Channel("", schema={"type": "string"}, reducer=lambda old, new: len(new))
    with pytest.raises(SchemaMismatch):
        write(channel, "abc")


def test_an_update_of_a_custom_reducer_need_not_fit_the_schema() -> None:
    channel = Channel(0, schema={"type": "integer"}, reducer=lambda old, new: old + len(new))
    assert write(channel, "abc", "d") == 4


@pytest.mark.parametrize(
    "channel",
    [
        Channel(schema={"type": "integer"}, visibility="private"),
        Channel(schema={"type": "string"}, visibility="private", reducer=lambda old, new: [new]),
        Channel(0, schema={"properties": {"x": {"type": "integer"}}}, visibility="private"),
        Channel(schema={"enum": ["a"]}, visibility="private"),
        Channel(schema={"const": "a"}, visibility="private"),
        Channel(schema={"items": {"maxLength": 1}}, reducer="append", visibility="private"),
        Channel(reducer="sum", visibility="private"),
        Channel(reducer='by_type({"a":"append"})', visibility="private"),
        Channel(reducer=lambda old, new: {}[new], visibility="private"),
    ],
    ids=[
        "type",
        "custom result",
        "property",
        "enum",
        "constant",
        "items",
        "sum",
        "by_type",
        "custom reducer raises",
    ],
)
@pytest.mark.parametrize("update", ["hunter2", {"x": "hunter2", "type": "hunter2"}], ids=["text", "dict"])
def test_errors_never_quote_a_private_value(channel: Channel, update: Any) -> None:
    events: list[Any] = []
    runner = one_node({"secret": channel}, returning({"secret": update}))
    with contextlib.suppress(HitlError):
        runner.invoke(on_event=events.append)
    assert "secret" in repr(events)
    assert "hunter2" not in repr(events)


MESSAGES = {
    "a type": ({"type": "integer"}, "overwrite", "x", "", 'not of type "integer"', '"x"', "of that type"),
    "text": (str, "overwrite", 3, "", "expected text", "found a whole number", "give a text value"),
    "a key inside": (
        PERSON,
        "overwrite",
        {"name": "A", "age": "x"},
        " at age",
        "integer",
        '"x"',
        "of that type",
    ),
    "a key that is missing": (PERSON, "overwrite", {"age": 1}, "", '"name" is a required', "", "add the key"),
    "a key too much": (
        PERSON,
        "overwrite",
        {"name": "A", "x": 1},
        "",
        "Additional",
        "'x'",
        "leave the key out",
    ),
    "an enum": ({"enum": ["a", "b"]}, "overwrite", "c", "", '"a" or "b"', '"c"', "one of those"),
    "a bound": ({"type": "number", "maximum": 5}, "sum", 9, "", "maximum of 5", "9", "a smaller number"),
    "an element": (NUMBERS, "append", "x", "", '"number"', '"x"', "of that type"),
    "a member by its place": (NUMBERS, "extend", [1, "x"], " at [1]", '"number"', '"x"', "of that type"),
    "text among members": (TEXTS, "set_union", ["a", None], " at [1]", "expected text", "null", "a text"),
    "inside a member": (list[Literal["a"]], "extend", ["a", "b"], " at [1]", '"a"', '"b"', "give"),
    "a property of merge": (PERSON, "merge", {"age": 1.5}, " at age", '"integer"', "1.5", "of that type"),
    "a constant": ({"const": "yes"}, "overwrite", True, "", '"yes" was expected', "true", "that value"),
    "too many": ({"type": "array", "maxItems": 0}, "append", 1, "", "more than 0", "[1]", "last_n(N)"),
}


@pytest.mark.parametrize("case", MESSAGES.values(), ids=MESSAGES)
def test_a_message_names_channel_path_expected_found_and_a_fix(case: tuple[Any, ...]) -> None:
    schema, reducer, update, path, expected, found, fix = case
    with pytest.raises(SchemaMismatch) as caught:
        write(Channel(schema=schema, reducer=reducer), update)
    assert caught.value.message.startswith(f"channel 'c'{path}: ")
    assert expected in caught.value.message
    assert found in caught.value.message
    assert fix in caught.value.hint


ALTERNATIVES: dict[str, tuple[Any, Any, str]] = {
    "a number or null": (int | None, "x", '"x" is not of type "integer" or "null"'),
    "a text or a list of texts": (str | list[str], 5, '5 is not of type "string" or "array"'),
    "a number or null inside": (list[int | None], ["x"], 'at [0]: "x" is not of type "integer" or "null"'),
    "of the right type, but wrong inside": (int | list[int], ["x"], 'at [0]: "x" is not of type "integer"'),
    "an optional model": (Person | None, {"name": "A", "age": "x"}, 'at age: "x" is not of type "integer"'),
    "deep inside of optional ones": (
        dict[str, list[Person | None] | None],
        {"team": [None, {"name": 3, "age": 1}]},
        'at team[1].name: 3 is not of type "string"',
    ),
    "two of the right type": (list[int] | list[bool], ["x"], "is not valid under any of the schemas"),
}


@pytest.mark.parametrize(("schema", "value", "message"), ALTERNATIVES.values(), ids=ALTERNATIVES)
def test_of_alternatives_the_message_names_each_type_that_was_expected(
    schema: Any, value: Any, message: str
) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        write(Channel(schema=schema), value)
    assert message in caught.value.message


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/s.json", "file:///etc/hostname"])
def test_a_schema_reaches_into_no_network_and_no_files(address: str) -> None:
    with pytest.raises(GraphInvalid, match="a schema must hold all it refers to"):
        bound(Channel(schema={"$ref": address}))
