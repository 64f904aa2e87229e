"""Reads langgraph.json: the graphs of a LangGraph project, and what they need to be loaded."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from hitl_tui.declared import warn
from hitl_tui.errors import UsageError
from hitl_tui.given_files import read_given, real_path, text_of
from hitl_tui.loading.code import CodeFailed, import_file, import_named
from hitl_tui.loading.langgraph import LangGraphObject
from hitl_tui.loading.modules import ModuleFolder, Project, folder_of, project_of
from hitl_tui.suggest import did_you_mean

_FORM: Final = '"graphs": {"agent": "./agent.py:graph"}'
_MODULE: Final = re.compile(r"No module named '([^']+)'")
_JAVASCRIPT: Final = (".ts", ".js", ".mjs", ".tsx", ".cts", ".mts")


class LangGraphConfig(msgspec.Struct, frozen=True):
    """Contents of a langgraph.json; paths are relative to its directory.

    Attributes:
        path: the file.
        graphs: place by id, such as `./agent.py:graph`.
        dependencies: directories and packages that its code imports from.
        env: variables, or the file that holds them; "" for none.
        checkpointer: the place of a function that makes a checkpointer, "" for none.
    """

    path: Path
    text: str
    graphs: Mapping[str, str]
    dependencies: tuple[str, ...] = ()
    env: str | Mapping[str, str] = ""
    checkpointer: str = ""

    def place(self, *keys: str) -> str:
        """Return `file:line` of a key."""
        at = 0
        for key in keys:
            match = re.compile(rf"{re.escape(json.dumps(key))}\s*:").search(self.text, at)
            if match is None:
                break
            at = match.start()
        return f"{self.path}:{self.text.count(chr(10), 0, at) + 1}"

    def files(self) -> list[Path]:
        """Return the files that it names: those of its graphs and of its variables."""
        places = [*self.graphs.values(), self.checkpointer]
        named = [place.rpartition(":")[0] for place in places if place]
        named += [self.env] if isinstance(self.env, str) and self.env else []
        return [self.path, *(path for name in named if os.path.isfile(path := self._beside(name)))]

    def folders(self) -> list[Path]:
        """Return the directories that its code imports from, its own first."""
        local = [self._beside(name) for name in self.dependencies]
        folders = [self.path.parent, *(path for path in local if os.path.isdir(path))]
        sources = [path / "src" for path in folders if os.path.isdir(path / "src")]
        return list(dict.fromkeys([*folders, *sources]))

    def choose(self, name: str) -> str:
        """Return the id of the named graph; for "" that of the only graph, or "agent".

        Raises:
            UsageError: there is none of that name, or the choice is ambiguous.
        """
        if name in self.graphs:
            return name
        if name:
            raise UsageError(
                f"{self.path} has no graph {name!r}", did_you_mean(name, list(self.graphs)) or self._listed()
            )
        if len(self.graphs) == 1:
            return next(iter(self.graphs))
        raise UsageError(
            f"{self.path} has several graphs ({', '.join(sorted(self.graphs))})",
            f"say which: {self.path.name}:{sorted(self.graphs)[0]}",
        )

    def _listed(self) -> str:
        return f"there are: {', '.join(sorted(self.graphs))}" if self.graphs else ""

    def prepare(self) -> Project:
        """Set its variables, and let its code import from its directories.

        Raises:
            UsageError: the file of variables can't be read, or another such file beside it was opened.
        """
        os.environ.update(self.variables())
        project = project_of(self.path.parent)
        project.add_dependencies(self.path, self.folders())
        return project

    def variables(self) -> Mapping[str, str]:
        """Return its environment variables.

        Raises:
            UsageError: the file can't be read.
        """
        if not isinstance(self.env, str):
            return self.env
        if not self.env:
            return {}
        file = self._beside(self.env)
        if not os.path.isfile(file):
            warn(f"{self.place('env')}: there is no file {file}; its variables are not set")
            return {}
        from dotenv import dotenv_values

        return {name: value for name, value in dotenv_values(file).items() if value is not None}

    def load(self, place: str, *keys: str) -> tuple[str, Any, ModuleFolder | None]:
        """Load the object at a place such as `./agent.py:graph` or `package.agent:graph`.

        Args:
            keys: the keys in the file that name it.

        Returns:
            Its place in words, the object, and the directory of its code.

        Raises:
            UsageError: there is no such file, module or attribute, or a package is missing.
            CodeFailed: its code raised.
        """
        where = self.place(*keys)
        head, _, attribute = place.rpartition(":")
        if head.endswith(_JAVASCRIPT):
            raise UsageError(
                f"{where}: {place} is JavaScript", "open it through its server: hitl-tui run --server URL"
            )
        if not head or not attribute:
            raise UsageError(f"{where}: {place!r} names no object", f"write it as in {_FORM}")
        try:
            if head.endswith(".py") or "/" in head:
                module = import_file(self._file(head, where), project_of(self.path.parent))
            else:
                module = import_named(head, self.path.parent)
        except CodeFailed as error:
            raise self._missing(error) from None
        target: Any = module
        for part in attribute.split("."):
            if not hasattr(target, part):
                known = [name for name in vars(module) if not name.startswith("_")]
                raise UsageError(f"{where}: there is no {part!r} in {head}", did_you_mean(part, known))
            target = getattr(target, part)
        return f"{attribute} in {self._beside(head)}", target, folder_of(module)

    def _file(self, name: str, where: str) -> Path:
        file = self._beside(name)
        if not os.path.isfile(file):
            raise UsageError(f"{where}: there is no file {file}", "paths are relative to langgraph.json")
        return file

    def _missing(self, error: CodeFailed) -> CodeFailed:
        """Return the error, with a hint if a package is missing."""
        if match := _MODULE.search(error.message):
            package = match[1].partition(".")[0]
            listed = [name for name in self.dependencies if _normalised(name) == _normalised(package)]
            if listed:
                error.hint = f"langgraph.json lists it as a dependency: pip install {listed[0]!r}"
            elif any(os.path.isfile(self._beside(name) / "pyproject.toml") for name in self.dependencies):
                error.hint = f"install what the project depends on: pip install -e {self.path.parent}"
        return error

    def _beside(self, name: str) -> Path:
        return real_path(self.path.parent / name)


def _normalised(requirement: str) -> str:
    return re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def load_langgraph_json(path: Path, name: str) -> LangGraphObject:
    """Load a graph of a project; sets its variables and makes its directories importable.

    Args:
        name: the graph's id, "" for the only one.

    Raises:
        UsageError: the file or what it names can't be used; names file, line and key.
        CodeFailed: the project's code raised.
    """
    config = read_langgraph_json(path)
    graph = config.choose(name)
    config.prepare()
    label, value, folder = config.load(config.graphs[graph], "graphs", graph)
    return LangGraphObject(label, graph, value, config, folder)


def read_langgraph_json(path: Path) -> LangGraphConfig:
    """Read a langgraph.json, but none of the files that it names.

    Raises:
        UsageError: it can't be read, is no JSON, or has an invalid value; names file, key and line.
    """
    try:
        text = text_of(read_given(path))
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} isn't UTF-8 text (byte {error.start})", "save the file as UTF-8") from None
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{path}:{error.lineno}:{error.colno}: {error.msg}", "the file must be JSON without comments"
        ) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: {error}", "the file must be JSON of a sensible size") from None
    if not isinstance(values, dict) or "graphs" not in values:
        raise UsageError(f"{path} names no graphs", f"a langgraph.json has {_FORM}")
    return _config(real_path(path), text, values)


def _config(path: Path, text: str, values: Mapping[str, Any]) -> LangGraphConfig:
    bare = LangGraphConfig(path, text, {})

    def refuse(must: str, *keys: str) -> UsageError:
        return UsageError(
            f"{bare.place(*keys)}: {'.'.join(keys)} must be {must}", f"a langgraph.json has {_FORM}"
        )

    graphs = values["graphs"]
    if not isinstance(graphs, dict) or not graphs:
        raise refuse("an object with a place for each graph", "graphs")
    places = {}
    for name, value in graphs.items():
        place = value.get("path") if isinstance(value, dict) else value
        if not isinstance(place, str) or not place:
            raise refuse("a text as ./agent.py:graph, or an object with a path", "graphs", name)
        places[name] = place
    dependencies = values.get("dependencies", [])
    if not isinstance(dependencies, list) or not all(isinstance(part, str) for part in dependencies):
        raise refuse("a list of texts", "dependencies")
    env = values.get("env", "")
    if isinstance(env, dict):
        if not all(isinstance(value, str | int | float) for value in env.values()):
            raise refuse("a file, or an object of texts", "env")
        env = {name: str(value) for name, value in env.items()}
    elif not isinstance(env, str):
        raise refuse("a file, or an object of texts", "env")
    saver = values.get("checkpointer") or {}
    place = saver.get("path", "") if isinstance(saver, dict) else saver
    if not isinstance(place, str):
        raise refuse("an object with a path", "checkpointer")
    return LangGraphConfig(path, text, places, tuple(dependencies), env, place)
