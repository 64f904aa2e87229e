"""A graph on a LangGraph server (Agent Server, `langgraph dev`, aegra), with a compiled graph's interface.

What the server does not report is shown as unknown: reducers have no name.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from langgraph.constants import END
from langgraph.types import Command

from hitl_tui.config import SERVER_HEADERS
from hitl_tui.drivers.langgraph.recorded import unknown_channel
from hitl_tui.drivers.langgraph.server_edits import TRIAL, ServerTrial, update_on_route
from hitl_tui.drivers.langgraph.server_requests import (
    R,
    busy,
    failed_there,
    once_more_if_lost,
    raising_busy,
    with_readable_errors,
)
from hitl_tui.drivers.langgraph.server_states import no_state, revived_part, snapshot_of
from hitl_tui.drivers.langgraph.subgraphs import NO_STEPS
from hitl_tui.errors import AnswerRefused, ServerLost, ServerRefused, StoreUnusable, UsageError

if TYPE_CHECKING:
    from langgraph.store.base import Item
    from langgraph.types import StateSnapshot

    from hitl_tui.engine.commands.command import DoubleTexting

ENTRY: Final = "input"
"""The name by which the single value is given that an entrypoint takes."""
_ROOT: Final = "__root__"
"""The channel of a graph whose state is one value, as of `StateGraph(dict)`."""
_MOST: Final = 100
_UNREADABLE: Final = 422
"""What a server answers to what it can't read: another form of it, or a thread's name that is no UUID."""
_NO_ID: Final = 400
"""What aegra answers where a subgraph's newest checkpoint is asked for in the way that Agent Servers want."""
_MOST_STATES: Final = 1_000
_NO_STOPS: Final = "aegra stops a run nowhere: it goes on to where the graph asks, or to its end"
_AEGRA_CANT: Final[Mapping[str, str]] = {
    "step": _NO_STOPS,
    "pause": _NO_STOPS,
    "update_state": "aegra copies no thread, and an edit is tried on a copy before it is made",
}
"""What a thread on aegra can't be told, and why, by verb."""
_JOINS: Final = 30
_BETWEEN_JOINS: Final = 1.0
"""Times that a run is joined again while the server can't be reached, and seconds between them."""
_ENDING: Final = 1.0
_BETWEEN_LOOKS: Final = 0.1
"""Seconds that a run which has told its end may still count as running, and between looks at that."""
_TIMEOUT: Final = (5.0, 300.0, 300.0, 5.0)
"""Seconds to connect, to read, to write and to wait for a connection."""


_UNKNOWN_INTERRUPT: Final = "UnknownInterruptError"
"""What a server that resumes strictly calls an answer to an interrupt that does not wait."""
_THEIR_MODES: Final = {"messages": "messages-tuple"}
"""What the SDK calls modes of a stream otherwise than a graph does."""


class MadeRoom(NamedTuple):
    """What was done on a server so that a thread can be run.

    Attributes:
        ended: the ids of the runs that were cancelled or awaited.
        known: the ids of all runs at that time: checkpoints that they save later are expected.
    """

    ended: tuple[str, ...]
    known: frozenset[str]


class ServerNode:
    """A node of a server's graph; its code stays on the server."""

    bound = None
    flat_writers = (None,)
    retry_policy = ()
    timeout = None


class ServerThreads:
    """The threads of one graph on its server, used in place of a checkpointer.

    Attributes:
        unreadable: threads whose state the server could not read at the last listing, and why.
    """

    def __init__(self, client: Any, graph: str) -> None:
        self._client = client
        self._graph = graph
        self.unreadable: dict[str, str] = {}

    def heads(self) -> Mapping[str, str]:
        """Return each thread's newest checkpoint, the thread that changed last first."""
        heads: dict[str, str] = {}
        self.unreadable = {}
        for row in self._rows():
            thread = str(row["thread_id"])
            try:
                state = once_more_if_lost(partial(self._client.threads.get_state, thread))
            except ServerRefused as error:
                if not failed_there(error):
                    raise
                # Its reducers fail on the stored writes: the other threads can still be listed.
                self.unreadable[thread] = error.message
                continue
            if identity := (state.get("checkpoint") or {}).get("checkpoint_id"):
                heads[thread] = str(identity)
        return heads

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        offset, order = 0, {"sort_by": "updated_at", "sort_order": "desc"}
        while True:
            page = self._client.threads.search(
                metadata={"graph_id": self._graph}, limit=_MOST, offset=offset, **order
            )
            yield from (row for row in page if TRIAL not in (row.get("metadata") or {}))
            if len(page) < _MOST:
                return
            offset += _MOST


