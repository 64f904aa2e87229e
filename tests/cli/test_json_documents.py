"""The documents of `--json` are those of the published schema: every kind, every field, each explained."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from jsonschema_rs import validator_for

from hitl_tui.cli.documents import VERSION, output_schema, shown, to_json, to_lines
from hitl_tui.cli.main import COMMANDS
from hitl_tui.engine.graph.description import NodeInfo
from hitl_tui.engine.log.events import (
    PRIVATE,
    AppliedUpdate,
    Event,
    KnownOutcome,
    LedgerWritten,
    ModelCalled,
    NodeStarted,
    Progress,
    StepCommitted,
    StepOutcome,
)
from hitl_tui.engine.log.records import Checkpoint, LedgerEntry
from hitl_tui.loading.graphfile.schema import graph_file_schema
from hitl_tui.view.shapes import Document, EventDocument
from tests.support.commands import OUTPUT_SCHEMA, App, check_document

VALIDATOR = validator_for(OUTPUT_SCHEMA)

KINDS = {name.removeprefix("kind_") for name in OUTPUT_SCHEMA["$defs"] if name.startswith("kind_")}
EVENTS = {name.removeprefix("event_") for name in OUTPUT_SCHEMA["$defs"] if name.startswith("event_")}

RUNS = {
    "review": ["--input", "task=Hills"],
    "research": [],
    "desk": [],
    "webpage": [],
    "private": [],
    "booking": ["--input", "city=Lisbon"],
    "assistant": ["--input", "request=Where am I?"],
    "toolcalls": [],
    "order": [],
}


def fields(node: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(node, dict):
        yield from node.get("properties", {}).items()
        for value in node.values():
            yield from fields(value)


def test_every_kind_and_every_field_is_explained() -> None:
    for name, document in OUTPUT_SCHEMA["$defs"].items():
        assert document["description"], name
        for field, shape in document["properties"].items():
            assert shape["description"].endswith("."), f"{name}.{field}"
    versions = [shape["enum"] for field, shape in fields(OUTPUT_SCHEMA["$defs"]) if field == "hitl_tui"]
    assert all(version == [VERSION] for version in versions)
    listed = {document["$ref"].rpartition("/")[2] for document in OUTPUT_SCHEMA["oneOf"]}
    assert listed == {f"kind_{name}" for name in KINDS} | {f"event_{name}" for name in EVENTS}


WRITE = NodeInfo("write", ("*",), ("draft",))
EXAMPLES: dict[Any, Any] = {
    str: "words",
    int: 7,
    float: 0.5,
    bool: True,
    bytes: b"\x01" * 32,
    Any: {"a": [1]},
    NodeInfo: NodeInfo("both", ("*",), ("*",), "parallel", members=(WRITE,)),
}


def example(kind: Any) -> Any:
    """Some value of a type, for texts, numbers and facts alike."""
    if kind in EXAMPLES:
        return EXAMPLES[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return example(arguments[0])
    if origin is Literal:
        return arguments[0]
    if origin in (Union, UnionType):
        return example(arguments[0])
    if origin is tuple:
        return (example(arguments[0]),)
    if origin in (dict, Mapping):
        return {"key": example(arguments[1])}
    if kind is StepOutcome:
        return example(KnownOutcome)
    assert isinstance(kind, type)
    assert issubclass(kind, msgspec.Struct) or is_dataclass(kind)
    hints = get_type_hints(kind, include_extras=True)
    return kind(
        **{name: example(field) for name, field in hints.items() if get_origin(field) is not ClassVar}
    )


@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.__name__)
def test_every_event_is_its_own_document(kind: type) -> None:
    document = json.loads(to_json(shown(EventDocument(thread="t", event=example(kind)))))
    check_document(document)
    assert document["event"] != "other"
    assert f"event_{document['event']}" in OUTPUT_SCHEMA["$defs"]


def test_events_have_names_of_their_own() -> None:
    assert (
        len({kind.__struct_config__.tag for kind in get_args(Event)}) == len(get_args(Event)) == len(EVENTS)
    )


def test_lines_written_together_equal_those_written_one_by_one() -> None:
    values = [{"text": text} for text in ("plain", "é漢", "a\x7fb", "\ud800")] + [{"n": 1 << 80}]
    for batch in (values[:1] * 2, values):
        together = to_lines(batch)
        assert together == "".join(f"{to_json(value)}\n" for value in batch)
        assert together.replace("\n", "").isprintable()
        assert [json.loads(line) for line in together.splitlines()] == batch


@pytest.mark.parametrize("kind", Document.__subclasses__(), ids=lambda kind: kind.__name__)
def test_every_kind_of_document_fits_the_schema_with_any_content(kind: type) -> None:
    document = example(kind)
    whole = json.loads(to_json(shown(document)))
    check_document(whole)
    assert VALIDATOR.is_valid(whole)
    for field in set(whole) - {"made_step", "requests"}:
        assert not VALIDATOR.is_valid({name: value for name, value in whole.items() if name != field}), field
    assert not VALIDATOR.is_valid({**whole, "more_of_it": 1})


_OPTIONAL = {"kind_result": {"made_step"}, "kind_threads": {"requests"}, "node": {"inside"}}


def test_no_object_of_the_schema_takes_what_it_does_not_name() -> None:
    for name, shape in OUTPUT_SCHEMA["$defs"].items():
        assert shape["additionalProperties"] is False, name
        optional = set(shape["properties"]) - set(shape["required"])
        assert optional <= _OPTIONAL.get(name, set()) or name == "inside"


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"status": "sleeping"}, "status"),
        ({"step": "4"}, "step"),
        ({"hitl_tui": 2}, "hitl_tui"),
        ({"exit_code": None}, "exit_code"),
        ({"pending": [{"id": "q1"}]}, "pending"),
    ],
)
def test_an_invalid_result_is_refused(app: App, change: dict[str, Any], wrong: str) -> None:
    whole = app.expect(3, "run", "booking", "--json", "--input", "city=Lisbon").document
    assert VALIDATOR.is_valid(whole)
    assert not VALIDATOR.is_valid(whole | change), wrong


def test_units_are_shown_as_people_and_programs_read_them() -> None:
    started = shown(EventDocument(thread="t", event=NodeStarted("write", 3, 1, 1_700_000_000_123_456)))
    assert started["at"] == "2023-11-14T22:13:20.123456Z"
    called = ModelCalled("write", "worker", "m", 1, 2, None, 1_500_000)
    assert shown(EventDocument(thread="t", event=called))["duration"] == 1.5
    assert shown(EventDocument(thread="t", event=called))["path"] is None
    entry = LedgerEntry("t", 1, "answer", 3, None, None, None, b"\xab" * 32, None, 0, b"", b"")
    written = EventDocument(thread="t", event=LedgerWritten(entry))
    assert shown(written)["seen"] == f"sha256:{'ab' * 32}"
    assert shown(written, secret=True)["seen"] == "[private]"


def test_private_values_are_named_but_not_shown() -> None:
    update = AppliedUpdate(
        "token", "reduce", "overwrite", "private", "node", PRIVATE, PRIVATE, PRIVATE, changed=True
    )
    outcome = KnownOutcome((update,), example(Progress))
    step = shown(EventDocument(thread="t", event=StepCommitted(example(Checkpoint), outcome)))
    document = json.loads(to_json(step))["updates"][0]
    assert {document[field] for field in ("before", "update", "after", "changed")} == {"[private]"}


@pytest.mark.parametrize("sample", RUNS)
def test_a_run_writes_events_and_a_result(app: App, sample: str) -> None:
    done = app("run", sample, "--json", "--thread", "t", *RUNS[sample])
    *events, result = done.documents
    assert {one["kind"] for one in events} == {"event"}
    assert (result["kind"], result["thread"], result["exit_code"]) == ("result", "t", done.code)
    for command in ("show", "log", "cost", "taint", "agents", "verify", "rollback --dry-run"):
        name, *options = command.split()
        assert app(name, "t", *options, "--json").document["hitl_tui"] == VERSION


@pytest.mark.slow
def test_every_kind_is_written(review: App, tmp_path: Path) -> None:
    file = str(tmp_path / "r.jsonl")
    commands = [
        "show r", "log r", "threads", "diff r@0 r", "blame r draft", "cost r", "find r a",
        "when r draft", "values r draft", "taint r", "agents r",
        "graph review", "fork r@1 b --dry-run",
        "fork r@1 b", f"export r {file}", f"import {file} --thread c", "verify r", "anchor r",
        f"export r {file}.html --format html",
        "replay r", "test r@1", "artifacts r", "read r", "decide r --answer revise --dry-run", "claim r",
        "allow r --list", "copy r card", "graphs", "stats",
        "watch --once", "decisions", "approve r", "update-state b draft=x", "rollback b --dry-run", "themes",
        "keys", "config", "doctor", "show none", "size r", "delete c --yes --force", "deleted", "vacuum",
    ]  # fmt: skip
    # Those of workers take a server, see tests/team/workers; items a graph of LangGraph, see its test_items;
    # reveal a private channel, see test_taint; reread a sampled request, see test_reread.
    assert {review(*command.split(), "--json").document["kind"] for command in commands} == KINDS - {
        "workers",
        "items",
        "reveal",
        "reread",
    }


@pytest.mark.parametrize("name", ["run", "show", "threads"])
def test_the_help_says_where_they_are_described(app: App, name: str) -> None:
    assert "`hitl-tui schema json`" in " ".join(app.expect(0, name, "--help").out.split())


@pytest.mark.parametrize(("which", "title"), [("json", "--json"), ("graph-file", "graph file")])
def test_the_schemas_are_written_by_a_command(app: App, which: str, title: str) -> None:
    schema = json.loads(app.expect(0, "schema", which).out)
    assert title in schema["title"]
    assert schema == (output_schema() if which == "json" else graph_file_schema())


def test_commands_that_the_schema_names_are_there() -> None:
    named = {
        word
        for name in KINDS
        for word in re.findall(r"`([a-z][a-z-]*)`", OUTPUT_SCHEMA["$defs"][f"kind_{name}"]["description"])
    }
    assert named - {"--private"} <= set(COMMANDS)
