"""Modules of users' projects: each project imports its own, even if several are open in one process.

A project is the directory of a graph file. Imports of its code are searched there first, and modules found
there belong to it. Python keeps one module for each name. So a module whose name is taken, by another
project, a package or the standard library, gets a private name: `helper@1f2e3d4c` for `helper`. The
imports of the project's code are translated (`import_hooks`).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import (
    BuiltinImporter,
    ExtensionFileLoader,
    FrozenImporter,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from hitl_tui.engine.graph.functions import is_library
from hitl_tui.engine.state.reducers import IS_FILE
from hitl_tui.errors import UsageError

OWNER: Final = "__hitl_folder__"
"""The global of a project's module that holds its `ModuleFolder`."""
PRIVATE: Final = re.compile(r"@[0-9a-f]{8}(?![0-9a-f])")
"""What makes a name private."""

_OURS: Final = "hitl_tui"
_lock: Final = threading.RLock()
_projects: Final[dict[str, Project]] = {}
_folders_by_name: Final[dict[str, ModuleFolder]] = {}
"""The folder that claimed a top-level name in `sys.modules` last."""
_importing: Final[Counter[str]] = Counter()
"""Top-level names that projects are importing at this moment."""
_settled: Final[set[str]] = set()
"""Claimed names whose import has ended: once such a module leaves `sys.modules`, its name is free again."""
_used: Final[set[str]] = set()
"""Plain (not private) top-level names that any project has used for a module of its own."""
_known_path: Final[set[str]] = set()
"""Entries of `sys.path` that are not new."""
_project_path: Final[set[str]] = set()
"""Entries of `sys.path` that belong to projects."""
one_loads: Final = threading.RLock()
"""Held by the thread that loads a graph's code. If another thread imported or removed modules meanwhile,
the graph could be built from half-loaded code and would look like another graph."""
_loaders: Final[list[int]] = []
"""Ids of the thread that loads a project's code, once per nested load."""

_switches: Final[list[Callable[[bool], None]]] = []

_import_module: Final = importlib.import_module


class ModuleNameTaken(ImportError):
    """An imported name means different files in different projects."""


