"""Finds and builds the graph that GRAPH names on the command line."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias

import msgspec

from hitl_tui.engine.graph.builder import StateGraph
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.errors import GraphInvalid, UsageError, in_words
from hitl_tui.given_files import expanded, real_path
from hitl_tui.loading.code import blaming, import_file, import_named
from hitl_tui.loading.langgraph import (
    LangGraphObject,
    find_langgraph,
    is_factory,
    is_langgraph,
    speaks_langgraph,
)
from hitl_tui.loading.modules import folder_of
from hitl_tui.suggest import did_you_mean

_SUFFIXES: Final = (".py", ".toml")
_GRAPH_FILES: Final = (*_SUFFIXES, ".json")


def sample_path(name: str) -> Path | None:
    """Return the file of a sample, the Python file if there are two; None if no sample has that name.

    Samples for LangGraph are called `langgraph/NAME`.
    """
    # Files have an ending and modules an attribute, so neither can be a sample.
    if "." in name or ":" in name or (name not in sample_names() and name not in langgraph_samples()):
        return None
    paths = (_folder() / f"{name}{suffix}" for suffix in _SUFFIXES)
    return next(path for path in paths if os.path.isfile(path))


def sample_names() -> list[str]:
    """Return the names of all samples."""
    return sorted({path.stem for path in _folder().iterdir() if path.suffix in _SUFFIXES})


def langgraph_samples() -> list[str]:
    """Return the names of the samples for LangGraph."""
    return sorted(f"langgraph/{path.stem}" for path in (_folder() / "langgraph").glob("*.py"))


@cache
def _folder() -> Path:
    """Return the folder of samples: inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_bundled" / "sample_graphs"
    return installed if os.path.isdir(installed) else package.parent / "sample_graphs"


def scripts_folder() -> Path:
    """Return the folder of the bundled presentation scripts."""
    return _folder() / "shows"


Graph: TypeAlias = StateGraph | GraphRunner

USUAL_NAMES = ("runner", "graph", "workflow", "build")
"""Names under which a graph is searched if GRAPH names only a file."""

_NO_GRAPHS = frozenset(
    {"pyproject.toml", "setup.py", "conftest.py", "noxfile.py", "__init__.py", "__main__.py"}
)
_FEW = 12
_BUILT = ("StateGraph", "GraphRunner")
_PROJECT: Final = "langgraph.json"
_KINDS = "a StateGraph, a GraphRunner, or a function that returns one"


class Loaded(msgspec.Struct, frozen=True):
    """A graph, and the options that it was built with."""

    graph: Graph
    options: Mapping[str, Any]


def current_directory() -> Path:
    """Return the current directory, in which relative files are searched.

    Raises:
        UsageError: it was deleted.
    """
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError("the current directory has gone", "change to one that is there") from None


def resolve_spec(spec: str, directory: Path | None = None) -> str:
    """Return GRAPH with an absolute file path, as stored with a thread.

    Raises:
        UsageError: neither a file, nor `module:attribute`, nor a sample.
    """
    if sample_path(spec):
        return spec
    path, name = _split(spec)
    if path is None:
        return spec
    full = real_path((directory or current_directory()) / expanded(path))
    if not os.path.isfile(full):
        what = f"{full} is a directory" if os.path.isdir(full) else f"there is no file {full}"
        raise UsageError(what, _instead_of(full))
    return f"{full}:{name}" if name else str(full)


def _instead_of(missing: Path) -> str:
    """Suggest a file that may have been meant instead of a missing one."""
    from difflib import get_close_matches

    if os.path.isdir(missing):
        if os.path.isfile(missing / _PROJECT):
            return f"give its {_PROJECT}"
        return "give a .py or .toml file"
    if not os.path.isdir(missing.parent):
        return f"there is no directory {missing.parent} either"
    with suppress(OSError):
        here = {path.stem: path.name for path in missing.parent.iterdir() if _may_be_a_graph(path)}
        # Names are compared without their endings, which are similar anyway.
        near = get_close_matches(missing.stem, here, n=1)
        if near:
            return f"did you mean {here[near[0]]!r}?"
        if missing.stem not in sample_names() and 0 < len(here) <= _FEW:
            return f"in that directory there are: {', '.join(sorted(here.values()))}"
    if missing.stem in sample_names():
        return f"did you mean the sample? It is called {missing.stem}, without an ending"
    return "`hitl-tui new advisor my.toml` writes a start"


def _may_be_a_graph(path: Path) -> bool:
    named = path.suffix in _SUFFIXES and path.name not in _NO_GRAPHS
    return (named or path.name == _PROJECT) and os.path.isfile(path)


