"""Sources: what a thread's record says about how to build its graph again in another process."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hitl_tui.engine.graph.builder import StateGraph
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.nodes.children import WITHIN, inner_graph
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.state.values import keepable
from hitl_tui.errors import GraphInvalid, UsageError
from hitl_tui.loading.code import OURS, blaming, code_files
from hitl_tui.loading.graphs import (
    Graph,
    Loaded,
    current_directory,
    load_graph,
    named_file,
    resolve_spec,
    spec_file,
)
from hitl_tui.loading.langgraph import LangGraphObject, LangGraphSource, open_langgraph
from hitl_tui.loading.toml import read_toml
from hitl_tui.loading.trust import Trust

_STORE_OPTION = "checkpointer"


def open_graph(
    spec: str,
    store: Store,
    options: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
    *,
    directory: Path | None = None,
) -> GraphRunner:
    """A runner of the graph that `spec` names, on `store`, with the source for threads it starts.

    `options` and `defaults` are those of `load_graph`.  Options must be JSON, and none may be a key or
    a password: they are stored with each thread.

    Raises:
        UsageError: it is a graph of LangGraph.
    """
    loaded, where = _load(spec, store, options, defaults, directory)
    if isinstance(loaded.graph, LangGraphObject):
        raise UsageError(
            f"{loaded.graph.label} is a graph of LangGraph, which can't be used here",
            "`hitl-tui run` runs it",
        )
    return _runner(spec, loaded.graph, {**where, "options": _kept(loaded)}, store)


def open_any_graph(
    spec: str,
    store: Store,
    options: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
    *,
    data: Path,
    directory: Path | None = None,
) -> GraphRunner | LangGraphSource:
    """As `open_graph`, also for the graphs of LangGraph, which keep their threads with a checkpointer.

    Args:
        data: as for `open_langgraph`.
    """
    loaded, where = _load(spec, store, options, defaults, directory)
    if isinstance(loaded.graph, LangGraphObject):
        return open_langgraph(loaded.graph, {**where, "options": {}}, data)
    return _runner(spec, loaded.graph, {**where, "options": _kept(loaded)}, store)


def _load(
    spec: str,
    store: Store | None,
    options: Mapping[str, Any] | None,
    defaults: Mapping[str, Any] | None,
    directory: Path | None,
) -> tuple[Loaded, dict[str, Any]]:
    """The graph that `spec` names, and how a record names it."""
    directory = directory or current_directory()
    where: dict[str, Any] = {"graph": resolve_spec(spec, directory)}
    if ":" in spec and not spec.startswith(OURS) and named_file(spec) is None:
        where["directory"] = str(directory)
    for place in where.values():
        if keepable(place) != place:
            raise UsageError(
                f"{place!r} is no text in UTF-8, so a thread can't note where its graph is",
                "rename the file or the directory",
            )
    return load_graph(spec, options, {_STORE_OPTION: store, **(defaults or {})}, directory=directory), where


def _kept(loaded: Loaded) -> dict[str, Any]:
    return {name: value for name, value in loaded.options.items() if name != _STORE_OPTION}


def _runner(spec: str, graph: Graph, source: Mapping[str, Any], store: Store) -> GraphRunner:
    if isinstance(graph, StateGraph):
        built = graph
        graph = blaming(spec, lambda: built.compile(checkpointer=store))
    return graph.with_store(store, source)


def source_file(source: Mapping[str, Any]) -> Path | None:
    """The user's own file that a graph of this source is built from, None where there is none."""
    spec = source.get("graph")
    path = spec_file(spec) or _module_file(spec, source) if isinstance(spec, str) else None
    return None if path is None or path.is_relative_to(Path(__file__).resolve().parents[1]) else path


def _module_file(spec: str, source: Mapping[str, Any]) -> Path | None:
    """The file of a module that was found in a directory once, though it can't be imported now."""
    directory = source.get("directory")
    if not isinstance(directory, str):
        return None
    module = Path(directory, *spec.partition(":")[0].split("."))
    places = (module.with_suffix(".py"), module / "__init__.py")
    return next((path for path in places if path.is_file()), None)