class Project:
    """A user's project: a directory and the directories that its code imports from.

    Attributes:
        root: the directory.
        shared: the directories that all of its code imports from, its own first.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.folders: dict[str, ModuleFolder] = {}
        self._dependencies: tuple[Path, list[str]] | None = None
        self.shared: list[ModuleFolder] = [self.folder(root)]

    def folder(self, path: str) -> ModuleFolder:
        """Return the `ModuleFolder` of a directory; its modules import those beside them first."""
        return self.folders.setdefault(path, ModuleFolder(self, path))

    def add_dependencies(self, config: Path, paths: Sequence[Path]) -> None:
        """Add the directories that its langgraph.json names to those that its code imports from.

        Raises:
            UsageError: another langgraph.json in the directory names other ones.
        """
        named = [str(path) for path in paths]
        with _lock:
            known, before = self._dependencies or (config, named)
            if known != config and before != named:
                raise UsageError(
                    f"{config} and {known} have different dependencies, and the code beside them can't "
                    "import from both in one process",
                    "open one of them in another hitl-tui",
                )
            self._dependencies = config, named
            self._share(named)
            _keep_on_path()

    def adopt_new_entries(self) -> None:
        """Make directories that its code has added to `sys.path` directories of this project only."""
        if _loaders and _loaders[0] != threading.get_ident():
            return  # they may have been added by another project's code
        new = [entry for entry in sys.path if isinstance(entry, str) and entry not in _known_path]
        _known_path.update(new)
        theirs = [entry for entry in new if not is_library(os.path.join(entry, ""))]
        _project_path.update(theirs)
        self._share(map(os.path.abspath, theirs))

    def _share(self, paths: Any) -> None:
        for path in paths:
            folder = self.folder(path)
            if folder not in self.shared:
                self.shared.append(folder)


class ModuleFolder:
    """A directory of a project, which owns the modules in it."""

    def __init__(self, project: Project, path: str) -> None:
        self.project = project
        self.path = path
        self._files: dict[str, Path] = {}
        self._names: dict[str, str] = {}
        self._found: dict[str, tuple[ModuleFolder, str]] = {}
        self._not_found: set[str] = set()
        self._digest = _digest(f"{project.root}\0{path}")

    def import_module(self, name: str) -> ModuleType:
        """Import a module as code of this directory would.

        Raises:
            ModuleNotFoundError: code of this directory can't import that name.
        """
        real = self.real_name(name)
        with being_imported(real):
            return _import_module(real)

    def import_file(self, file: Path) -> ModuleType:
        """Import a file of this directory by its path."""
        with _lock:
            spec = self.find(file.stem) if file.stem.isidentifier() else None
            if spec is not None and spec.origin == str(file) and self._own_package(file.stem) is None:
                real = self._claimed(file.stem, spec)
            else:  # an import statement would not find it
                real = f"{re.sub(r'[^0-9A-Za-z_]', '_', file.stem)}@{_digest(str(file))}"
                _folders_by_name[real] = self
            self._files[real] = file
        with being_imported(real):
            module = _import_module(real)
        setattr(module, IS_FILE, file.name)
        return module

    def real_name(self, name: str, importer: str = "") -> str:
        """Return the name in `sys.modules` of the module that this directory's code imports as `name`.

        Args:
            importer: the importing file.

        Raises:
            ModuleNotFoundError: only another project has a module of that name.
        """
        top, dot, _rest = name.partition(".")
        return self._real_top(top, importer, of_package=bool(dot)) + name[len(top) :]

    def _real_top(self, top: str, importer: str, *, of_package: bool) -> str:
        if importer.endswith(f"{top}.py") and self._means_library(top, importer):
            return top
        asked = f"{top}." if of_package else top
        found = self._found.get(asked)
        if found is not None and owner_of(found[1]) is found[0]:
            return found[1]
        if top in self._not_found and top in sys.modules and owner_of(top) is None:
            return top
        with _lock:
            self.project.adopt_new_entries()
            searched = (self, *(folder for folder in self.project.shared if folder is not self))
            specs = [(folder, spec) for folder in searched if (spec := folder.find(top)) is not None]
            if of_package:  # only packages contain modules
                specs = [(folder, spec) for folder, spec in specs if _is_package(spec)] or specs
            # A namespace package comes last.
            specs.sort(key=lambda each: each[1].loader is None)
            package = self._own_package(top)
            for folder, spec in [package] if package is not None else specs:
                real = folder._claimed(top, spec)
                self._found[asked] = folder, real
                return real
            for folder in searched:  # its file is gone
                known = folder.known_name(top)
                if known is not None and owner_of(known) is folder:
                    return known
        return self._not_theirs(top)

    def _own_package(self, top: str) -> tuple[ModuleFolder, ModuleSpec] | None:
        """Return the package that this directory is, if it also has a module of the package's name.

        Programs that import the package mean the package by that name, never the module.
        """
        own = self.find(top) if os.path.basename(self.path) == top else None
        if own is None or _is_package(own):
            return None
        around = [folder for folder in self.project.shared if folder is not self]
        if os.path.exists(os.path.join(self.path, "__init__.py")):
            around.append(self.project.folder(os.path.dirname(self.path)))
        for folder in around:
            spec = folder.find(top)
            if spec is not None and self.path in (spec.submodule_search_locations or ()):
                return folder, spec
        return None

    def _means_library(self, top: str, importer: str) -> bool:
        """Whether a file imports a library of its own name: it would not import itself."""
        itself = importer == os.path.join(self.path, f"{top}.py")
        return itself and owner_of(top) is None and _elsewhere(top) is not None

    def _not_theirs(self, top: str) -> str:
        """Return the real name of a module outside this project: a library's, or an unknown one."""
        owner = owner_of(top)
        if owner is None:
            if top in sys.modules or not _project_path.intersection(sys.path) or _elsewhere(top):
                self._not_found.add(top)
                return top
            raise ModuleNotFoundError(f"No module named {top!r}", name=top)
        elsewhere = _elsewhere(top)
        if elsewhere is not None and elsewhere.origin == origin(sys.modules[top]):
            return top
        raise ModuleNotFoundError(
            f"No module named {top!r} for the code in {self.path}; "
            f"{origin(sys.modules[top])} belongs to another project",
            name=top,
        )

    def look_again(self) -> None:
        """Forget which modules were found: files may have been written since."""
        self._found.clear()
        self._not_found.clear()

    def known_name(self, top: str) -> str | None:
        """Return the name in `sys.modules` that a module of this directory has got, if any."""
        return self._names.get(top)

    def find(self, top: str) -> ModuleSpec | None:
        """Find the module of that name in this directory, None if there is none."""
        if top == _OURS or BuiltinImporter.find_spec(top) or FrozenImporter.find_spec(top):
            return None
        spec = PathFinder.find_spec(top, [self.path])
        if spec is not None and spec.loader is None and _elsewhere(top) is not None:
            return None  # a namespace package, which comes after any module
        return spec

    def _claimed(self, top: str, spec: ModuleSpec) -> str:
        """Claim a name in `sys.modules` for a module of this directory, and return it."""
        with _lock:
            real = self._names.get(top, top)
            if real == top and not self._may_be_plain(top, spec):
                real = f"{top}@{self._digest}"
            if real != top and type(spec.loader) not in _RENAMING:
                raise ModuleNameTaken(
                    f"{spec.origin} can't be imported beside {origin(sys.modules.get(top))}: only modules in "
                    "Python source can have another name; open one of the two projects in another hitl-tui",
                    name=top,
                    path=spec.origin,
                )
            self._names[top] = real
            _folders_by_name[real] = self
            _used.add(top)
            if real not in sys.modules:
                _settled.discard(real)
            return real

    def _may_be_plain(self, top: str, spec: ModuleSpec) -> bool:
        """Whether no other module has a name or would be imported by it."""
        if top in sys.modules:
            owner = owner_of(top)
            return owner is self or (owner is None and origin(sys.modules[top]) == spec.origin is not None)
        if _folders_by_name.get(top, self) is not self and (_importing[top] or top not in _settled):
            return False
        elsewhere = _elsewhere(top)
        return elsewhere is None or elsewhere.origin == spec.origin is not None

    def spec(self, real: str) -> ModuleSpec | None:
        """Return the module spec of a top-level module of this directory, by its name in `sys.modules`."""
        if (file := self._files.get(real)) is not None:
            return importlib.util.spec_from_file_location(
                real, file, loader=_SourceLoader(self, real, str(file)), submodule_search_locations=None
            )
        spec = self.find(real.partition("@")[0])
        return None if spec is None else self.own(real, spec)

    def own(self, real: str, spec: ModuleSpec) -> ModuleSpec:
        """Return a module spec that marks the module as this directory's before its code runs."""
        loader = spec.loader
        locations = spec.submodule_search_locations
        for kind, ours in _LOADERS.items():
            if type(loader) is kind:
                assert isinstance(loader, (SourceFileLoader, SourcelessFileLoader, ExtensionFileLoader))
                marking = ours(self, real, loader.path)
                given = None if locations is None else list(locations)
                found = importlib.util.spec_from_file_location(
                    real, loader.path, loader=marking, submodule_search_locations=given
                )
                assert found is not None
                return found
        if loader is None and locations is not None:
            spec = ModuleSpec(real, _NamespaceLoader(self), is_package=True)
            spec.submodule_search_locations = list(locations)
        return spec

    def mark(self, module: ModuleType) -> None:
        """Mark a module with this folder, and with the name by which its project imports it."""
        setattr(module, OWNER, self)
        if (file := self._files.get(module.__name__)) is not None:
            setattr(module, IS_FILE, file.name)
        elif PRIVATE.search(module.__name__):
            setattr(module, IS_FILE, plain_name(module.__name__))


