"""Running a user's code to get at a graph: import it, call it, and blame only it when it fails."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Final, TypeVar

from hitl_tui.engine.state.reducers import IS_FILE
from hitl_tui.errors import GraphInvalid, HitlError, UsageError

T = TypeVar("T")
one_loads: Final = threading.RLock()
"""Held by whoever loads a graph's code in a process of several threads: to import a file twice at a time, or
while it is forgotten, gives a half of it, and what is made of that is read as another graph."""
OURS: Final = "hitl_tui."
"""Modules that are found wherever one stands."""

_NOT_THEIRS = (f"{Path(__file__).resolve().parent.parent}{os.sep}", importlib.__file__, "<frozen importlib")


class CodeFailed(GraphInvalid):
    """A user's code raised; `details` is the traceback of that code alone."""

    title = "The graph's code failed"


def import_file(path: Path) -> ModuleType:
    """Import a .py file; it sees its neighbours as under `python FILE`.

    Its module has the name by which a program beside it imports it, so that what either of them keeps of its
    classes is the other's, too; a name of its own where something else has that one.

    Raises:
        CodeFailed: the file's code raised.
    """
    name = path.stem if _is_named(path.stem, path) else _own_name(path)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} isn't a Python file", "give a .py file or module:attribute")
    module = importlib.util.module_from_spec(spec)
    loader = spec.loader
    setattr(module, IS_FILE, path.name)
    sys.modules[name] = module
    try:
        with _importable(path.parent):
            blaming(path.name, lambda: loader.exec_module(module))
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _is_named(name: str, path: Path) -> bool:
    """Whether a name is a file's, or could be: nothing else would be imported by it."""
    if not name.isidentifier():
        return False
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a module without a spec
        return False
    return spec is None or (spec.origin is not None and Path(spec.origin) == path)


def _own_name(path: Path) -> str:
    return f"hitl_graph_{path.stem}_{hashlib.sha256(os.fsencode(path)).hexdigest()[:8]}"


def import_named(name: str, directory: Path) -> ModuleType:
    """Import a module by name, from `directory` where it is neither installed nor one of ours.

    Raises:
        UsageError: there is no such module.
        CodeFailed: the module's code raised.
    """

    def load() -> ModuleType | None:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is not None and f"{name}.".startswith(f"{error.name}."):
                return None
            raise

    with contextlib.nullcontext() if name.startswith(OURS) else _importable(directory):
        module = blaming(name, load)
    if module is None:
        raise UsageError(
            f"there is no module {name!r} in {directory} or among what is installed here",
            "a file is given as path/to/file.py",
        )
    return module


def forget_code(directory: Path) -> None:
    """Let the next import of what lies in a directory run it again; what runs already keeps its modules."""
    with one_loads:
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if name == "__main__" or not file or not _is_theirs(Path(file), directory):
                continue
            del sys.modules[name]
            # Compiled code counts as fresh by second and size: two saves within a second may look the same.
            Path(importlib.util.cache_from_source(file)).unlink(missing_ok=True)
        importlib.invalidate_caches()


def code_files(directory: Path) -> set[Path]:
    """The files below a directory that what is loaded now came from."""
    below = f"{directory}{os.sep}"
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return {
        Path(file) for file in files if file and file.startswith(below) and _is_theirs(Path(file), directory)
    }


def _is_theirs(file: Path, directory: Path) -> bool:
    """Whether a module's file was written below a directory, rather than installed there."""
    if file.suffix != ".py" or not file.is_relative_to(directory):
        return False
    return "site-packages" not in file.parts and not str(file).startswith(_NOT_THEIRS)


def blaming(what: str, call: Callable[[], T]) -> T:
    """Call a user's code; what it raises becomes an error that shows their lines only."""
    try:
        return call()
    except HitlError as error:
        error.details = error.details or "".join(_their_frames(error).format())
        raise error from None
    except (Exception, SystemExit) as error:
        summary = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        lines = traceback.TracebackException.from_exception(error)
        lines.stack = _their_frames(error)
        failed = CodeFailed(f"{what}: {summary}", _hint_for(error))
        failed.details = "".join(lines.format(chain=False))
        raise failed from None


def _hint_for(error: BaseException) -> str:
    """What to do about what newcomers meet first, "" where the error says it all."""
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


@contextlib.contextmanager
def _importable(directory: Path) -> Iterator[None]:
    """Let user code import from its directory.

    First in line while it loads, as Python would do; last in line from then on, so that a file of
    theirs never stands in for a module that we or a library load late.
    """
    entry = str(directory)
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        sys.path.remove(entry)
        if entry not in sys.path:
            sys.path.append(entry)
