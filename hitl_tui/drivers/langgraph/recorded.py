"""Reconstructs a LangGraph graph from its checkpoints, to view threads whose code is missing.

Nodes, channels and taken edges are read from the rows.  No row is written, and nothing that a row names is
imported (see `strict`).
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from hitl_tui.errors import NoSuchStore, StoreUnusable, UsageError
from hitl_tui.given_files import expanded, real_path

if TYPE_CHECKING:
    from langgraph.pregel import Pregel

_START, _END = "__start__", "__end__"
_WHOLE = ("__root__", _END)
"""The channel that is all of the state, of a graph whose state has no fields and of an entrypoint."""
_BRANCH, _JOIN, _TASKS = "branch:to:", "join:", "__pregel_tasks"
_PULLED = "~__pregel_pull, "
_FEW: Final = 50

_LEAVES = """
    SELECT type, checkpoint FROM checkpoints AS leaf
    WHERE thread_id = ? AND checkpoint_ns = '' AND NOT EXISTS (
        SELECT 1 FROM checkpoints AS later WHERE later.thread_id = leaf.thread_id
        AND later.checkpoint_ns = '' AND later.parent_checkpoint_id = leaf.checkpoint_id
    ) ORDER BY checkpoint_id DESC LIMIT ?
"""
_TAKEN = """
    SELECT DISTINCT task_path, channel FROM writes
    WHERE thread_id = ? AND checkpoint_ns = '' AND (channel LIKE 'branch:to:%' OR channel LIKE 'join:%')
"""
_ON_FROM_SENT = """
    SELECT writes.channel, checkpoints.type, checkpoints.checkpoint FROM (
        SELECT channel, max(checkpoint_id) AS id FROM writes
        WHERE thread_id = :thread AND checkpoint_ns = '' AND task_path LIKE '~__pregel_push%'
        AND channel LIKE 'branch:to:%' GROUP BY channel
    ) AS writes JOIN checkpoints ON checkpoints.thread_id = :thread AND checkpoints.checkpoint_ns = ''
    AND checkpoints.checkpoint_id = writes.id
"""
_SENT = """
    SELECT task_path, type, value FROM writes
    WHERE thread_id = ? AND checkpoint_ns = '' AND channel = '__pregel_tasks' LIMIT ?
"""

_ASKED = """
    SELECT DISTINCT thread_id, checkpoint_id FROM writes
    WHERE checkpoint_ns = '' AND channel = '__interrupt__'
"""


_WITH_PATHS: Final = "CREATE TEMP VIEW writes AS SELECT *, '' AS task_path FROM main.writes"


class Checkpoints:
    """A SQLite file of LangGraph's checkpointer, opened read-only.

    Attributes:
        saver: a LangGraph checkpointer on the file.

    Raises:
        UsageError: the package for it is missing.
        NoSuchStore: there is no such file.
        StoreUnusable: the file can't be opened, or has another format.
    """

    def __init__(self, path: Path) -> None:
        from hitl_tui.drivers.langgraph.strict import StrictSerializer
        from hitl_tui.loading.langgraph import EXTRA_HINT

        try:
            from langgraph.checkpoint.sqlite import SqliteSaver
        except ImportError as error:
            raise UsageError(f"checkpoints of LangGraph in SQLite need {error.name}", EXTRA_HINT) from None
        self.path = real_path(expanded(path))
        if not os.path.isfile(self.path):
            raise NoSuchStore(f"there is no file {self.path}", "name a file that a SqliteSaver wrote")
        try:
            connection = sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True, check_same_thread=False)
            tables = {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master")}
            columns = {str(row[1]) for row in connection.execute("PRAGMA table_info(writes)")}
        except sqlite3.Error as error:
            raise StoreUnusable(f"{self.path} can't be read: {error}") from None
        if not {"checkpoints", "writes"} <= tables:
            connection.close()
            raise StoreUnusable(
                f"{self.path} holds no checkpoints of LangGraph",
                "name our own threads without langgraph+",
            )
        self._connection = connection
        self._has_paths = "task_path" in columns
        if not self._has_paths:  # an older checkpointer wrote the file, and this one queries the column
            connection.execute(_WITH_PATHS)
        self._serializer = StrictSerializer()
        self.saver = SqliteSaver(connection, serde=self._serializer)
        self.saver.jsonplus_serde = self._serializer  # type: ignore[assignment]
        self.saver.is_setup = True  # otherwise it would create its tables

    def graph(self, thread: str) -> Pregel[Any, Any, Any, Any]:
        """Return the graph of a thread, reconstructed from its checkpoints; its nodes do nothing."""
        return _graph(self._facts(thread), self.saver)

    def asked(self) -> set[tuple[str, str]]:
        """Return the threads and checkpoints at which a node has asked something, answered or not."""
        return {(str(thread), str(checkpoint)) for thread, checkpoint in self._connection.execute(_ASKED)}

    @property
    def oldest(self) -> str:
        """Return the oldest checkpoint's id, which tells this file from an earlier one of its name."""
        row = self._connection.execute("SELECT min(checkpoint_id) FROM checkpoints").fetchone()
        return str(row[0] or "")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _facts(self, thread: str) -> _Facts:
        read = self._serializer.loads_typed
        leaves = [
            leaf
            for row in self._connection.execute(_LEAVES, (thread, _FEW))
            if isinstance(leaf := read(row), dict)
        ]
        triggers: dict[str, set[str]] = {}
        channels: set[str] = set()
        edges: set[tuple[str, str]] = set()
        for leaf in leaves:
            channels |= {str(name) for name in leaf.get("channel_versions", {})}
            for node, seen in leaf.get("versions_seen", {}).items():
                triggers.setdefault(str(node), set()).update(map(str, seen))
            for send in leaf.get("channel_values", {}).get(_TASKS, ()):
                triggers.setdefault(send.node, set())
        edges |= self._edges(thread) if self._has_paths else set()
        nodes = {name for name in triggers if not _is_internal(name)}
        nodes |= {channel.rpartition(":")[2] for channel in channels if channel.startswith((_BRANCH, _JOIN))}
        return _Facts(sorted(nodes), triggers, channels, {edge for edge in edges if all(edge)})

    def _edges(self, thread: str) -> set[tuple[str, str]]:
        """Return the edges that were taken, derived from the paths of tasks."""
        read = self._serializer.loads_typed
        edges: set[tuple[str, str]] = set()
        for path, channel in self._connection.execute(_TAKEN, (thread,)):
            sources = channel.split(":")[1].split("+") if channel.startswith(_JOIN) else [_node_of(path)]
            edges |= {(source, channel.rpartition(":")[2]) for source in sources if source}
        for path, *row in self._connection.execute(_SENT, (thread, _FEW)):
            edges |= {(_node_of(path), send.node) for send in [read(tuple(row))] if hasattr(send, "node")}
        for channel, *row in self._connection.execute(_ON_FROM_SENT, {"thread": thread}):
            sent = read(tuple(row)).get("channel_values", {}).get(_TASKS, ())
            edges |= {(send.node, channel.removeprefix(_BRANCH)) for send in sent}
        return edges