def _is_package(spec: ModuleSpec) -> bool:
    return spec.submodule_search_locations is not None


def project_folder(path: Path, project: Project | None = None) -> ModuleFolder:
    """Return the folder of a graph file.

    Args:
        project: the project whose langgraph.json or graph file names the file; None for the file's directory.
    """
    with _lock:
        return project.folder(os.path.abspath(path)) if project is not None else project_of(path).shared[0]


def project_of(path: Path) -> Project:
    """Return the project of a directory."""
    with _lock:
        root = os.path.abspath(path)
        known = _projects.get(root)
        if known is None:
            _begin()
            known = _projects[root] = Project(root)
            _keep_on_path()
        return known


def _begin() -> None:
    """Install the import hooks when a process opens its first project."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
        for switch in _switches:
            switch(True)


def look_again() -> None:
    """Forget which modules of all projects were found: files may have been written since."""
    importlib.invalidate_caches()
    for project in list(_projects.values()):
        for folder in list(project.folders.values()):
            folder.look_again()


def follow_projects(switch: Callable[[bool], None]) -> None:
    """Register a function: it is called with True for the first project, False when all are forgotten."""
    _switches.append(switch)


def forget_projects() -> None:
    """Forget all projects and their modules, for processes that open one after another, such as tests."""
    if not _projects:
        return
    with one_loads, _lock:
        for name, module in list(sys.modules.items()):
            if folder_of(module) is not None:
                del sys.modules[name]
        _projects.clear()
        _keep_on_path()
        for names in (_folders_by_name, _importing, _settled, _used, _known_path):
            names.clear()
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not _finder]
        for switch in _switches:
            switch(False)


def loaded_module(name: str, directory: Path) -> ModuleType | None:
    """Return the module that a directory's code has imported by a name, None if it has not."""
    top = name.partition(".")[0]
    project = _projects.get(os.path.abspath(directory))
    for folder in project.shared if project is not None else ():
        if (real := folder.known_name(top)) and owner_of(real) is folder:
            return sys.modules.get(real + name[len(top) :])
    return sys.modules.get(name) if owner_of(top) is None else None


