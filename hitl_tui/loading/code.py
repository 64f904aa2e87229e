"""Runs a user's code to get a graph: imports and calls it, and shows only its own lines when it fails."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Final, TypeVar

from hitl_tui.errors import GraphInvalid, HitlError, UsageError
from hitl_tui.loading import import_hooks
from hitl_tui.loading.modules import (
    Project,
    folder_of,
    follow_projects,
    loading,
    look_again,
    one_loads,
    plain_name,
    project_folder,
)

T = TypeVar("T")
OURS: Final = "hitl_tui."
"""Modules that are found in any current directory."""

_NOT_THEIRS = (f"{Path(__file__).resolve().parent.parent}{os.sep}", importlib.__file__, "<frozen importlib")


follow_projects(import_hooks.switch)


class CodeFailed(GraphInvalid):
    """A user's code raised; `details` is the traceback with only that code."""

    title = "The graph's code failed"


def import_file(path: Path, project: Project | None = None) -> ModuleType:
    """Import a .py file; the modules in its directory belong to it.

    Its module has the name by which a program in that directory imports it, so that both have the same
    classes, and can read each other's stored objects. It has a private name if another module has that name.

    Args:
        project: the directory whose langgraph.json or graph file names the file; None if its own directory is
            the project.

    Raises:
        CodeFailed: the file's code raised.
        UsageError: it is not a Python file.
    """
    if path.suffix != ".py":
        raise UsageError(f"{path} isn't a Python file", "give a .py file or module:attribute")
    folder = project_folder(path.parent, project)
    with loading(folder):
        return blaming(path.name, lambda: folder.import_file(path))


def import_named(name: str, directory: Path) -> ModuleType:
    """Import a module by name, from a directory or else from the installed ones.

    Raises:
        UsageError: there is no such module.
        CodeFailed: the module's code raised.
    """
    if name.startswith(OURS):
        return importlib.import_module(name)
    folder = project_folder(directory)

    def load() -> ModuleType | None:
        try:
            return folder.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is not None and f"{name}.".startswith(f"{error.name}."):
                return None
            raise

    with loading(folder):
        module = blaming(name, load)
    if module is None:
        raise UsageError(
            f"there is no module {name!r} in {directory} or among what is installed here",
            "a file is given as path/to/file.py",
        )
    return module


def forget_code(directory: Path) -> None:
    """Let the next import from a directory run its code again; running code keeps its modules."""
    below = os.path.join(directory, "")
    with one_loads:
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if not file and (folder := folder_of(module)) and Path(folder.path).is_relative_to(directory):
                del sys.modules[name]  # a directory without `__init__.py`
            if name == "__main__" or not file or not file.startswith(below):
                continue
            if not _is_theirs(Path(file), directory):
                continue
            del sys.modules[name]
            # Compiled code is checked by second and size: two saves within a second may look the same.
            Path(importlib.util.cache_from_source(file)).unlink(missing_ok=True)
        look_again()


def code_files(directory: Path) -> set[Path]:
    """Return the files below a directory from which loaded modules came."""
    below = f"{directory}{os.sep}"
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return {
        Path(file) for file in files if file and file.startswith(below) and _is_theirs(Path(file), directory)
    }


def _is_theirs(file: Path, directory: Path) -> bool:
    """Whether a module's file below a directory is the user's own, and not installed there."""
    if file.suffix != ".py" or not file.is_relative_to(directory):
        return False
    return "site-packages" not in file.parts and not str(file).startswith(_NOT_THEIRS)


def blaming(what: str, call: Callable[[], T]) -> T:
    """Call a user's code; an error in it becomes one that shows only their lines."""
    try:
        return call()
    except HitlError as error:
        error.details = error.details or "".join(_their_frames(error).format())
        raise error from None
    except (Exception, SystemExit) as error:
        text = plain_name(str(error))
        summary = f"{type(error).__name__}: {text}" if text else type(error).__name__
        lines = traceback.TracebackException.from_exception(error)
        lines.stack = _their_frames(error)
        failed = CodeFailed(f"{what}: {summary}", _hint_for(error))
        failed.details = plain_name("".join(lines.format(chain=False)))
        raise failed from None


def _hint_for(error: BaseException) -> str:
    """Return a hint for common first errors, "" if the error says enough."""
    if isinstance(error, ImportError) and "relative import" in str(error):
        return (
            "a file is no part of a package: write `from name import …` for a file beside it, or run it as "
            "a module, as in hitl-tui run package.flow:build"
        )
    if isinstance(error, SyntaxError) and ("null byte" in str(error) or "codec can't decode" in str(error)):
        return "save the file as UTF-8"
    return ""


def _their_frames(error: BaseException) -> traceback.StackSummary:
    frames = traceback.extract_tb(error.__traceback__)
    return traceback.StackSummary.from_list(
        [frame for frame in frames if not frame.filename.startswith(_NOT_THEIRS)]
    )