def named_file(spec: str) -> Path | None:
    """Return the file that a GRAPH names, None for a module or a sample."""
    return None if sample_path(spec) else _split(spec)[0]


def load_graph(
    spec: str,
    options: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
    *,
    directory: Path | None = None,
) -> Loaded:
    """Load the graph that `spec` names.

    Args:
        spec: `module:attribute`, `file.py`, `file.py:name`, `file.toml`, `langgraph.json`,
            `langgraph.json:id` or the name of a sample.
        options: arguments for a function that builds the graph; it must accept all of them.
        defaults: arguments that are passed only if the function accepts them.
        directory: where relative files and modules are searched; None for the current directory.

    Raises:
        UsageError: nothing has that name, or it does not accept the options.
        GraphInvalid: it is no graph, or its code failed (`CodeFailed`).
    """
    directory = directory or current_directory()
    path, _ = _split(resolve_spec(spec, directory))
    if path is not None and path.suffix == ".toml":
        from hitl_tui.loading.graphfile.build import open_graph_file

        return Loaded(*open_graph_file(path, options or {}, defaults or {}))
    target = _target(spec, directory)
    if isinstance(target, LangGraphObject):
        raise _only_run(target.label)
    return _build(*target, dict(options or {}), dict(defaults or {}))


def find_langgraph_graph(
    spec: str, options: Mapping[str, Any] | None = None, *, directory: Path | None = None
) -> LangGraphObject | None:
    """Return the LangGraph graph that `spec` names, None if it is one of ours; its code is imported.

    Args:
        options: refused, since LangGraph graphs take none.

    Raises:
        UsageError, CodeFailed: as for `load_graph`.
    """
    directory = directory or current_directory()
    path, _ = _split(resolve_spec(spec, directory))
    if path is not None and path.suffix == ".toml":
        return None
    target = _target(spec, directory)
    if not isinstance(target, LangGraphObject):
        return None
    if options:
        raise UsageError(
            f"{target.label} is a graph of LangGraph and takes no {_listed(options)}",
            "say in its code which model it uses, or read an environment variable there",
        )
    return target


def _only_run(label: str) -> UsageError:
    return UsageError(
        f"{label} is a graph of LangGraph, which can't be used here",
        "`hitl-tui run` runs it; what does is imported at the top of its file",
    )


def _target(spec: str, directory: Path) -> tuple[str, object] | LangGraphObject:
    """Return the object that a GRAPH in Python or JSON names, with its place in words; calls nothing."""
    path, name = _split(resolve_spec(spec, directory))
    if path is not None and path.suffix == ".json":
        from hitl_tui.loading.langgraph_json import load_langgraph_json

        return load_langgraph_json(path, name)
    if path is None:
        module_name, _, name = spec.partition(":")
        module = import_named(module_name, directory)
    else:
        module = import_file(path)
    public = {key: value for key, value in vars(module).items() if not key.startswith("_")}
    if not name and speaks_langgraph(public):
        return find_langgraph(public, spec, module)
    label, target = _find(module, name, spec)
    if is_langgraph(target) or (not isinstance(target, Graph) and is_factory(target, public)):
        return LangGraphObject(label, name, target, folder=folder_of(module))
    _check_builder(label, target, None if path is None else module.__name__)
    return label, target


def _split(spec: str) -> tuple[Path | None, str]:
    """Split a spec into a file and a name in it, or (None, attribute) for a module."""
    if sample := sample_path(spec):
        return sample, ""
    head, colon, name = spec.rpartition(":")
    if colon and head.endswith((".py", ".json")):
        return Path(head), name
    if colon and head.endswith(".toml"):
        raise UsageError(f"{spec!r}: a graph file holds one graph", f"leave out {':' + name!r}: {head}")
    if spec.endswith(_GRAPH_FILES):
        return Path(spec), ""
    if colon and all(part.isidentifier() for part in head.split(".")) and name:
        return None, name
    samples = ", ".join([*sample_names(), *langgraph_samples()])
    hint = f"give module:attribute, file.py, file.py:name, file.toml, langgraph.json, or a sample: {samples}"
    for suffix in (".py", ".toml"):
        if os.path.isfile(f"{spec}{suffix}"):  # unlike Path.is_file, it accepts names that no file can have
            hint = f"did you mean {spec}{suffix}?"
    raise UsageError(f"{spec!r} doesn't name a graph", hint)


