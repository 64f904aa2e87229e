"""The list of what is promised and which test shows it names tests that exist, and no promise without one."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.places import ROOT

ROWS = re.findall(
    r"^\| (?!promise|---)(.+?) \| (.+) \|$", (ROOT / "tests/COVERAGE.md").read_text("utf-8"), re.MULTILINE
)


@cache
def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        node.name for node in ast.walk(tree) if isinstance(node, functions) and node.name.startswith("test_")
    }


@pytest.mark.parametrize(("promise", "tests"), ROWS, ids=[promise for promise, _ in ROWS])
def test_each_promise_names_tests_that_exist(promise: str, tests: str) -> None:
    named = re.findall(r"`([^`:]+)::([^`]+)`", tests)
    assert named
    for file, test in named:
        assert (ROOT / file).exists(), file
        assert test in names_in(ROOT / file), f"{file} has no {test}"


def test_there_are_promises() -> None:
    assert len(ROWS) > 50
