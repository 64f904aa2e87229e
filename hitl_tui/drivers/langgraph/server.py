"""A graph on an Agent Server of LangGraph (or `langgraph dev`, aegra), with the surface of a compiled one.

What the server does not tell is said to be unknown: reducers have no name.
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

from langgraph.types import Command

from hitl_tui.config import SERVER_HEADERS
from hitl_tui.drivers.langgraph.recorded import unknown_channel
from hitl_tui.drivers.langgraph.server_edits import TRIAL, ServerTrial, update_on_route
from hitl_tui.drivers.langgraph.server_requests import (
    R,
    again_if_cut,
    busy,
    failed_there,
    telling_busy,
    worded,
)
from hitl_tui.drivers.langgraph.server_states import no_state, revived_part, snapshot_of
from hitl_tui.drivers.langgraph.subgraphs import NO_STEPS
from hitl_tui.errors import AnswerRefused, ServerLost, ServerRefused, StoreUnusable, UsageError

if TYPE_CHECKING:
    from langgraph.store.base import Item
    from langgraph.types import StateSnapshot

    from hitl_tui.engine.commands.command import DoubleTexting

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
    """What was done so that a thread can be run.

    Attributes:
        ended: the ids of the runs that were ended or waited for.
        known: those of all runs that were there then: what they save afterwards is what was waited for.
    """

    ended: tuple[str, ...]
    known: frozenset[str]


class ServerNode:
    """A node of a server's graph: what runs it stays there."""

    bound = None
    flat_writers = (None,)
    retry_policy = ()
    timeout = None


class ServerThreads:
    """In the place of a checkpointer: the threads of one graph on its server.

    Attributes:
        unreadable: threads whose state the server could not tell when they were listed last, and why.
    """

    def __init__(self, client: Any, graph: str) -> None:
        self._client = client
        self._graph = graph
        self.unreadable: dict[str, str] = {}

    def heads(self) -> Mapping[str, str]:
        """The newest checkpoint of each thread, the thread that changed last first."""
        heads: dict[str, str] = {}
        self.unreadable = {}
        for row in self._rows():
            thread = str(row["thread_id"])
            try:
                state = again_if_cut(partial(self._client.threads.get_state, thread))
            except ServerRefused as error:
                if not failed_there(error):
                    raise
                # Its reducers fail on what was written: the other threads can be looked at all the same.
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
    """The long-term store of a server, to be looked at."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def search(self, prefix: Sequence[str], *, limit: int, offset: int) -> list[Item]:
        """As `BaseStore.search`."""
        from langgraph.store.base import Item

        told = again_if_cut(lambda: self._client.store.search_items(list(prefix), limit=limit, offset=offset))
        names = ("value", "key", "namespace", "created_at", "updated_at")  # aegra tells no times
        return [Item(**{name: item.get(name) for name in names}) for item in told["items"]]


class _Edge(NamedTuple):
    source: str
    target: str
    data: Any
    conditional: bool


class _Drawn(NamedTuple):
    nodes: tuple[str, ...]
    edges: tuple[_Edge, ...]


class ServerSubgraph:
    """A graph inside one of a server: its picture and its channels.

    Args:
        drawn: all of the graph around it, with what is inside.
        place: the nodes that lead to it, with ":" between them.
        schemas: of all subgraphs, by the nodes that lead to them, with "|" between them.
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
    """One graph of a server; runs go on when the connection is lost, and are joined again.

    Args:
        url: the server's.
        assistant: an assistant's or a graph's id; "" for the only graph there.

    Raises:
        UsageError: there is no such assistant, or it isn't plain which is meant.
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
            self._read(url, worded(client), assistant)
        except BaseException:
            self.close()
            raise

    def _read(self, url: str, client: Any, assistant: str) -> None:
        """Ask the server about the graph."""
        chosen = _chosen(url, client, assistant)
        name = chosen["assistant_id"]
        self._client: Any = client
        self._assistant = name
        self.graph_id = str(chosen["graph_id"])
        about = _about(client)
        is_aegra = about.get("name") == "Aegra"
        self._can_resume_strictly = _can_resume_strictly(client, about)
        self.runs_through = is_aegra
        self.refusals = _AEGRA_CANT if is_aegra else {}
        # Of an input that is null aegra makes a new one, and begins anew.
        self._going_on: Command[Any] | None = Command(resume={}) if is_aegra else None
        self.checkpointer: Any = ServerThreads(client, self.graph_id)
        self.store = ServerStore(client)
        drawn = _asked(url, lambda: client.assistants.get_graph(name))
        self._drawn = _drawing(drawn)
        self.interrupt_before_nodes = _stops(drawn, "before")
        self.interrupt_after_nodes = _stops(drawn, "after")
        self.nodes = {node: ServerNode() for node in self._drawn.nodes if node != "__end__"}
        schemas = _asked(url, lambda: client.assistants.get_schemas(name))
        self.stream_channels_asis = _channels(schemas)
        self.context_properties = _context_properties(schemas, chosen.get("context") or {})
        self.channels = {channel: unknown_channel() for channel in self.stream_channels_asis}
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
        """As `Pregel.get_subgraphs`; what is inside can be looked at and edited, not stepped through."""
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
        """As `Pregel.stream` with `version="v2"`; a run that is under way is never doubled.

        Raises:
            ServerBusy: the server runs the thread already.
            RemoteException: the run has failed there.
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
            with telling_busy():
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
        """Wait until the runs of a thread have ended whose stream was cut; the checkpoints tell the rest.

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
        """Wait until runs have ended; some servers answer a join after a while, whether they have or not."""
        for run in runs:
            self._client.runs.join(thread, run["run_id"])
            while _is_open(self._client.runs.get(thread, run["run_id"])):
                time.sleep(_BETWEEN_LOOKS)
                self._client.runs.join(thread, run["run_id"])

    def cancel(self, thread: str) -> None:
        """Let the server give up what runs in a thread; what its supersteps have saved stays."""
        self.make_room(thread, "interrupt")

    def refuse_busy(self, thread: str) -> None:
        """Refuse a thread that the server runs.

        Raises:
            ServerBusy: it does.
        """
        end = time.monotonic() + _ENDING
        while self._open_runs(thread):
            if time.monotonic() >= end:
                raise busy()
            time.sleep(_BETWEEN_LOOKS)

    def make_room(self, thread: str, strategy: DoubleTexting) -> MadeRoom:
        """End what the server runs in a thread, or wait until it has ended.

        Our own run is begun once the head was read again: queued behind another one it would begin on a state
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
        """The newest runs of a thread."""
        try:
            return list(again_if_cut(lambda: self._client.runs.list(thread, limit=_MOST)))
        except ServerRefused as error:
            if not _is_no_thread(error, thread):
                raise
            return []  # there is no such thread yet

    def get_state(self, config: Any, *, subgraphs: bool = False) -> StateSnapshot:
        """As `Pregel.get_state`."""
        place = dict(config["configurable"])
        try:
            state = again_if_cut(partial(self._state_at, place, subgraphs))
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
        """As `Pregel.get_state_history`."""
        place = config["configurable"]
        try:
            states = again_if_cut(partial(self._history, place, before, limit or _MOST_STATES))
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
        # aegra pages by no form of it.
        states, last = ask(limit=_MOST_STATES), before["configurable"]["checkpoint_id"]
        older = [state for state in states if state["checkpoint"]["checkpoint_id"] < last][:limit]
        if len(older) < limit and len(states) == _MOST_STATES:
            raise StoreUnusable(
                f"the server shows only the newest {_MOST_STATES:,} checkpoints of thread {thread!r}",
                "view a shorter thread",
            )
        return older

    def update_state(self, config: Any, values: Any, as_node: str | None = None) -> Any:
        """As `Pregel.update_state`, of a checkpoint that the config names.

        Raises:
            ServerBusy: the server runs the thread.
        """
        place = dict(config["configurable"])
        with telling_busy():
            if isinstance(values, Command):
                at = update_on_route(self._client, place["thread_id"], values, as_node)
                return {"configurable": dict(at)}
            told = self._client.threads.update_state(
                place["thread_id"], values, as_node=as_node, checkpoint=place
            )
        return {"configurable": dict(told["checkpoint"])}

    def trial(self, config: Any, inner: Any) -> ServerTrial:
        """Where edits of a checkpoint are tried: a copy of its thread, which is deleted at the end.

        Args:
            inner: this graph, or the one inside it whose channels are edited.
        """
        return ServerTrial(self._client, config, self.get_state, inner.get_graph)