def _find(module: ModuleType, name: str, spec: str) -> tuple[str, object]:
    """Return the named attribute of a module, or its only graph."""
    public = {key: value for key, value in vars(module).items() if not key.startswith("_")}
    if name:
        target: object = module
        for part in name.split("."):
            if not hasattr(target, part):
                graphs = [key for key, value in public.items() if isinstance(value, Graph) or callable(value)]
                raise UsageError(f"{spec}: there is no {part!r} in it", did_you_mean(part, graphs))
            target = getattr(target, part)
        return f"{name} in {spec}", target
    usual = [usual_name for usual_name in USUAL_NAMES if usual_name in public]
    # If a file has a builder function and an uncompiled graph, the function compiles that graph.
    if (
        compiled := [usual_name for usual_name in usual if not isinstance(public[usual_name], StateGraph)]
        or usual
    ):
        return f"{compiled[0]} in {spec}", public[compiled[0]]
    graphs = _outermost({key: value for key, value in public.items() if isinstance(value, Graph)})
    if len(graphs) == 1:
        return f"{graphs[0]} in {spec}", public[graphs[0]]
    problem = f"several graphs ({', '.join(sorted(graphs))})" if graphs else "no graph"
    example = sorted(graphs)[0] if graphs else "NAME"
    raise UsageError(
        f"{spec} has {problem}, and nothing called {', '.join(USUAL_NAMES[:-1])} or {USUAL_NAMES[-1]}",
        f"say which: {spec}:{example}",
    )


def _outermost(graphs: Mapping[str, Graph]) -> list[str]:
    """Return the names of graphs inside no other one; only the compiled one, if exactly one is compiled."""
    inside = [
        part
        for candidate in graphs.values()
        if isinstance(candidate, StateGraph)
        for part in candidate.subgraphs
    ]
    outer = [name for name, graph in graphs.items() if not any(graph is part for part in inside)]
    compiled = [name for name in outer if isinstance(graphs[name], GraphRunner)]
    return compiled if len(compiled) == 1 else outer


def _check_builder(label: str, target: object, own: str | None) -> None:
    """Refuse to call a function that was never meant to build a graph, such as `os:system`.

    Args:
        own: the module of the user's file; its functions need no declaration as builders.
    """
    if isinstance(target, Graph) or not callable(target):
        return
    declared = getattr(target, "__annotations__", {}).get("return")
    word = declared if isinstance(declared, str) else getattr(declared, "__name__", "")
    if word.rpartition(".")[2] in _BUILT or (own is not None and getattr(target, "__module__", None) == own):
        return
    raise UsageError(
        f"{label} isn't declared to build a graph, and was not called",
        "say in its signature what it returns: -> StateGraph or -> GraphRunner",
    )


def _build(label: str, target: object, options: dict[str, Any], defaults: dict[str, Any]) -> Loaded:
    if isinstance(target, Graph):
        if options:
            raise UsageError(
                f"{label} is built already and takes no {_listed(options)}",
                "leave it out, or name a function that builds the graph with it",
            )
        return Loaded(target, {})
    if not callable(target):
        raise GraphInvalid(f"{label} is {in_words(target)}", f"it must be {_KINDS}")
    arguments = _arguments(label, target, options, defaults)
    graph = blaming(label, lambda: target(**arguments))
    if isinstance(graph, Graph):
        return Loaded(graph, arguments)
    if is_langgraph(graph):
        raise _only_run(label)
    if inspect.iscoroutine(graph):
        graph.close()
        raise GraphInvalid(
            f"{label} is async", "write def instead of async def: building a graph waits for nothing"
        )
    forgot = "; did it forget its `return`?" if graph is None else ""
    raise GraphInvalid(
        f"{label} returned {in_words(graph)}", f"it must return a StateGraph or a GraphRunner{forgot}"
    )


def _arguments(label: str, target: Any, options: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function: every option, and the defaults that it accepts."""
    try:
        parameters = inspect.signature(target).parameters
    except ValueError:
        return options
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = [name for name, parameter in parameters.items() if parameter.kind in kinds]
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return defaults | options
    if unknown := {name: value for name, value in options.items() if name not in names}:
        takes = f"it takes {', '.join(names)}" if names else "it takes no options"
        raise UsageError(f"{label} takes no {_listed(unknown)}", takes)
    arguments = {name: value for name, value in defaults.items() if name in names} | options
    empty = inspect.Parameter.empty
    needed = [name for name in names if parameters[name].default is empty and name not in arguments]
    if needed:
        raise UsageError(f"{label} needs {', '.join(needed)}", "give the parameters defaults, or the options")
    return arguments


def _listed(options: Mapping[str, Any]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in options)