def is_used(top: str) -> bool:
    """Whether a project has a module of its own by that name, or had one."""
    return top in _used


def is_librarys(top: str) -> bool:
    """Whether a name means a library's module, the same one to all code outside projects."""
    module = sys.modules.get(top)
    if module is None:
        spec = _elsewhere(top)
        return spec is not None and not (spec.has_location and spec.origin and not is_library(spec.origin))
    if owner_of(top) is not None:
        return False
    file = origin(module)
    return top not in _used or file is None or is_library(file)


def folders_with(top: str) -> list[tuple[ModuleFolder, str]]:
    """Return the folders of all projects that have a module of that name, each with its file."""
    return [
        (folder, spec.origin or os.path.join(folder.path, top))
        for project in list(_projects.values())
        for folder in list(project.folders.values())
        if (spec := folder.find(top)) is not None
    ]


def folder_around(file: str) -> ModuleFolder | None:
    """Return the project folder that contains a file at any depth, None if another program's is nearer.

    Raises:
        ModuleNameTaken: several projects import from that directory.
    """
    around = [
        folder
        for project in list(_projects.values())
        for folder in list(project.folders.values())
        if file.startswith(os.path.join(folder.path, ""))
    ]
    if not around:
        return None
    nearest = max(len(folder.path) for folder in around)
    entries = [entry for entry in sys.path if entry not in _project_path and len(entry) > nearest]
    if any(file.startswith(os.path.join(entry, "")) for entry in entries):
        return None
    found = [folder for folder in around if len(folder.path) == nearest]
    if len(found) > 1:
        raise ModuleNameTaken(
            f"{file} was loaded by its path, and lies in a directory of {found[0].project.root} and of "
            f"{found[1].project.root}: import it by name, or open the two projects in two hitl-tui",
            path=file,
        )
    return found[0]


def file_of(name: str) -> str:
    """Return the file of a project's module by its name in `sys.modules`, or else that name."""
    top = name.partition(".")[0]
    folder = _folders_by_name.get(top)
    spec = folder.spec(top) if folder is not None else None
    return (spec and spec.origin) or plain_name(name)


def plain_name(name: str) -> str:
    """Return the name by which a project's code imports a module."""
    return PRIVATE.sub("", name)


@contextlib.contextmanager
def loading(folder: ModuleFolder) -> Iterator[None]:
    """Load a project's code in this context, one thread at a time; it may add its own `sys.path` entries."""
    with one_loads:
        if not _loaders:
            _know_path()
        _loaders.append(threading.get_ident())
        try:
            yield
        finally:
            with _lock:
                folder.project.adopt_new_entries()
                _loaders.pop()
                if not _loaders:
                    _keep_on_path()


def _keep_on_path() -> None:
    """Keep a single project at the end of `sys.path`, for processes that it starts; several would mix."""
    sys.path[:] = [entry for entry in sys.path if entry not in _project_path]
    _project_path.clear()
    if len(_projects) == 1:
        [only] = _projects.values()
        entries = [folder.path for folder in only.shared if folder.path not in sys.path]
        sys.path += entries
        _project_path.update(entries)
    _know_path()


def _know_path() -> None:
    _known_path.clear()
    _known_path.update(sys.path)


def _digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:8]


