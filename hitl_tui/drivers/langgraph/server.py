"""A graph on an Agent Server of LangGraph (or `langgraph dev`, aegra), with the surface of a compiled one.

What the server does not tell is said to be unknown: reducers have no name, so its threads are not edited.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from hitl_tui.config import SERVER_HEADERS
from hitl_tui.drivers.langgraph.recorded import unknown_channel
from hitl_tui.errors import HitlError, StoreUnusable, ThreadBusy, UsageError

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

REFUSALS: Final[Mapping[str, str]] = {
    "update_state": "the server does not tell which reducer a channel has, so an edit could not be foretold",
}
_MESSAGES: Final = {
    "human": "HumanMessage",
    "ai": "AIMessage",
    "system": "SystemMessage",
    "tool": "ToolMessage",
    "AIMessageChunk": "AIMessageChunk",
}
_MOST: Final = 100
_MOST_STATES: Final = 1_000
_JOINS: Final = 30
_BETWEEN_JOINS: Final = 1.0
"""Times that a run is joined again while the server can't be reached, and seconds between them."""
_TIMEOUT: Final = (5.0, 300.0, 300.0, 5.0)
"""Seconds to connect, to read, to write and to wait for a connection."""


SERVER: Final = "server"
"""What a thread's `ThreadInfo.source` has a server's URL under."""


class ServerNode:
    """A node of a server's graph: what runs it stays there."""

    bound = None
    retry_policy = ()
    timeout = None


class ServerThreads:
    """In the place of a checkpointer: the threads of one graph on its server."""

    def __init__(self, client: Any, graph: str) -> None:
        self._client = client
        self._graph = graph

    def heads(self) -> Mapping[str, str]:
        """The newest checkpoint of each thread, the thread that changed last first."""
        heads = {}
        for row in self._rows():
            state = self._client.threads.get_state(row["thread_id"])
            if identity := (state.get("checkpoint") or {}).get("checkpoint_id"):
                heads[str(row["thread_id"])] = str(identity)
        return heads

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        offset, order = 0, {"sort_by": "updated_at", "sort_order": "desc"}
        while True:
            page = self._client.threads.search(
                metadata={"graph_id": self._graph}, limit=_MOST, offset=offset, **order
            )
            yield from page
            if len(page) < _MOST:
                return
            offset += _MOST


class ServerGraph:
    """One graph of a server; runs go on when the connection is lost, and are joined again by the SDK.

    Args:
        url: the server's.
        assistant: an assistant's or a graph's id; "" for the only graph there.

    Raises:
        UsageError: there is no such assistant, or it isn't plain which is meant.
        HitlError: the server can't be reached, or refuses.
    """

    interrupt_before_nodes: tuple[str, ...] = ()
    interrupt_after_nodes: tuple[str, ...] = ()
    store = None
    builder = None

    def __init__(self, url: str, assistant: str = "") -> None:
        from langgraph.pregel.remote import RemoteGraph
        from langgraph_sdk import get_sync_client

        client = get_sync_client(url=url, headers=server_headers(), timeout=_TIMEOUT)
        chosen = _chosen(url, client, assistant)
        self._client: Any = client
        self._remote = RemoteGraph(chosen["assistant_id"], sync_client=client, name=chosen["graph_id"])
        self.graph_id = str(chosen["graph_id"])
        self.checkpointer: Any = ServerThreads(client, self.graph_id)
        drawn = self.get_graph()
        self.nodes = {name: ServerNode() for name in drawn.nodes if name not in ("__end__",)}
        schemas = _asked(url, lambda: client.assistants.get_schemas(chosen["assistant_id"]))
        state = schemas.get("state_schema") or schemas.get("output_schema") or {}
        self.stream_channels_asis = list(state.get("properties", {}))
        self.channels = {name: unknown_channel() for name in self.stream_channels_asis}

    def get_graph(self) -> Any:
        """As `Pregel.get_graph`."""
        return self._remote.get_graph()

    def get_subgraphs(self, **_options: Any) -> Iterator[Any]:
        """None that could be looked into."""
        return iter(())

    def stream(self, input: Any, config: Any = None, **options: Any) -> Iterator[Any]:  # noqa: A002
        """As `Pregel.stream`; a run that is under way is never doubled.

        Raises:
            ThreadBusy: the server runs the thread already.
        """
        kept: dict[str, Any] = {
            "multitask_strategy": "reject",
            "on_disconnect": "continue",
            "stream_resumable": True,
        }
        try:
            for part in self._remote.stream(input, config, version="v2", **options, **kept):
                revived: Any = _revived_part(part)
                if part["type"] != "messages" or hasattr(revived["data"][0], "content"):
                    yield revived
        except Exception as error:
            if _status(error) == 409:
                raise ThreadBusy(
                    "the server runs this thread already",
                    "wait until that has ended, or pause it and give it up where it runs, then look again",
                ) from None
            if not _is_cut(error):
                raise
            self._join(config["configurable"]["thread_id"])

    def _join(self, thread: str) -> None:
        """Wait until the runs of a thread have ended whose stream was cut; the checkpoints tell the rest.

        Raises:
            StoreUnusable: the server can't be reached any more.
        """
        for _ in range(_JOINS):
            try:
                for run in self._open_runs(thread):
                    self._client.runs.join(thread, run["run_id"])
                return
            except Exception as error:
                if not _is_cut(error):
                    raise
                time.sleep(_BETWEEN_JOINS)
        raise StoreUnusable(
            "the connection to the server was lost; the run goes on there", "open the thread again later"
        )

    def cancel(self, thread: str) -> None:
        """Let the server give up what runs in a thread; what its supersteps have saved stays."""
        for run in self._open_runs(thread):
            self._client.runs.cancel(thread, run["run_id"], wait=True)

    def _open_runs(self, thread: str) -> list[Any]:
        runs = self._client.runs.list(thread, limit=_MOST)
        return [run for run in runs if run["status"] in ("pending", "running")]

    def get_state(self, config: Any, **options: Any) -> StateSnapshot:
        """As `Pregel.get_state`."""
        try:
            return _revived(self._remote.get_state(config, **options))
        except Exception as error:
            if _status(error) != 404:
                raise
            from langgraph.types import StateSnapshot

            return StateSnapshot({}, (), config, None, None, None, (), ())

    def get_state_history(
        self, config: Any, *, before: Any = None, limit: int | None = None
    ) -> Iterator[StateSnapshot]:
        """As `Pregel.get_state_history`."""
        place = config["configurable"]
        try:
            # RemoteGraph sends `before` in a form that servers don't take.
            states = self._client.threads.get_history(
                place["thread_id"], limit=limit or _MOST_STATES, before=before
            )
        except Exception as error:
            if _status(error) != 404:
                raise
            states = []
        for state in states:
            yield _revived(self._remote._create_state_snapshot(state))


