"""Sources: the part of a thread's record that says how to build its graph again in another process."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hitl_tui.engine.graph.builder import StateGraph
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import WITHIN
from hitl_tui.engine.nodes.children import graph_of_child
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.state.values import keepable
from hitl_tui.errors import UsageError
from hitl_tui.loading.code import OURS, blaming, code_files
from hitl_tui.loading.graphs import (
    current_directory,
    find_langgraph_graph,
    load_graph,
    named_file,
    resolve_spec,
    sample_path,
)
from hitl_tui.loading.langgraph import LangGraphSource, open_langgraph
from hitl_tui.loading.modules import loaded_module
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
    """Return a runner on `store` of the graph that `spec` names, and the source for threads that it starts.

    `options` and `defaults` are those of `load_graph`.  Options must be JSON and contain no key or password,
    as they are stored with each thread.

    Raises:
        UsageError: it is a LangGraph graph.
    """
    directory = directory or current_directory()
    where = name_graph(spec, directory)
    loaded = load_graph(spec, options, {_STORE_OPTION: store, **(defaults or {})}, directory=directory)
    graph = loaded.graph
    if isinstance(graph, StateGraph):
        built = graph
        graph = blaming(spec, lambda: built.compile(checkpointer=store))
    kept = {name: value for name, value in loaded.options.items() if name != _STORE_OPTION}
    return graph.with_store(store, {**where, "options": kept})


def open_langgraph_graph(
    spec: str,
    data: Path,
    options: Mapping[str, Any] | None = None,
    *,
    checkpointer: Any = None,
    keep_memory: bool = False,
    directory: Path | None = None,
) -> LangGraphSource | None:
    """Open the LangGraph graph that `spec` names, None if it is one of ours; its file is imported.

    Args:
        data, checkpointer, keep_memory: as for `open_langgraph`.
        options: refused, since LangGraph graphs take none.
    """
    directory = directory or current_directory()
    target = find_langgraph_graph(spec, options, directory=directory)
    if target is None:
        return None
    source = {**name_graph(spec, directory), "options": {}}
    return open_langgraph(target, source, data, checkpointer=checkpointer, keep_memory=keep_memory)


def name_graph(spec: str, directory: Path) -> dict[str, Any]:
    """Return the source of a graph without its options; imports nothing.

    Raises:
        UsageError: there is no such file, or its name is no valid text.
    """
    where: dict[str, Any] = {"graph": resolve_spec(spec, directory)}
    if ":" in spec and not spec.startswith(OURS) and named_file(spec) is None:
        where["directory"] = str(directory)
    for place in where.values():
        if keepable(place) != place:
            raise UsageError(
                f"{place!r} is not UTF-8 text, so a thread can't record where its graph is",
                "rename the file or the directory",
            )
    return where


def source_file(source: Mapping[str, Any]) -> Path | None:
    """Return the user's own file from which a graph of this source is built, None if there is none."""
    spec = source.get("graph")
    if not isinstance(spec, str) or sample_path(spec):
        return None
    path = named_file(spec) or _module_file(spec.partition(":")[0], source.get("directory"))
    return None if path is None or path.is_relative_to(Path(__file__).resolve().parents[1]) else path


def _module_file(name: str, directory: object) -> Path | None:
    """Return the file of a module that is imported, or was found in a directory."""
    folder = Path(directory) if isinstance(directory, str) else current_directory()
    if file := getattr(loaded_module(name, folder), "__file__", None):
        return Path(file)
    if not isinstance(directory, str):
        return None
    module = Path(directory, *name.split("."))
    places = (module.with_suffix(".py"), module / "__init__.py")
    return next((path for path in places if os.path.isfile(path)), None)


def source_files(path: Path) -> set[Path]:
    """Return the loaded files of the user from which a graph is built.

    They are its file, the imported modules beside it, and the files that a TOML file names.

    Args:
        path: its file, from `source_file`.
    """
    files = {path, *code_files(path.parent)}
    if path.suffix == ".toml":
        from hitl_tui.loading.toml import read_toml

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
    """Return a runner of a thread's graph, from the source in its record.

    Args:
        graph: a GRAPH to use instead of the record's.
        options: options for a suggested command to find the store, such as " --store FILE".
        trust: the graphs that the user agreed to run; None if the caller vouches for the record.

    Raises:
        NotTrusted: the user has not agreed to what the record names; nothing of it was imported.
        UsageError: what the source names does not exist any more.
        GraphInvalid: it is no graph any more, or its code failed.
    """
    if graph is not None:
        runner = open_graph(graph, store)
        if trust is not None:
            trust.record(runner.source, "named")
        source = {**runner.source, WITHIN: source.get(WITHIN, [])}
        return GraphRunner(graph_of_child(runner.graph, source), store).with_store(store, source)
    spec = source.get("graph")
    if not isinstance(spec, str):
        of_checkpoints = "langgraph" in source
        why = (
            "is of checkpoints, which don't"
            if of_checkpoints
            else "was started from Python or imported and doesn't"
        )
        raise UsageError(
            f"the thread {thread_id!r} {why} name its graph",
            f"name its graph:{options}#GRAPH"
            if of_checkpoints and options
            else f"open it with its graph: hitl-tui run GRAPH --thread {shlex.quote(thread_id)}{options}",
        )
    directory = source.get("directory")
    if (file := named_file(spec)) and not os.path.isfile(file):
        raise UsageError(
            f"{file} was moved or deleted",
            f"name its new place: hitl-tui run GRAPH --thread {shlex.quote(thread_id)}{options}",
        )
    if trust is not None:
        trust.check(source)
    runner = open_graph(
        spec, store, source.get("options"), directory=Path(directory) if isinstance(directory, str) else None
    )
    if trust is not None:
        trust.record(source)
    if not source.get(WITHIN):
        return runner
    return GraphRunner(graph_of_child(runner.graph, source), store).with_store(store, source)