class ServerStore:
    """The long-term store of a server, read-only."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def search(self, prefix: Sequence[str], *, limit: int, offset: int) -> list[Item]:
        """Do what `BaseStore.search` does."""
        from langgraph.store.base import Item

        found = once_more_if_lost(
            lambda: self._client.store.search_items(list(prefix), limit=limit, offset=offset)
        )
        names = ("value", "key", "namespace", "created_at", "updated_at")  # aegra reports no times
        return [Item(**{name: item.get(name) for name in names}) for item in found["items"]]


class _Edge(NamedTuple):
    source: str
    target: str
    data: Any
    conditional: bool


class _Drawn(NamedTuple):
    nodes: tuple[str, ...]
    edges: tuple[_Edge, ...]


class ServerSubgraph:
    """A subgraph of a server's graph: its drawing and its channels.

    Args:
        drawn: the drawing of the whole outer graph, subgraphs included.
        place: the path of nodes to it, separated by ":".
        schemas: the schemas of all subgraphs by their paths of nodes, separated by "|".
    """

    checkpointer = None
    builder = None
    interrupt_before_nodes: tuple[str, ...] = ()
    interrupt_after_nodes: tuple[str, ...] = ()
    why_no_steps = NO_STEPS

    def __init__(self, drawn: Mapping[str, Any], place: str, schemas: Mapping[str, Any]) -> None:
        begin = f"{place}:"
        nodes = [str(node["id"]) for node in drawn["nodes"]]
        own = [node.removeprefix(begin) for node in nodes if node.startswith(begin)]
        self._inside = {
            name.rpartition("|")[2]: ServerSubgraph(drawn, name.replace("|", ":"), schemas)
            for name in schemas
            if name.rpartition("|")[0] == place.replace(":", "|")
        }
        names = [name for name in own if ":" not in name]
        self.nodes = {name: ServerNode() for name in dict.fromkeys([*names, *self._inside])}
        edges = tuple(
            _Edge(
                edge["source"].removeprefix(begin).partition(":")[0],
                edge["target"].removeprefix(begin).partition(":")[0],
                edge.get("data"),
                bool(edge.get("conditional")),
            )
            for edge in drawn["edges"]
            if edge["source"].startswith(begin) and edge["target"].startswith(begin)
        )
        self._drawn = _Drawn(
            tuple(self.nodes), tuple(edge for edge in dict.fromkeys(edges) if edge.source != edge.target)
        )
        self.stream_channels_asis = _channels(schemas.get(place.replace(":", "|"), {}))
        self.channels = {name: unknown_channel() for name in self.stream_channels_asis}

    def get_graph(self) -> _Drawn:
        """As `Pregel.get_graph`."""
        return self._drawn

    def get_subgraphs(self, **_options: Any) -> Iterator[tuple[str, Any]]:
        """As `Pregel.get_subgraphs`."""
        return iter(self._inside.items())


_PLACE: Final = ("thread_id", "checkpoint_ns", "checkpoint_id")


class ServerGraph:
    """One graph of a server; runs continue if the connection is lost, and are joined again.

    Args:
        url: the URL of the server.
        assistant: the id of an assistant or a graph; "" for the only graph there.

    Raises:
        UsageError: there is no such assistant, or several fit.
        HitlError: the server can't be reached, or refuses.
    """

    builder = None
    refusals: Mapping[str, str]
    """What its threads can't be told, and why, by verb."""

    def __init__(self, url: str, assistant: str = "") -> None:
        from langgraph_sdk import get_sync_client

        client = get_sync_client(url=url, headers=server_headers(), timeout=_TIMEOUT)
        self._connections = client.http.client
        try:
            self._read(url, with_readable_errors(client), assistant)
        except BaseException:
            self.close()
            raise

    def _read(self, url: str, client: Any, assistant: str) -> None:
        """Ask the server about the graph."""
        chosen = _chosen(url, client, assistant)
        name = chosen["assistant_id"]
        self._client: Any = client
        self._assistant = name
        self.graph_id = self.name = str(chosen["graph_id"])
        about = _about(client)
        is_aegra = about.get("name") == "Aegra"
        self._can_resume_strictly = _can_resume_strictly(client, about)
        self.runs_through = is_aegra
        self.refusals = _AEGRA_CANT if is_aegra else {}
        # aegra treats a null input as a new one, and starts from the beginning.
        self._going_on: Command[Any] | None = Command(resume={}) if is_aegra else None
        self.checkpointer: Any = ServerThreads(client, self.graph_id)
        self.store = ServerStore(client)
        drawn = _asked(url, lambda: client.assistants.get_graph(name))
        self._drawn = _drawing(drawn)
        self.interrupt_before_nodes = _stops(drawn, "before")
        self.interrupt_after_nodes = _stops(drawn, "after")
        self.nodes = {node: ServerNode() for node in self._drawn.nodes if node != "__end__"}
        schemas = _asked(url, lambda: client.assistants.get_schemas(name))
        channels = _channels(schemas)
        is_one_value = channels in ([END], [_ROOT])
        self.stream_channels_asis: str | list[str] = channels[0] if is_one_value else channels
        self.entry_parameter, self.entry_fields = _entry(schemas.get("input_schema") or {})
        self.context_properties = _context_properties(schemas, chosen.get("context") or {})
        self.channels = {channel: unknown_channel() for channel in channels}
        inside = _asked(url, lambda: client.assistants.get_subgraphs(name, recurse=True))
        outer = [place for place in inside if "|" not in place and place in self.nodes]
        whole = _asked(url, lambda: client.assistants.get_graph(name, xray=True)) if outer else {}
        self._inside = {place: ServerSubgraph(whole, place, inside) for place in outer}

    def close(self) -> None:
        """Close the connections to the server."""
        self._connections.close()

    def get_graph(self) -> Any:
        """As `Pregel.get_graph`."""
        return self._drawn

    def get_subgraphs(self, **_options: Any) -> Iterator[tuple[str, Any]]:
        """Do what `Pregel.get_subgraphs` does; subgraphs can be viewed and edited, not stepped through."""
        return iter(self._inside.items())

    def stream(
        self,
        input: Any,  # noqa: A002
        config: Any = None,
        *,
        stream_mode: Sequence[str] = (),
        subgraphs: bool = False,
        **options: Any,
    ) -> Iterator[Any]:
        """Do what `Pregel.stream` with `version="v2"` does; never starts a second run of a running thread.

        Raises:
            ServerBusy: the server already runs the thread.
            RemoteException: the run has failed on the server.
        """
        place = config["configurable"]
        given = self._going_on if input is None else input
        if configurable := {name: value for name, value in place.items() if name not in _PLACE}:
            options["config"] = {"configurable": configurable}
        if isinstance(given, Command) and given.resume and self._can_resume_strictly:
            options["strict_resume"] = True
        if at := place.get("checkpoint_id"):
            options["checkpoint"] = {"checkpoint_ns": place.get("checkpoint_ns", ""), "checkpoint_id": at}
        try:
            with raising_busy():
                parts = self._client.runs.stream(
                    place["thread_id"],
                    self._assistant,
                    input=None if isinstance(given, Command) else given,
                    command=asdict(given) if isinstance(given, Command) else None,
                    stream_mode=[_THEIR_MODES.get(mode, mode) for mode in stream_mode],
                    stream_subgraphs=subgraphs,
                    if_not_exists="create",
                    multitask_strategy="reject",
                    on_disconnect="continue",
                    stream_resumable=True,
                    **options,
                )
                yield from _local_parts(parts, stream_mode)
        except ServerLost:
            self._join(place["thread_id"])

    def _join(self, thread: str) -> None:
        """Wait until a thread's runs whose stream was cut have ended; the checkpoints have the rest.

        Raises:
            StoreUnusable: the server can't be reached any more.
        """
        for _ in range(_JOINS):
            try:
                self._wait_for(thread, self._open_runs(thread))
                return
            except ServerLost:
                time.sleep(_BETWEEN_JOINS)
        raise StoreUnusable(
            "the connection to the server was lost; the run continues there", "open the thread again later"
        )

    def _wait_for(self, thread: str, runs: Iterable[Mapping[str, Any]]) -> None:
        """Wait until runs have ended; some servers answer a join early, after a timeout."""
        for run in runs:
            self._client.runs.join(thread, run["run_id"])
            while _is_open(self._client.runs.get(thread, run["run_id"])):
                time.sleep(_BETWEEN_LOOKS)
                self._client.runs.join(thread, run["run_id"])

    def cancel(self, thread: str) -> None:
        """Cancel a thread's runs on the server; the saved supersteps are kept."""
        self.make_room(thread, "interrupt")

    def refuse_busy(self, thread: str) -> None:
        """Raise an error if the server runs a thread.

        Raises:
            ServerBusy: it does.
        """
        end = time.monotonic() + _ENDING
        while self._open_runs(thread):
            if time.monotonic() >= end:
                raise busy()
            time.sleep(_BETWEEN_LOOKS)

    def make_room(self, thread: str, strategy: DoubleTexting) -> MadeRoom:
        """Cancel the server's runs of a thread, or wait until they have ended.

        Our own run starts after the head was read again: queued after another one it would start from a state
        that nobody has seen.
        """
        ended = []
        runs = self._runs(thread)
        for run in filter(_is_open, runs):
            if strategy == "enqueue":
                self._wait_for(thread, [run])
            else:
                try:
                    self._client.runs.cancel(thread, run["run_id"], wait=True, action=strategy)
                except ServerRefused as error:
                    if error.status not in (404, 409):  # it has ended meanwhile
                        raise
            ended.append(str(run["run_id"]))
        return MadeRoom(tuple(ended), frozenset(str(run["run_id"]) for run in runs))

    def _open_runs(self, thread: str) -> list[Any]:
        return list(filter(_is_open, self._runs(thread)))

    def _runs(self, thread: str) -> list[Any]:
        """Return the newest runs of a thread."""
        try:
            return list(once_more_if_lost(lambda: self._client.runs.list(thread, limit=_MOST)))
        except ServerRefused as error:
            if not _is_no_thread(error, thread):
                raise
            return []  # the thread does not exist yet

    def get_state(self, config: Any, *, subgraphs: bool = False) -> StateSnapshot:
        """Do what `Pregel.get_state` does."""
        place = dict(config["configurable"])
        try:
            state = once_more_if_lost(partial(self._state_at, place, subgraphs))
        except ServerRefused as error:
            if failed_there(error):
                raise _unreadable(place["thread_id"]) from None
            if not _is_no_thread(error, place["thread_id"]):
                raise
            return no_state(config)
        return snapshot_of(state, config)

    def _state_at(self, place: Mapping[str, Any], subgraphs: bool) -> Any:
        ask, thread = self._client.threads.get_state, place["thread_id"]
        if place.get("checkpoint_id"):
            return ask(thread, checkpoint=place, subgraphs=subgraphs)
        ns = place.get("checkpoint_ns")
        if not ns:
            return ask(thread, subgraphs=subgraphs)
        try:
            return ask(thread, checkpoint=place, subgraphs=subgraphs)
        except ServerRefused as error:
            if error.status != _NO_ID:
                raise
            return ask(thread, subgraphs=subgraphs, params={"checkpoint_ns": ns})

    def get_state_history(
        self, config: Any, *, before: Any = None, limit: int | None = None
    ) -> Iterator[StateSnapshot]:
        """Do what `Pregel.get_state_history` does."""
        place = config["configurable"]
        try:
            states = once_more_if_lost(partial(self._history, place, before, limit or _MOST_STATES))
        except ServerRefused as error:
            if failed_there(error):
                raise _unreadable(place["thread_id"]) from None
            if not _is_no_thread(error, place["thread_id"]):
                raise
            states = []
        for state in states:
            yield snapshot_of(state, config)

    def _history(self, place: Mapping[str, Any], before: Any, limit: int) -> Sequence[Any]:
        thread, ns = place["thread_id"], place.get("checkpoint_ns")
        inside = {"checkpoint_ns": ns} if ns else None
        ask = partial(self._client.threads.get_history, thread, checkpoint=inside)
        try:
            return list(ask(limit=limit, before=before))
        except ServerRefused as error:
            if before is None or error.status != _UNREADABLE:
                raise
        # aegra supports no paging by checkpoint.
        states, last = ask(limit=_MOST_STATES), before["configurable"]["checkpoint_id"]
        older = [state for state in states if state["checkpoint"]["checkpoint_id"] < last][:limit]
        if len(older) < limit and len(states) == _MOST_STATES:
            raise StoreUnusable(
                f"the server shows only the newest {_MOST_STATES:,} checkpoints of thread {thread!r}",
                "view a shorter thread",
            )
        return older

    def update_state(self, config: Any, values: Any, as_node: str | None = None) -> Any:
        """Do what `Pregel.update_state` does, for a checkpoint that the config names.

        Raises:
            ServerBusy: the server runs the thread.
        """
        place = dict(config["configurable"])
        with raising_busy():
            if isinstance(values, Command):
                at = update_on_route(self._client, place["thread_id"], values, as_node)
                return {"configurable": dict(at)}
            saved = self._client.threads.update_state(
                place["thread_id"], values, as_node=as_node, checkpoint=place
            )
        return {"configurable": dict(saved["checkpoint"])}

    def trial(self, config: Any, inner: Any) -> ServerTrial:
        """Return a trial of edits of a checkpoint: a copy of its thread, which is deleted at the end.

        Args:
            inner: this graph, or its subgraph whose channels are edited.
        """
        return ServerTrial(self._client, config, self.get_state, inner.get_graph)


