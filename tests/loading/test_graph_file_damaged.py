"""Files that are damaged: no TOML, wrong neighbours, random mutations; none ever gives a traceback."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from hitl_tui import GraphInvalid, HitlError, UsageError
from hitl_tui.loading.code import CodeFailed
from hitl_tui.loading.graphs import load_graph
from tests.loading.conftest import LoadFile
from tests.loading.test_graph_file_errors import GOOD
from tests.support.places import ROOT


def test_no_nodes_at_all(load_file: LoadFile) -> None:
    with pytest.raises(GraphInvalid, match=r"^mine.toml: it has no nodes, add "):
        load_file("")


def test_their_code_that_fails_shows_its_lines(load_file: LoadFile) -> None:
    Path("broken.py").write_text("def f(state):\n    return {}\n\n1 / 0\n")
    text = GOOD.replace('agent = "writer"\nprompt = "About {draft}"', 'function = "broken.py:f"')
    with pytest.raises(
        GraphInvalid, match=r"line 13, \[nodes.write\] function: broken.py: ZeroDivisionError"
    ) as caught:
        load_file(text)
    assert 'broken.py", line 4' in caught.value.details
    assert "hitl_tui" not in caught.value.details
    assert not isinstance(caught.value, CodeFailed)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", "mine.toml:1:"),
        ("a = 1\na = 2", "mine.toml:2:"),
        ("[a", "mine.toml:1:"),
        (f"a = {'[' * 3000}", "nested"),
        (f"a = {'9' * 5000}", "digits"),
        ("a = 1\x00", "mine.toml:1:"),
    ],
)
def test_what_is_not_toml(load_file: LoadFile, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_file(text)


def test_what_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="isn't UTF-8"):
        load_graph(str(tmp_path / "mine.toml"))


def test_a_mark_before_the_text_and_line_ends_of_windows_are_taken(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    load_graph(str(tmp_path / "mine.toml"))


@pytest.mark.parametrize(
    ("schema", "fix"),
    [
        ('{ type = "int" }', "did you mean 'integer'?"),
        ('{ items = { type = "Bool" } }', "did you mean 'boolean'?"),
        ('{ type = "whole" }', "types: boolean, string, integer, number, array, object, null"),
        ('"int"', 'write a table, as { type = "integer" }'),
        ('"string"', 'write a table, as { type = "string" }'),
    ],
)
def test_a_type_named_as_in_another_language_gets_a_hint(load_file: LoadFile, schema: str, fix: str) -> None:
    with pytest.raises(GraphInvalid, match=re.escape(fix)):
        load_file(GOOD.replace('schema = { type = "integer" }', f"schema = {schema}"))


@pytest.mark.parametrize("schema", ["[1]", "{", '"x"', "[" * 100_000])
def test_an_invalid_schema_file_is_reported(load_file: LoadFile, schema: str) -> None:
    Path("plan.json").write_text(schema)
    with pytest.raises(GraphInvalid, match=r"line 6, \[channels.n\] schema: .*plan.json"):
        load_file(GOOD.replace('schema = { type = "integer" }', 'schema = "plan.json"'))


@pytest.mark.parametrize("name", ["", "a\\u0000b", "x" * 300, ".", "/"])
def test_names_of_files_that_are_none(load_file: LoadFile, name: str) -> None:
    for old, new in (
        ('schema = { type = "integer" }', f'schema = "{name}"'),
        ('agent = "writer"', f'function = "{name}.py:f"'),
    ):
        with pytest.raises(GraphInvalid):
            load_file(GOOD.replace(old, new))


SNIPPETS = (
    *"[]{}=\"'.,#\n\\", "[[", "]]", '"""', "'''", "\u202e", "nan", "-1", "1979-05-27", "true", "{}", "[]",
    '"*"', "START", "END", "9" * 40, "(", "\\u0000", "= {", "[nodes.write]", "[channels]", "\r\n",
)  # fmt: skip


def mutated(text: str, chance: random.Random) -> str:
    """A text with one to four things changed in it."""
    for _ in range(chance.randint(1, 4)):
        lines = text.splitlines(keepends=True) or ["\n"]
        at = chance.randrange(len(text) + 1)
        line = chance.randrange(len(lines))
        match chance.randrange(6):
            case 0:
                text = text[:at] + text[at + chance.randint(1, 12) :]
            case 1:
                text = text[:at] + chance.choice(SNIPPETS) + text[at:]
            case 2:
                text = "".join(lines[:line] + lines[line + 1 :])
            case 3:
                text = "".join([*lines[:line], lines[line], *lines[line:]])
            case 4:
                lines.insert(chance.randrange(len(lines)), lines[line])
                text = "".join(lines)
            case _:
                words = list(re.finditer(r"[\w.*]+", text))
                if words:
                    old, new = chance.choice(words), chance.choice(words)
                    text = text[: old.start()] + new[0] + text[old.end() :]
    return text


FILES = [*sorted(ROOT.glob("sample_graphs/*.toml")), *sorted(ROOT.glob("hitl_tui/loading/templates/*.toml"))]


@pytest.mark.parametrize(
    "seeds", [range(10), pytest.param(range(10, 200), marks=pytest.mark.slow)], ids=["some", "many"]
)
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_damaged_file_loads_or_says_what_is_wrong(load_file: LoadFile, file: Path, seeds: range) -> None:
    Path("counter.py").write_text((file.parent / "counter.py").read_text())
    original = file.read_text(encoding="utf-8")
    for seed in seeds:
        text = mutated(original, random.Random(seed))
        said = "mine.toml"
        try:
            load_file(text)
        except HitlError as error:
            said = str(error)
        assert "mine.toml" in said, text
