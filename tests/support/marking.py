"""Marks every test that reaches a terminal, a server or a browser as `integration`.

A test is marked by what it can reach, so nobody has to remember to mark it:

- all tests below the directories in `DIRECTORIES`;
- tests that request a fixture in `FIXTURES`, or a fixture parameter of that name;
- tests whose function, fixtures or helper functions name one of `STARTERS`.

A test that starts many other processes is marked `integration` by hand, one that takes long is marked `slow`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from tests.support.places import ROOT

DIRECTORIES = ("tests/e2e",)
"""Directories whose tests all start terminals or servers."""

FIXTURES = frozenset({"postgres", "postgres_url"})
"""Fixtures that start a server."""

PARAMETERS = frozenset({"postgres"})
"""Values of parameters that start a server, as `store` in tests/stores/conftest.py has them."""

STARTERS = frozenset(
    {
        ("tests.support.chromium", "chromium"),
        ("tests.support.fleet", "Fleet"),
        ("tests.support.killed", "kill_once_it_says"),
        ("tests.support.page", "Page"),
        ("tests.support.postgres", "Postgres"),
        ("tests.support.power", "moments"),
        ("tests.support.terminal", "Terminal"),
        ("tests.support.workers", "WorkerProcess"),
    }
)
"""Functions and classes of the tests that start programs, by module and name."""


def mark_what_starts_programs(items: list[pytest.Item]) -> None:
    """Add `integration` to each test that reaches one of the programs named above."""
    for item in items:
        if isinstance(item, pytest.Function) and _starts_programs(item):
            item.add_marker(pytest.mark.integration)


def directories_left_out(markexpr: str) -> tuple[Path, ...]:
    """Return the directories that need no collection, since `-m` excludes every test in them."""
    excluded = "not integration" in markexpr and " or " not in markexpr
    return tuple(ROOT / name for name in DIRECTORIES) if excluded else ()


def _starts_programs(item: pytest.Function) -> bool:
    if any(item.path.is_relative_to(ROOT / name) for name in DIRECTORIES):
        return True
    if not FIXTURES.isdisjoint(item.fixturenames):
        return True
    parameters = getattr(item, "callspec", None)
    if parameters is not None and any(
        isinstance(value, str) and value in PARAMETERS for value in parameters.params.values()
    ):
        return True
    functions = [item.function]
    for name in item.fixturenames:
        functions += [one.func for one in item._fixtureinfo.name2fixturedefs.get(name, ())]
    return any(_reaches_a_starter(function) for function in functions)


_reaching: dict[object, bool] = {}
"""What `_reaches_a_starter` found, by code object or class."""


def _reaches_a_starter(thing: Any) -> bool:
    """Whether a function or class of the tests names a starter, or another that does."""
    thing = inspect.unwrap(thing) if callable(thing) else thing
    key = (getattr(thing, "__module__", ""), getattr(thing, "__qualname__", ""))
    if key in STARTERS:
        return True
    code = getattr(thing, "__code__", thing if isinstance(thing, type) else None)
    if code is None or not str(key[0]).startswith("tests."):
        return False
    if code not in _reaching:
        _reaching[code] = False  # ends a recursion: who calls itself reaches nothing by that
        _reaching[code] = any(map(_reaches_a_starter, _named_by(thing)))
    return _reaching[code]


def _named_by(thing: Any) -> Iterator[Any]:
    """The functions and classes that a function, or the methods of a class, name."""
    if isinstance(thing, type):
        yield from (base for base in thing.__bases__ if base is not object)
        yield from (one for one in vars(thing).values() if isinstance(one, FunctionType))
        return
    for name in _names(thing.__code__):
        named = thing.__globals__.get(name)
        if isinstance(named, (FunctionType, type)) or hasattr(named, "__wrapped__"):
            yield named


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
