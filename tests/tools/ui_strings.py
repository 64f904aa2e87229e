"""Prints every text that a person can read in the app: labels, hints, questions, errors, help.

python -m tests.tools.ui_strings              # one text a line: file, line, text
python -m tests.tools.ui_strings view/card    # only of files whose path has this in it

Texts are string literals with a space in the packages that write to people, and arguments of errors anywhere.
A value in an f-string is shown as {}.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "hitl_tui"
SHOWN = ("cli", "plain", "ui", "verbs", "view")
"""Packages all of whose texts may reach a person; in the others only errors do."""


class UiText(NamedTuple):
    """A text with the place where the code says it."""

    path: str
    line: int
    text: str


def ui_texts(path: Path) -> Iterator[UiText]:
    """Texts of a module, in the order of its lines."""
    place = path.relative_to(ROOT).as_posix()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    shown = path.relative_to(PACKAGE).parts[0] in SHOWN
    skipped = _docstrings(tree, commands=path.relative_to(PACKAGE).parts[0] == "cli")
    roots: list[ast.AST] = [tree] if shown else [*_raised(tree)]
    found = {node for root in roots for node in _texts(root) if id(node) not in skipped}
    for node in sorted(found, key=lambda node: (node.lineno, node.col_offset)):
        text = _text_of(node)
        if " " in text.strip() and any(letter.isalpha() for letter in text):
            yield UiText(place, node.lineno, text)


def all_ui_texts(wanted: str = "") -> Iterator[UiText]:
    """Texts of all modules whose path has `wanted` in it."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if wanted in path.as_posix():
            yield from ui_texts(path)


def _docstrings(tree: ast.Module, *, commands: bool) -> set[int]:
    """Ids of strings that only readers of the code see; the docstring of a command is its help."""
    statements = (
        statement
        for node in ast.walk(tree)
        if isinstance(body := getattr(node, "body", None), list) and not (commands and _is_command(node))
        for statement in body
    )
    return {id(statement.value) for statement in statements if isinstance(statement, ast.Expr)}


def _is_command(node: ast.AST) -> bool:
    """Whether click runs a function: its decorators say so."""
    decorators = getattr(node, "decorator_list", [])
    return any(re.search(r"\.(command|group)\b", ast.unparse(decorator)) for decorator in decorators)


@cache
def _errors() -> set[str]:
    """Names of our errors."""
    tree = ast.parse((PACKAGE / "errors.py").read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


def _raised(tree: ast.Module) -> Iterator[ast.AST]:
    """Calls that make one of our errors."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _errors():
            yield node


def _texts(root: ast.AST) -> Iterator[ast.Constant | ast.JoinedStr]:
    """String literals and whole f-strings below a node."""
    if isinstance(root, ast.JoinedStr) or (isinstance(root, ast.Constant) and isinstance(root.value, str)):
        yield root
        return
    for child in ast.iter_child_nodes(root):
        yield from _texts(child)


def _text_of(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)


def main(arguments: list[str]) -> int:
    """Print the texts."""
    for text in all_ui_texts(*arguments[:1]):
        print(f"{text.path}:{text.line}  {text.text!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