def _local_parts(parts: Iterable[Any], modes: Sequence[str]) -> Iterator[Any]:
    """The parts of a stream, as a local graph gives those of its modes."""
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
    """What a server says of itself; nothing where it says nothing."""
    try:
        about = client.http.get("/info")
    except ServerRefused:
        return {}
    return about if isinstance(about, Mapping) else {}


def _can_resume_strictly(client: Any, about: Mapping[str, Any]) -> bool:
    """Whether a server refuses an answer to an interrupt that does not wait, and the SDK can ask for that."""
    flags = about.get("flags")
    says = {**about, **(flags if isinstance(flags, Mapping) else {})}
    return bool(says.get("strict_resume")) and "strict_resume" in signature(client.runs.stream).parameters


def _is_no_thread(error: ServerRefused, thread: str) -> bool:
    """Whether a server refuses since it has no thread of a name; those of Agent Servers are UUIDs."""
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
    return list(state.get("properties", {}))


def _drawing(graph: Mapping[str, Any]) -> _Drawn:
    """A graph as a server draws it."""
    edges = [
        _Edge(edge["source"], edge["target"], edge.get("data"), bool(edge.get("conditional")))
        for edge in graph["edges"]
    ]
    return _Drawn(tuple(str(node["id"]) for node in graph["nodes"]), tuple(edges))


def _stops(graph: Mapping[str, Any], when: str) -> tuple[str, ...]:
    """The nodes before or after which a graph was compiled to stop, as its drawing marks them.

    A server runs each superstep with stops of ours, which go before those of the graph.
    """
    marks = {str(node["id"]): (node.get("metadata") or {}).get("__interrupt") for node in graph["nodes"]}
    return tuple(name for name, mark in marks.items() if when in str(mark or "").split(","))


def _context_properties(schemas: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The fields of a graph's context by name, as JSON Schema has them.

    Args:
        given: the context that the assistant has, which is used where a thread gives none.
    """
    declared = (schemas.get("context_schema") or {}).get("properties", {})
    return {
        name: {**about, "default": given[name]} if name in given else about
        for name, about in declared.items()
        if isinstance(about, Mapping)
    }


def server_headers() -> dict[str, str]:
    """The headers that the environment gives; an API key of LangGraph's own variables goes by itself.

    Raises:
        UsageError: they are no JSON object of texts.
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
    except Exception as error:  # whatever the SDK makes of an answer of another shape
        told = f"{url} answers as no Agent Server does: {type(error).__name__}: {error}"
        raise ServerRefused(told, "is it a LangGraph server?", 0) from None
