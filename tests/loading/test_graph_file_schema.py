from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest
import tomli

from hitl_tui.loading.graphfile.schema import SCHEMA_FILE, schema_text
from hitl_tui.loading.starts import STARTS
from tests.support.places import ROOT

FILES = [*ROOT.glob("sample_graphs/*.toml"), *ROOT.glob("hitl_tui/loading/templates/*.toml")]


def test_the_published_schema_is_up_to_date() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(), (
        "run: python -m tests.tools.graph_file_schema"
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_our_files_fit_it_and_name_it(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    validator = jsonschema_rs.validator_for(json.loads(schema_text()))
    assert [error.message for error in validator.iter_errors(tomli.loads(text))] == []
    first = text.partition("\n")[0]
    schema = first.removeprefix("#:schema ")
    assert schema != first
    if file.parent.name == "sample_graphs":
        assert (file.parent / schema).resolve() == SCHEMA_FILE


@pytest.mark.parametrize(
    "text",
    [
        "[graph]\nnmae = 'x'",
        "[nodes.a]\nreads = []",
        "[nodes.a]\nagent = 'a'\nfunction = 'b'",
        "[[routes]]\nfrom = 'a'\nmap = { x = 'END' }",
        "[[edges]]\nfrom = 'a'",
        "[channels.a]\nvisibility = 'hidden'",
        "[limits]\nmax_iterations = 0",
        "[agents.a]\napi_key = 'x'",
    ],
)
def test_mistakes_do_not_fit_it(text: str) -> None:
    assert not jsonschema_rs.validator_for(json.loads(schema_text())).is_valid(tomli.loads(text))


def test_no_table_takes_a_key_that_it_does_not_name() -> None:
    for name, table in json.loads(schema_text())["$defs"].items():
        assert table["additionalProperties"] is False, name


def test_everything_in_it_is_explained() -> None:
    tables = json.loads(schema_text())["$defs"]
    obvious = {"pattern", "channel", "temperature", "max_tokens", "max_cost_usd", "text_match"}
    for name, table in tables.items():
        assert table["description"]
        for key, field in table["properties"].items():
            if name != "GraphFile" and key not in obvious:
                assert field.get("description"), f"{name}.{key}"


def test_every_start_has_a_template() -> None:
    assert {file.stem for file in FILES if file.parent.name == "templates"} == set(STARTS)
