"""Import hooks for a process with several projects: each import uses the modules of the calling project.

From the first project of a process on, `builtins.__import__`, `importlib.import_module` and
`importlib.util.find_spec` look at their caller, and translate module names for the caller's project.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, TypeVar

from hitl_tui.engine.graph.functions import is_library
from hitl_tui.loading.modules import (
    OWNER,
    ModuleFolder,
    ModuleNameTaken,
    being_imported,
    file_of,
    folder_around,
    folders_with,
    is_librarys,
    is_used,
    origin,
    owner_of,
)

T = TypeVar("T")

_import: Final = builtins.__import__
_import_module: Final = importlib.import_module
_find_spec: Final = importlib.util.find_spec


def switch(on: bool) -> None:
    """Install the import hooks, or remove them."""
    builtins.__import__ = _import_for_caller if on else _import
    importlib.import_module = _import_module_for_caller if on else _import_module
    importlib.util.find_spec = _find_spec_for_caller if on else _find_spec


def acting_for(folder: ModuleFolder, call: Callable[..., T], *arguments: Any) -> T:
    """Call a library that imports by name for a directory's code; `_caller` finds this frame."""
    return call(*arguments)


def _import_for_caller(
    name: str,
    globals: Mapping[str, Any] | None = None,  # noqa: A002 - callers use these names as keywords, too
    locals: Mapping[str, Any] | None = None,  # noqa: A002
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    """Replace `builtins.__import__`, for import statements, calls, and C code, which passes a list."""
    if level:
        return _import(name, globals, locals, fromlist, level)
    by_name = globals is None or type(fromlist) is list
    owner = None if globals is None or by_name else globals.get(OWNER)
    if owner is not None:
        real = owner.real_name(name, globals.get("__file__") or "")  # type: ignore[union-attr]
        if real in sys.modules:
            return _import(real, globals, locals, fromlist)
    elif by_name or not _is_plain(name, globals or {}):
        real = _translated(name, direct=False)
        if real != name and by_name and _reads_sys_modules():
            raise ModuleNameTaken(_two_meanings(name, real), name=name)
    else:
        return _import(name, globals, locals, fromlist)
    with being_imported(real):
        return _import(real, globals, locals, fromlist)


def _is_plain(name: str, globals_: Mapping[str, Any]) -> bool:
    """Whether an import statement outside all projects imports no project's module."""
    top = name.partition(".")[0]
    if top in sys.modules and not is_used(top):
        return True
    file = globals_.get("__file__")
    return isinstance(file, str) and is_library(file)


def _reads_sys_modules() -> bool:
    """Whether a library called `__import__` directly; it then looks into `sys.modules`."""
    code = sys._getframe(2).f_code
    return is_library(code.co_filename) or "__import__" not in code.co_names


def _import_module_for_caller(name: str, package: str | None = None) -> ModuleType:
    """Replace `importlib.import_module`."""
    if name.startswith("."):
        if not package:
            return _import_module(name, package)
        name = importlib.util.resolve_name(name, package)
    real = _translated(name)
    with being_imported(real):
        return _import_module(real)


def _find_spec_for_caller(name: str, package: str | None = None) -> ModuleSpec | None:
    """Replace `importlib.util.find_spec`."""
    if name.startswith("."):
        if not package:
            return _find_spec(name, package)
        name = importlib.util.resolve_name(name, package)
    try:
        real = _translated(name)
    except ModuleNotFoundError:
        return None
    with being_imported(real):
        return _find_spec(real)


def _translated(name: str, *, direct: bool = True) -> str:
    """Translate a module name to its name in `sys.modules`.

    Args:
        direct: whether the calling frame itself imports, so that its project's modules come before libraries.

    Raises:
        ModuleNameTaken: the name means different files, and the importing project is unknown.
        ModuleNotFoundError: only another project has a module of that name.
    """
    top = name.partition(".")[0]
    if not top or "@" in top:
        return name
    own = sys._getframe(2).f_globals.get(OWNER) if direct else None
    if own is None and is_librarys(top):
        return name
    caller = own or _caller()
    if isinstance(caller, ModuleFolder):
        return caller.real_name(name)
    if caller:  # a program outside all projects
        return name
    found = folders_with(top)
    loaded = sys.modules.get(top)
    if len(found) > 1 or (found and loaded is not None and owner_of(top) is not found[0][0]):
        files = dict.fromkeys([file for _, file in found])
        raise ModuleNameTaken(
            _ambiguous(top, [*files, *filter(None, {origin(loaded)} - set(files))]), name=top
        )
    return found[0][0].real_name(name) if found else name


def _caller() -> ModuleFolder | bool | None:
    """Return the folder whose code imports, True for another program, None if no such code calls."""
    frame = sys._getframe(3)
    while frame is not None:
        owner = frame.f_globals.get(OWNER)
        if isinstance(owner, ModuleFolder):
            return owner
        if frame.f_code is acting_for.__code__:
            given: ModuleFolder = frame.f_locals["folder"]
            return given
        file = frame.f_code.co_filename
        if not file.startswith("<") and not is_library(file) and not _is_script(file):
            if (folder := folder_around(file)) is not None:
                return folder
            module = sys.modules.get(str(frame.f_globals.get("__name__")))
            if module is not None and getattr(module, "__dict__", None) is frame.f_globals:
                return True
        frame = frame.f_back  # type: ignore[assignment]
    return None


@cache
def _is_script(file: str) -> bool:
    """Whether a file is the start script of an installed program, such as `bin/hitl-tui`."""
    return os.path.dirname(os.path.abspath(file)) == os.path.dirname(os.path.abspath(sys.executable))


def _ambiguous(top: str, files: Sequence[str]) -> str:
    return (
        f"{top!r} is {' and '.join(files)}, and nothing tells which is meant: use an import statement "
        "in the project's own code, or open the two projects in two hitl-tui"
    )


def _two_meanings(name: str, real: str) -> str:
    there, here = file_of(real), origin(sys.modules.get(name)) or "another project's"
    return (
        f"{name!r} is {there} for this project, but {here} is loaded by that name: "
        "open the two projects in two hitl-tui"
    )
