"""Private names of Textual are used in one module, which says why; nothing else takes one by accident."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import hitl_tui.ui

ALLOWED = "hitl_tui.ui.textual_private"


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(hitl_tui.ui.__path__, "hitl_tui.ui."):
        if not found.name.startswith(ALLOWED):
            yield importlib.import_module(found.name)


def classes(module: ModuleType) -> Iterator[type]:
    for value in vars(module).values():
        if inspect.isclass(value) and value.__module__ == module.__name__:
            yield value


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@cache
def names_of(kind: type) -> frozenset[str]:
    """The private names that a class of Textual defines, and those of the attributes that it sets."""
    names = {name for name in vars(kind) if is_private(name)}
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError):
        return frozenset(names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_private(node.attr):
            names.add(node.attr)
    return frozenset(names)


def theirs(kind: type) -> frozenset[str]:
    """The private names of the classes of Textual that a class inherits from."""
    bases = [base for base in kind.__mro__ if base.__module__.startswith("textual.")]
    return frozenset(name for base in bases for name in names_of(base))


def uses(kind: type) -> Iterator[str]:
    """The names of Textual's that a class of ours uses or replaces."""
    of_textual = theirs(kind)
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(kind)))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in of_textual:
            yield f"{kind.__qualname__}.{node.name}"
        elif isinstance(node, ast.Attribute) and node.attr in of_textual:
            owner = ast.unparse(node.value)
            if owner in ("self", "super()"):
                yield f"{kind.__qualname__}: {owner}.{node.attr}"


def test_no_class_uses_or_replaces_a_private_name_of_textual() -> None:
    found = [
        f"{module.__name__}: {use}" for module in modules() for kind in classes(module) for use in uses(kind)
    ]
    assert found == []


def test_nothing_private_of_another_object_is_used_but_of_our_own_classes() -> None:
    """Private names of other objects: only those that the same file defines."""
    found = []
    for module in modules():
        tree = ast.parse(Path(module.__file__ or "").read_text())
        own = {
            node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        own |= {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
        own |= {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
                owner = ast.unparse(node.value)
                if owner not in ("self", "cls", "super()"):
                    found.append(f"{module.__name__}: {owner}.{node.attr}")
            elif isinstance(node, ast.ImportFrom):
                first, *rest = (node.module or "").split(".")
                if first == "textual" and any(map(is_private, rest)):
                    found.append(f"{module.__name__}: {ast.unparse(node)}")
    assert found == []