def _local_parts(parts: Iterable[Any], modes: Sequence[str]) -> Iterator[Any]:
    """Yield the parts of a stream in a local graph's form."""
    for event, data, *_ in parts:
        mode, *ns = event.split("|")
        if mode == "error":
            from langgraph.pregel.remote import RemoteException

            if isinstance(data, Mapping) and data.get("error") == _UNKNOWN_INTERRUPT:
                raise AnswerRefused(
                    f"the server says that this request no longer waits: {data.get('message', '')}",
                    "it must be asked again: continue the thread, then answer what it asks",
                )
            raise RemoteException(data)
        if mode in modes:
            part: Any = revived_part({"type": mode, "ns": tuple(ns), "data": data})
            if mode != "messages" or hasattr(part["data"][0], "content"):
                yield part


def _about(client: Any) -> Mapping[str, Any]:
    """Return what a server says about itself, empty if it says nothing."""
    try:
        about = client.http.get("/info")
    except ServerRefused:
        return {}
    return about if isinstance(about, Mapping) else {}


def _can_resume_strictly(client: Any, about: Mapping[str, Any]) -> bool:
    """Whether the server and the SDK can refuse an answer to an interrupt that no longer waits."""
    flags = about.get("flags")
    says = {**about, **(flags if isinstance(flags, Mapping) else {})}
    return bool(says.get("strict_resume")) and "strict_resume" in signature(client.runs.stream).parameters