def origin(module: ModuleType | None) -> str | None:
    """Return the file of a loaded module."""
    return getattr(module, "__file__", None)


def folder_of(module: ModuleType) -> ModuleFolder | None:
    """Return the project folder of a module, None for a library's module."""
    return getattr(module, "__dict__", {}).get(OWNER)


def owner_of(name: str) -> ModuleFolder | None:
    """Return the project folder of a loaded module, None for a library's or an unloaded module."""
    module = sys.modules.get(name)
    return None if module is None else folder_of(module)


def _elsewhere(top: str) -> ModuleSpec | None:
    """Find the module that a name means outside all projects."""
    for finder in sys.meta_path:
        if isinstance(finder, _Finder):
            continue
        path = [entry for entry in sys.path if entry not in _project_path] if finder is PathFinder else None
        spec: ModuleSpec | None = finder.find_spec(top, path)
        if spec is not None:
            return spec
    return None


@contextlib.contextmanager
def being_imported(real: str) -> Iterator[None]:
    """Import a project's module in this context; errors then name the module as the project's code does."""
    top = real.partition(".")[0]
    with _lock:
        is_claimed = top in _folders_by_name
        if is_claimed:
            _importing[top] += 1
    try:
        yield
    except ImportError as error:
        if PRIVATE.search(str(error)):
            error.msg = plain_name(error.msg)
            error.args = (error.msg,)
        if error.name is not None:
            error.name = plain_name(error.name)
        raise
    finally:
        with _lock:
            if is_claimed:
                _importing[top] -= 1
                _settled.add(top)


class _MarkingLoader:
    folder: ModuleFolder

    def exec_module(self, module: ModuleType) -> None:
        self.folder.mark(module)
        super().exec_module(module)  # type: ignore[misc]


class _SourceLoader(_MarkingLoader, SourceFileLoader):  # type: ignore[misc]
    def __init__(self, folder: ModuleFolder, name: str, path: str) -> None:
        super().__init__(name, path)
        self.folder = folder


class _SourcelessLoader(_MarkingLoader, SourcelessFileLoader):
    def __init__(self, folder: ModuleFolder, name: str, path: str) -> None:
        super().__init__(name, path)
        self.folder = folder


class _ExtensionLoader(_MarkingLoader, ExtensionFileLoader):
    def __init__(self, folder: ModuleFolder, name: str, path: str) -> None:
        super().__init__(name, path)
        self.folder = folder


class _NamespaceLoader(Loader):
    """Loader of a namespace package: a directory without `__init__.py`."""

    def __init__(self, folder: ModuleFolder) -> None:
        self._folder = folder

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        self._folder.mark(module)


_RENAMING: Final = (SourceFileLoader, SourcelessFileLoader, type(None))
"""Loaders of modules by ending; None for a directory."""
_LOADERS: Final[Mapping[type, Callable[[ModuleFolder, str, str], Loader]]] = {
    SourceFileLoader: _SourceLoader,
    SourcelessFileLoader: _SourcelessLoader,
    ExtensionFileLoader: _ExtensionLoader,
}


class _AliasLoader(Loader):
    """Loader of a private name from another process, for a module that has a different name here."""

    def __init__(self, real: str) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = _import_module(self._real)


class _Finder(MetaPathFinder):
    """Finds the modules of projects."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top, dot, _ = fullname.partition(".")
        if dot:
            owner = owner_of(top)
            spec = None if owner is None else PathFinder.find_spec(fullname, path)
            return owner.own(fullname, spec) if owner is not None and spec is not None else None
        reloaded = getattr(target, "__dict__", {}).get(OWNER)
        if isinstance(reloaded, ModuleFolder):
            return reloaded.spec(fullname)
        private = PRIVATE.search(fullname) is not None
        folder = _folders_by_name.get(fullname) if private or _importing[fullname] else None
        if folder is not None:
            return folder.spec(fullname)
        return _from_another_process(fullname) if private else None


def _from_another_process(private: str) -> ModuleSpec | None:
    plain = plain_name(private)
    for project in list(_projects.values()):
        for folder in list(project.folders.values()):
            if private == f"{plain}@{folder._digest}" and folder.find(plain):
                with _lock:
                    real = folder.real_name(plain)
                return folder.spec(real) if real == private else ModuleSpec(private, _AliasLoader(real))
    return None


_finder: Final = _Finder()
