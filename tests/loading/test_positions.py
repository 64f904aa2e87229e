from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

from hitl_tui.loading.toml import line_index, line_of
from tests.support.places import ROOT

TEXT = '''\
# a comment with [brackets] and = signs
top = 1
"quoted key" = 'a # no comment'
dotted.inner = true   # a = comment

[table]
text = """
[not.a.table]
key = "no key"
"""
raw = \'\'\'
[also.not]\'\'\'
list = [ # a comment, ] with a bracket
    1,
    "two",  # and more
    { three = 3,
      "fo\\u0075r" = [4] },
]

[ table . "sub.table" ]
x = {}

[[rows]]
a = 1
[rows.inner]
b = 2

[[rows]]
a = 2026-11-21 10:00:00

[[rows.deep]]
c = 3
[[rows.deep]]
c = "end\\""
'''


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 2),
        (("quoted key",), 3),
        (("dotted",), 4),
        (("dotted", "inner"), 4),
        (("table",), 6),
        (("table", "text"), 7),
        (("table", "raw"), 11),
        (("table", "list"), 13),
        (("table", "list", 0), 14),
        (("table", "list", 1), 15),
        (("table", "list", 2), 16),
        (("table", "list", 2, "three"), 16),
        (("table", "list", 2, "four"), 17),
        (("table", "list", 2, "four", 0), 17),
        (("table", "sub.table"), 20),
        (("table", "sub.table", "x"), 21),
        (("rows",), 23),
        (("rows", 0), 23),
        (("rows", 0, "inner", "b"), 26),
        (("rows", 1), 28),
        (("rows", 1, "a"), 29),
        (("rows", 1, "deep", 0, "c"), 32),
        (("rows", 1, "deep", 1), 33),
        (("rows", 1, "deep", 1, "c"), 34),
    ],
)
def test_lines(path: tuple[str | int, ...], line: int, ending: str) -> None:
    tomli.loads(TEXT)
    assert line_index(TEXT.replace("\n", ending))[path] == line


def test_a_missing_key_has_the_position_of_its_table() -> None:
    index = line_index(TEXT)
    assert line_of(index, ("table", "sub.table", "missing", 3)) == 20
    assert line_of(index, ("missing",)) is None


def paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every path in a parsed file."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, member in inner for found in [(*path, key), *paths(member, (*path, key))]]


def written(value: Any) -> str:
    """A value as TOML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(key)} = {written(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",\n # ]\n".join(map(written, value)) + "]"
    if isinstance(value, str):
        return (
            '"'
            + "".join(
                f"\\U{ord(char):08X}" if char in '"\\' or ord(char) < 32 or ord(char) == 127 else char
                for char in value
            )
            + '"'
        )
    return str(value).lower()


TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
VALUES = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.dictionaries(TEXTS, VALUES, max_size=3))
def test_every_key_of_any_file_has_its_line(top: dict[str, Any], table: dict[str, Any]) -> None:
    lines = [f"{written(key)} = {written(value)}" for key, value in top.items()]
    if "t" not in top:
        lines += ["[[t]]", *(f"{written(key)} = {written(value)}" for key, value in table.items())]
    text = "\n".join(lines)
    index = line_index(text)
    assert set(paths(tomli.loads(text))) == set(index)
    for key in top:
        expected = next(
            number for number, line in enumerate(text.split("\n"), 1) if line.startswith(f"{written(key)} = ")
        )
        assert index[(key,)] == expected


@pytest.mark.parametrize("file", sorted([*ROOT.glob("*.toml"), *ROOT.glob("[hst]*/**/*.toml")]), ids=str)
def test_every_key_of_our_own_files_has_its_line(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert set(paths(tomli.loads(text))) <= set(line_index(text))