def _is_no_thread(error: ServerRefused, thread: str) -> bool:
    """Whether a server refuses because it has no thread of that name; Agent Servers take only UUIDs."""
    if error.status != _UNREADABLE:
        return error.status == 404
    try:
        uuid.UUID(thread)
    except ValueError:
        return True
    return False


def _is_open(run: Mapping[str, Any]) -> bool:
    return run["status"] in ("pending", "running")


def _unreadable(thread: str) -> StoreUnusable:
    return StoreUnusable(f"the server can't read the state of thread {thread!r}", "see its log")


def _channels(schemas: Mapping[str, Any]) -> list[str]:
    state = schemas.get("state_schema") or schemas.get("output_schema") or {}
    if "properties" not in state and state.get("additionalProperties") is True:
        return [_ROOT]
    return list(state.get("properties", {}))


def _entry(schema: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return the name of an entrypoint's single-value input, "" if it takes values by name, and those names.

    Args:
        schema: of the input. It does not have the name of the parameter.
    """
    if schema.get("type") == "object" or "properties" in schema:
        return "", tuple(schema.get("properties") or ())
    return ENTRY, ()


def _drawing(graph: Mapping[str, Any]) -> _Drawn:
    """Return a graph as the server draws it."""
    edges = [
        _Edge(edge["source"], edge["target"], edge.get("data"), bool(edge.get("conditional")))
        for edge in graph["edges"]
    ]
    return _Drawn(tuple(str(node["id"]) for node in graph["nodes"]), tuple(edges))


def _stops(graph: Mapping[str, Any], when: str) -> tuple[str, ...]:
    """Return the nodes before or after which a graph was compiled to stop, as its drawing marks them.

    A server runs each superstep with our stops, which replace those of the graph.
    """
    marks = {str(node["id"]): (node.get("metadata") or {}).get("__interrupt") for node in graph["nodes"]}
    return tuple(name for name, mark in marks.items() if when in str(mark or "").split(","))


def _context_properties(schemas: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the fields of a graph's context by name, as JSON Schemas.

    Args:
        given: the assistant's context, which is used if a thread has none.
    """
    declared = (schemas.get("context_schema") or {}).get("properties", {})
    return {
        name: {**about, "default": given[name]} if name in given else about
        for name, about in declared.items()
        if isinstance(about, Mapping)
    }


def server_headers() -> dict[str, str]:
    """Return the request headers set in the environment; the SDK itself sends LangGraph's API key.

    Raises:
        UsageError: they are not a JSON object of texts.
    """
    text = os.environ.get(SERVER_HEADERS, "")
    if not text:
        return {}
    try:
        headers = json.loads(text)
    except ValueError:
        headers = None
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise UsageError(
            f"{SERVER_HEADERS} is not a JSON object of texts", """write {"Authorization": "Bearer …"}"""
        )
    return headers


def _chosen(url: str, client: Any, assistant: str) -> Mapping[str, Any]:
    names = ("assistant_id", "graph_id", "name")
    rows = _asked(
        url, lambda: [{name: row[name] for name in names} for row in client.assistants.search(limit=_MOST)]
    )
    matches = [row for row in rows if assistant in ("", *row.values())]
    if len(matches) == 1 or (matches and assistant):
        return matches[0]
    graphs = ", ".join(sorted({str(row["graph_id"]) for row in rows}))
    problem = f"{url} has no assistant {assistant!r}" if assistant else f"{url} has several graphs"
    raise UsageError(problem if rows else f"{url} has no graph", f"say which: --assistant ID, of {graphs}")


def _asked(url: str, ask: Callable[[], R]) -> R:
    try:
        return ask()
    except ServerLost as error:
        raise ServerLost(f"{url}: {error.message}", "is it running? `langgraph dev` starts one") from None
    except ServerRefused as error:
        raise ServerRefused(f"{url}: {error.message}", error.hint, error.status) from None
    except Exception as error:  # the SDK may raise anything for a reply of another shape
        message = f"{url} answers as no Agent Server does: {type(error).__name__}: {error}"
        raise ServerRefused(message, "is it a LangGraph server?", 0) from None
