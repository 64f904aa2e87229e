"""Presentation scripts: mistakes are reported with file, line, key and a fix."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema_rs
import pytest

from hitl_tui.errors import UsageError
from hitl_tui.loading.graphs import scripts_folder
from hitl_tui.loading.stage_file import (
    SCHEMA_FILE,
    ScriptInvalid,
    find_script,
    read_script,
    stage_schema_text,
)


def problems(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "show.toml"
    file.write_text(text)
    with pytest.raises(ScriptInvalid) as raised:
        read_script(file)
    return [line.partition("show.toml, ")[2] for line in raised.value.message.splitlines()]


SHOW = '[show]\ngraph = "advisor"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[show]\n", "line 1, [show]: 'graph' is missing"),
        (f"{SHOW}grph = 1\n", "line 3, [show] grph: unknown key 'grph', did you mean 'graph'?"),
        (f"{SHOW}pace = 100\n", "line 3, [show] pace: must be at most 8, not 100"),
        (
            f"{SHOW}[[stops]]\ntitle = 'x'\n",
            "line 3, [[stops]]: it says not where it is, add after, before, at or when",
        ),
        (
            f"{SHOW}[[stops]]\nafter = 'a'\nbefore = 'b'\n",
            "line 5, [[stops]] before: a stop is either 'after' or 'before', keep one",
        ),
        (
            f"{SHOW}[[stops]]\nat = 'end'\nspotlight = 'valu'\n",
            "line 5, [[stops]] spotlight: 'valu' is not one of them, did you mean 'value'?",
        ),
        (
            f"{SHOW}[[stops]]\nat = 'end'\nvisit = 2\n",
            "line 5, [[stops]] visit: it counts runs of a node, name that by after or before",
        ),
        (
            f"{SHOW}[[stops]]\nat = 'question'\nwords = 'x'\n",
            "line 5, [[stops]] words: they go with an answer, add answer",
        ),
        (
            f"{SHOW}cassette = 'gone.json'\n",
            "line 3, [show] cassette: there is no file 'gone.json' beside the script, "
            "`hitl-tui run GRAPH --record FILE` makes one",
        ),
    ],
)
def test_a_mistake_in_a_script_is_reported_with_its_line_and_a_fix(
    tmp_path: Path, text: str, message: str
) -> None:
    assert problems(tmp_path, text) == [message]


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    assert len(problems(tmp_path, f"{SHOW}x = 1\n[[stops]]\nvisit = 0\n[[captions]]\nnode = 3\n")) == 4


def test_the_published_schema_matches_the_classes_and_every_bundled_script() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == stage_schema_text(), (
        "run: python -m tests.tools.graph_file_schema"
    )
    validator = jsonschema_rs.validator_for(json.loads(stage_schema_text()))
    scripts = list(scripts_folder().glob("*.toml"))
    assert scripts
    for script in scripts:
        assert validator.is_valid(tomllib.loads(script.read_text(encoding="utf-8")))
    assert not validator.is_valid({"show": {"graph": "advisor"}, "stops": [{"atfer": "x"}]})


def test_a_script_is_found_by_its_file_or_as_a_bundled_one(tmp_path: Path) -> None:
    assert find_script("closures").parent == scripts_folder()
    with pytest.raises(UsageError, match="did you mean 'closures'"):
        find_script("closure")
