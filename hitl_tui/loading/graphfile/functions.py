"""Finds functions and files that a graph file names, relative to its directory."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from hitl_tui.engine.state.reducers import Reducer, as_reducer
from hitl_tui.errors import GraphInvalid, UsageError, in_words
from hitl_tui.given_files import real_path
from hitl_tui.loading.code import import_file, import_named
from hitl_tui.loading.modules import project_of
from hitl_tui.suggest import did_you_mean

_FORMS = "write file.py:function or module:function"


def find_function(spec: str, directory: Path) -> Callable[..., Any]:
    """Return the function of `file.py:function`, relative to `directory`, or of `module:function`.

    Raises:
        UsageError: nothing has that name.
        GraphInvalid: it is not a function, or its module failed (`CodeFailed`).
    """
    head, colon, name = spec.rpartition(":")
    if not colon or not name or not head:
        raise UsageError(f"{spec!r} doesn't name a function", _FORMS)
    if head.endswith(".py"):
        target: Any = import_file(find_file(head, directory), project_of(directory))
    elif all(part.isidentifier() for part in head.split(".")):
        target = import_named(head, directory)
    else:
        raise UsageError(f"{spec!r} doesn't name a function", _FORMS)
    for part in name.split("."):
        if not hasattr(target, part):
            members = getattr(target, "__dict__", {})
            known = [key for key, value in members.items() if callable(value) and not key.startswith("_")]
            raise UsageError(f"there is no {part!r} in {head}", did_you_mean(part, known))
        target = getattr(target, part)
    if not callable(target):
        raise GraphInvalid(f"{spec} is {in_words(target)}", "it must be a function")
    return target  # type: ignore[no-any-return]


def find_file(name: str, directory: Path) -> Path:
    """Return a file relative to the graph file; raises `UsageError` if there is none."""
    try:
        path = real_path(directory / name)
        if os.path.isfile(path):
            return path
        neighbours = [file.name for file in path.parent.glob(f"*{path.suffix}")]
    except (OSError, ValueError) as error:
        raise UsageError(f"{name!r} is not a file name ({error})") from None
    raise UsageError(f"there is no file {path}", did_you_mean(path.name, neighbours))


def find_reducer(text: str, directory: Path) -> Reducer:
    """Return a reducer by its text; a user's function keeps its text from the file.

    Raises:
        UsageError, GraphInvalid: an unknown name, or as `find_function`.
    """
    if re.fullmatch(r"[^()\s:]+:[\w.]+", text):
        return msgspec.structs.replace(as_reducer(find_function(text, directory)), text=text)
    return as_reducer(text)