def source_files(path: Path) -> set[Path]:
    """All files of the user's own that a graph is built from, as far as they are loaded.

    Its file, the modules beside it that were imported, and the files that a TOML file names.

    Args:
        path: its file, as `source_file` tells it.
    """
    files = {path, *code_files(path.parent)}
    if path.suffix == ".toml":
        with suppress(UsageError):
            files |= set(read_toml(path).named_files())
    if path.suffix == ".json":
        from hitl_tui.loading.langgraph_json import read_langgraph_json

        with suppress(UsageError):
            config = read_langgraph_json(path)
            files |= {*config.files(), *(file for folder in config.folders() for file in code_files(folder))}
    return files


def reopen_graph(
    thread_id: str,
    source: Mapping[str, Any],
    store: Store,
    *,
    options: str = "",
    graph: str | None = None,
    trust: Trust | None = None,
) -> GraphRunner:
    """The runner of a thread, from the source in its record.

    Args:
        graph: what GRAPH is, where the record is not to say it.
        options: what a suggested command needs to find the store, as " --store FILE".
        trust: what the user agreed to run; None where the caller answers for the record.

    Raises:
        NotTrusted: the user has not agreed to what the record names; nothing of it was imported.
        UsageError: the source names nothing that is there now.
        GraphInvalid: it isn't a graph any more, or its code failed.
    """
    if graph is not None:
        runner = open_graph(graph, store)
        if trust is not None:
            trust.record(runner.source, "named")
        source = {**runner.source, WITHIN: source.get(WITHIN, [])}
        return GraphRunner(inner_graph(runner.graph, source), store).with_store(store, source)
    spec, directory = _trusted(thread_id, source, options, trust)
    runner = open_graph(spec, store, source.get("options"), directory=directory)
    if trust is not None:
        trust.record(source)
    if not source.get(WITHIN):
        return runner
    return GraphRunner(inner_graph(runner.graph, source), store).with_store(store, source)


def reopen_langgraph(
    thread_id: str,
    source: Mapping[str, Any],
    data: Path,
    *,
    options: str = "",
    graph: str | None = None,
    trust: Trust | None = None,
) -> LangGraphSource:
    """The graph of LangGraph of a thread, from the source in its record; arguments and errors as above.

    Args:
        data: as for `open_langgraph`.
    """
    spec, directory = (
        (graph, current_directory()) if graph is not None else _trusted(thread_id, source, options, trust)
    )
    loaded, where = _load(spec, None, None, None, directory)
    if not isinstance(loaded.graph, LangGraphObject):
        raise GraphInvalid(f"{spec} is no graph of LangGraph", f"thread {thread_id!r} was run by one")
    built = open_langgraph(loaded.graph, {**where, "options": {}}, data)
    if trust is not None:
        trust.record(built.source, "" if graph is None else "named")
    return built


def _trusted(
    thread_id: str, source: Mapping[str, Any], options: str, trust: Trust | None
) -> tuple[str, Path | None]:
    """GRAPH of a thread's record and the directory it is looked for in; the user has agreed to run it."""
    spec = source.get("graph")
    if not isinstance(spec, str):
        raise UsageError(
            f"the thread {thread_id!r} was begun from Python or imported and doesn't name its graph",
            f"open it with its graph: hitl-tui run GRAPH --thread {shlex.quote(thread_id)}{options}",
        )
    directory = source.get("directory")
    if (file := named_file(spec)) and not file.is_file():
        raise UsageError(
            f"there is no file {file} any more",
            f"say where it is now: hitl-tui run GRAPH --thread {shlex.quote(thread_id)}{options}",
        )
    if trust is not None:
        trust.check(source)
    return spec, Path(directory) if isinstance(directory, str) else None