class _Facts(NamedTuple):
    """What the rows of a thread reveal about its graph."""

    nodes: list[str]
    triggers: dict[str, set[str]]
    channels: set[str]
    edges: set[tuple[str, str]]


def _node_of(path: str) -> str:
    """Return the node in a task's path, "" for a task that a `Send` made."""
    return path.removeprefix(_PULLED).partition(",")[0] if path.startswith(_PULLED) else ""


def _is_internal(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _graph(facts: _Facts, saver: Any) -> Pregel[Any, Any, Any, Any]:
    from langchain_core.runnables import RunnableLambda, RunnablePassthrough
    from langchain_core.runnables.graph import Graph
    from langgraph.channels import EphemeralValue, NamedBarrierValue, Topic
    from langgraph.pregel import Pregel
    from langgraph.pregel._read import PregelNode
    from langgraph.types import Send

    class Recorded(Pregel[Any, Any, Any, Any]):
        """A graph that draws only the edges that were taken."""

        def get_graph(self, *_given: Any, **_options: Any) -> Graph:
            drawn = Graph()
            ends = {_START: drawn.add_node(RunnablePassthrough(), _START)}
            for name in facts.nodes:
                ends[name] = drawn.add_node(RunnablePassthrough(), name)
            ends[_END] = drawn.add_node(RunnablePassthrough(), _END)
            for source, target in sorted(facts.edges):
                if source in ends and target in ends:
                    several = sum(edge[0] == source for edge in facts.edges) > 1
                    drawn.add_edge(ends[source], ends[target], conditional=several)
            for name in facts.nodes:
                if all(source != name for source, _target in facts.edges):
                    drawn.add_edge(ends[name], ends[_END])
            return drawn

    nothing: Any = RunnableLambda(_run_nothing)
    keys = sorted(
        name for name in facts.channels if not _is_internal(name) and ":" not in name and name != _TASKS
    )
    values = keys or [name for name in _WHOLE if name in facts.channels][:1]
    channels: dict[str, Any] = {name: unknown_channel() for name in values}
    channels |= {_START: EphemeralValue(Any), _TASKS: Topic(Send, accumulate=False)}
    is_entrypoint = any(_START in facts.triggers.get(name, ()) for name in facts.nodes)
    first = {} if is_entrypoint else {_START: PregelNode(channels=_START, triggers=[_START], bound=nothing)}
    nodes: dict[str, Any] = dict(first)
    for name in facts.nodes:
        seen = facts.triggers.get(name, set())
        triggers = {_START} if _START in seen else {f"{_BRANCH}{name}"}
        triggers |= {channel for channel in facts.channels if _joins(channel, name)}
        nodes[name] = PregelNode(channels=list(values), triggers=sorted(triggers), bound=nothing)
        for trigger in triggers - {_START}:
            joined = trigger.startswith(_JOIN)
            members = set(trigger.split(":")[1].split("+")) if joined else set()
            channels[trigger] = (
                NamedBarrierValue(str, members) if joined else EphemeralValue(Any, guard=False)
            )
    whole: Any = keys or next(iter(values), keys)
    return Recorded(
        nodes=nodes,
        channels=channels,
        input_channels=_START,
        output_channels=whole,
        stream_channels=whole,
        checkpointer=saver,
        name="LangGraph",
    )


def unknown_channel() -> Any:
    """A channel whose operator is unknown."""
    from langgraph.channels import AnyValue

    class unknown(AnyValue[Any]):  # noqa: N801 - screens show it as the reducer's name
        """A channel that keeps the last value, also if several were written at once."""

    return unknown(Any)


def _run_nothing(_state: Any) -> NoReturn:
    raise UsageError("a graph read from its checkpoints runs nothing", "open the thread with its graph")


def _joins(channel: str, node: str) -> bool:
    return channel.startswith(_JOIN) and channel.rpartition(":")[2] == node
