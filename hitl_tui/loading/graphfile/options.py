"""What may be said about a graph file from outside: the models of its agents, and how long they reply."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hitl_tui.engine.runner import GraphRunner
from hitl_tui.errors import UsageError
from hitl_tui.loading.graphfile.agents import Models
from hitl_tui.loading.graphfile.build import load_graph_file
from hitl_tui.stores import MemoryCheckpointer

_FORCED = ("model", "api_base", "max_tokens")
_DEFAULTED = ("model", "api_base")
_FALLBACK = tuple(f"default_{name}" for name in _DEFAULTED)


def open_graph_file(
    path: Path, options: Mapping[str, Any], defaults: Mapping[str, Any]
) -> tuple[GraphRunner, dict[str, Any]]:
    """The runner of a file, and the options that build the same one again.

    Args:
        options: `model`, `api_base` and `max_tokens` take the place of what every agent says; `default_model`
            and `default_api_base` are for agents that say nothing.
        defaults: `model` and `api_base` for agents that say nothing, and `checkpointer`.

    Raises:
        UsageError: an unknown option, or the file can't be read.
        GraphInvalid: lists everything that is wrong with the file.
    """
    unknown = [name for name in options if name not in _FORCED + _FALLBACK]
    if unknown:
        listed = ", ".join(f"--{name.replace('_', '-')}" for name in unknown)
        raise UsageError(f"{path.name} takes no {listed}", f"it takes {', '.join(_FORCED)}")
    fallback = {f"default_{name}": defaults[name] for name in _DEFAULTED if defaults.get(name)}
    given = fallback | {name: value for name, value in options.items() if value}
    store = defaults.get("checkpointer")
    runner = load_graph_file(path, MemoryCheckpointer() if store is None else store, Models(**given))
    return runner, given