def new_server_thread() -> str:
    """A name for a new thread: servers take no other than a UUID."""
    return str(uuid.uuid4())


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
            f"{SERVER_HEADERS} is no JSON object of texts", """write {"Authorization": "Bearer …"}"""
        )
    return headers


def _chosen(url: str, client: Any, assistant: str) -> Mapping[str, Any]:
    rows = _asked(url, lambda: client.assistants.search(limit=_MOST))
    matches = [row for row in rows if assistant in ("", row["assistant_id"], row["graph_id"], row["name"])]
    if len(matches) == 1 or (matches and assistant):
        return dict(matches[0])
    graphs = ", ".join(sorted({str(row["graph_id"]) for row in rows}))
    problem = f"{url} has no assistant {assistant!r}" if assistant else f"{url} has several graphs"
    raise UsageError(problem if rows else f"{url} has no graph", f"say which: --assistant ID, of {graphs}")


def _asked(url: str, ask: Any) -> Any:
    try:
        return ask()
    except Exception as error:
        if (status := _status(error)) in (401, 403):
            hint = f"set LANGGRAPH_API_KEY, or {SERVER_HEADERS}"
            raise HitlError(f"{url} refuses to answer ({status})", hint) from None
        hint = "is it running? `langgraph dev` starts one"
        raise HitlError(f"{url} can't be asked: {type(error).__name__}: {error}", hint) from None


def _is_cut(error: Exception) -> bool:
    """Whether the connection was lost, and not what was asked for refused."""
    import httpx

    return isinstance(error, (httpx.TransportError, OSError))


def _status(error: Exception) -> int | None:
    return getattr(getattr(error, "response", None), "status_code", None)


def _revived_part(part: Any) -> Any:
    """A part of a stream with messages and interrupts as a local graph gives them."""
    from langgraph.types import Interrupt

    data = part["data"]
    if part["type"] == "messages":
        message, metadata = data
        return {**part, "data": (_values(message), metadata)}
    if part["type"] == "tasks" and "interrupts" in data:
        asked = [Interrupt(**given) for given in data["interrupts"] or ()]
        return {**part, "data": {**data, "result": _values(data.get("result")), "interrupts": asked}}
    if part["type"] == "checkpoints":
        return {**part, "data": {**data, "values": _values(data["values"])}}
    return part


def _revived(snapshot: StateSnapshot) -> StateSnapshot:
    tasks = tuple(task._replace(result=_values(task.result)) for task in snapshot.tasks)
    return snapshot._replace(values=_values(snapshot.values), tasks=tasks)


def _values(value: Any) -> Any:
    """JSON with its messages as objects, as far as they are whole."""
    if isinstance(value, list):
        return [_values(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") in _MESSAGES and "content" in value:
        from langchain_core import messages

        try:
            return getattr(messages, _MESSAGES[value["type"]])(**value)
        except Exception:  # something of the graph's own that looks like one
            return value
    return {key: _values(item) for key, item in value.items()}
