"""The documents of `--json` are those of the published schema: every kind, every field, each explained."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hitl_tui.cli.documents import VERSION
from hitl_tui.cli.main import COMMANDS
from tests.support.commands import OUTPUT_SCHEMA, App

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
    for name, one in OUTPUT_SCHEMA["$defs"].items():
        assert one["description"], name
        for field, shape in one["properties"].items():
            assert shape["description"].endswith("."), f"{name}.{field}"
    versions = [shape["const"] for field, shape in fields(OUTPUT_SCHEMA["$defs"]) if field == "hitl_tui"]
    assert set(versions) == {VERSION}
    listed = {one["$ref"].rpartition("/")[2] for one in OUTPUT_SCHEMA["oneOf"]}
    assert listed == {f"kind_{name}" for name in KINDS} | {f"event_{name}" for name in EVENTS}


@pytest.mark.parametrize("sample", RUNS)
def test_a_run_writes_events_and_a_result(app: App, sample: str) -> None:
    done = app("run", sample, "--json", "--thread", "t", *RUNS[sample])
    *events, result = done.documents
    assert {one["kind"] for one in events} == {"event"}
    assert (result["kind"], result["thread"], result["exit_code"]) == ("result", "t", done.code)
    for command in ("show", "log", "cost", "taint", "agents", "verify", "rollback --dry-run"):
        name, *options = command.split()
        assert app(name, "t", *options, "--json").document["hitl_tui"] == VERSION


def test_every_kind_is_written(review: App, tmp_path: Path) -> None:
    file = str(tmp_path / "r.jsonl")
    commands = [
        "show r", "log r", "threads", "diff r@0 r", "blame r draft", "cost r", "taint r", "agents r",
        "graph review", "fork r@1 b", f"export r {file}", f"import {file} --thread c", "verify r", "anchor r",
        "replay r", "approve r", "update-state b draft=x", "rollback b --dry-run", "themes", "keys",
        "config", "doctor", "show none",
    ]  # fmt: skip
    assert {review(*command.split(), "--json").document["kind"] for command in commands} == KINDS


@pytest.mark.parametrize("name", ["run", "show", "threads"])
def test_the_help_says_where_they_are_described(app: App, name: str) -> None:
    assert "`hitl-tui schema json`" in " ".join(app.expect(0, name, "--help").out.split())


@pytest.mark.parametrize(("which", "title"), [("json", "--json"), ("graph-file", "graph file")])
def test_the_schemas_are_written_by_a_command(app: App, which: str, title: str) -> None:
    schema = json.loads(app.expect(0, "schema", which).out)
    assert title in schema["title"]


def test_commands_that_the_schema_names_are_there() -> None:
    named = {
        word
        for name in KINDS
        for word in re.findall(r"`([a-z][a-z-]*)`", OUTPUT_SCHEMA["$defs"][f"kind_{name}"]["description"])
    }
    assert named - {"--private"} <= set(COMMANDS)
