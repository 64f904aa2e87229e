"""Prints how many tests name each section of the specification, and the sections that none names.

python -m tests.tools.spec_sections           # exit code 1 where a section has no test
python -m tests.tools.spec_sections 10        # the tests of a section
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.spec import SECTIONS

TESTS = Path(__file__).resolve().parents[1]


def sections(node: ast.AST) -> set[str]:
    """The sections that a decorator or a module's marks name."""
    calls = (part for part in ast.walk(node) if isinstance(part, ast.Call))
    return {
        str(call.args[0].value)
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "spec"
        if call.args and isinstance(call.args[0], ast.Constant)
    }


def tests_in(body: list[ast.stmt], marks: set[str]) -> Iterator[tuple[str, set[str]]]:
    """Names of test functions with the sections they are about, those of their class and module included."""
    for node in body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets
        ):
            marks = marks | sections(node.value)
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own = marks.union(*(sections(decorator) for decorator in node.decorator_list))
            if isinstance(node, ast.ClassDef):
                for name, found in tests_in(node.body, own):
                    yield f"{node.name}::{name}", found
            elif node.name.startswith("test_"):
                yield node.name, own


def tests_by_section() -> dict[str, list[str]]:
    """For each section the tests that name it, as pytest calls them."""
    named: dict[str, list[str]] = {section: [] for section in SECTIONS}
    for path in sorted(TESTS.rglob("test_*.py")):
        place = path.relative_to(TESTS.parent).as_posix()
        for name, marks in tests_in(ast.parse(path.read_text(encoding="utf-8")).body, set()):
            for section in marks:
                named[section].append(f"{place}::{name}")
    return named


def main(wanted: list[str]) -> int:
    """Print the counts, or the tests of some sections."""
    named = tests_by_section()
    for section in wanted:
        print(f"{section}. {SECTIONS[section]}", *named[section], sep="\n  ")
    if wanted:
        return 0
    for section, title in SECTIONS.items():
        print(f"{section:>2}  {title:<28} {len(named[section]) or 'no test':>7}")
    return 0 if all(named.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
