"""A server in this process over a graph in memory: as an Agent Server speaks, or as aegra 0.6 does."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from langgraph.types import Command, Interrupt, StateUpdate

_AEGRA = {"name": "Aegra", "version": "0.1.0", "flags": {"assistants": True, "crons": False}}


class Refusal(Exception):
    """An answer with an error of HTTP."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


class GraphServer(ThreadingHTTPServer):
    """The server of one graph, `g`.

    Args:
        graph: it, with an `InMemorySaver`.
        is_aegra: it speaks as aegra does: other forms, less that it can do.

    Attributes:
        interrupted: the threads that a run has left waiting: no other one takes a `resume`.
        asked: the method and the path of each request.
        runs: what each run was started with.
        most: the most states that a page of a history has.
        items: of its store.
        open_runs: what it says runs in each thread; aegra rolls none back.
        is_strict: it refuses answers to interrupts that do not wait, where it is asked to.
        forgets: no interrupt waits any more.
    """

    daemon_threads = True

    def __init__(self, graph: Any, *, is_aegra: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.graph = graph
        self.is_aegra = is_aegra
        self.interrupted: set[str] = set()
        self.threads: list[str] = []
        self.asked: list[str] = []
        self.runs: list[dict[str, Any]] = []
        self.most = 1_000
        self.items: list[dict[str, Any]] = []
        self.open_runs: list[dict[str, Any]] = []
        self.is_strict = False
        self.forgets = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, method: str, path: str, query: str, body: dict[str, Any]) -> Any:
        """What it says to a request.

        Raises:
            Refusal: it refuses.
        """
        match path.strip("/").split("/"):
            case ["info"] if self.is_aegra or self.is_strict:
                return _AEGRA if self.is_aegra else {"version": "1.0", "flags": {"strict_resume": True}}
            case ["assistants", *rest]:
                return self._assistant(rest[-1], xray="xray=true" in query)
            case ["threads", "search"]:
                rows = [{"thread_id": name, "metadata": {"graph_id": "g"}} for name in self.threads]
                return rows[body["offset"] : body["offset"] + body["limit"]]
            case ["threads", name, "state"] if method == "GET":
                ns = query.partition("checkpoint_ns=")[2].partition("&")[0].replace("%3A", ":")
                return self._state(name, {"checkpoint_ns": ns}, subgraphs="subgraphs=true" in query)
            case ["threads", name, "state", "checkpoint"]:
                if self.is_aegra and not body["checkpoint"].get("checkpoint_id"):
                    raise Refusal(400, {"error": "bad_request", "message": "checkpoint_id is required"})
                return self._state(name, body["checkpoint"], subgraphs=bool(body.get("subgraphs")))
            case ["threads", name, "state"]:
                at = {"configurable": {**(body.get("checkpoint") or {}), "thread_id": name}}
                config = self.graph.update_state(at, body["values"], as_node=body.get("as_node"))
                return {"checkpoint": config["configurable"]}
            case ["threads"]:
                return self._edit_on_route(body["thread_id"], body)
            case ["threads", name, "copy"] if not self.is_aegra:
                return self._copy(name)
            case ["threads", name] if not self.is_aegra and method in ("PATCH", "DELETE"):
                if method == "DELETE":
                    self.graph.checkpointer.delete_thread(name)
                return {"thread_id": name}
            case ["threads", name, "history"]:
                return self._history(name, body)
            case ["threads", name, "runs", *rest]:
                return self._of_runs(name, rest, method, query, body)
            case ["store", "items", "search"]:
                return {"items": self.items, "total": len(self.items), "limit": 20, "offset": 0}
        raise Refusal(404, {"detail": "Not Found"})

    def _edit_on_route(self, name: str, body: dict[str, Any]) -> Any:
        """An edit by the request that makes a thread, of one that is there."""
        assert body["if_exists"] == "do_nothing"
        for step in body["supersteps"]:
            updates = [StateUpdate(Command(**each["command"]), each["as_node"]) for each in step["updates"]]
            self.graph.bulk_update_state({"configurable": {"thread_id": name}}, [updates])
        return {"thread_id": name}

    def _of_runs(self, name: str, rest: list[str], method: str, query: str, body: dict[str, Any]) -> Any:
        if not rest and method == "GET":
            return self.open_runs
        if rest == ["stream"]:
            return self._stream(name, body)
        if rest[-1] == "cancel" and "action=rollback" in query:
            message = "String should match pattern '^(cancel|interrupt)$'"
            raise Refusal(422, {"detail": [{"loc": ["query", "action"], "msg": message}]})
        raise Refusal(404, {"detail": "Not Found"})

    def _assistant(self, asked: str, *, xray: bool) -> Any:
        if asked == "search":
            return [{"assistant_id": "a", "graph_id": "g", "name": "g"}]
        if asked == "subgraphs":
            inside = self.graph.get_subgraphs()
            return {name: {"state_schema": _state_schema(inner)} for name, inner in inside}
        if asked == "schemas":
            context = self.graph.get_context_jsonschema() if self.graph.context_schema else None
            given = self.graph.get_input_jsonschema()
            state = _state_schema(self.graph)
            return {"input_schema": given, "state_schema": state, "context_schema": context}
        drawn = self.graph.get_graph(xray=xray).to_json()
        return {**drawn, "nodes": [{**node, "data": {"name": node["id"]}} for node in drawn["nodes"]]}

    def _state(self, name: str, place: Mapping[str, Any], *, subgraphs: bool = False) -> Any:
        if name not in self.graph.checkpointer.storage:
            raise Refusal(404, {"error": "not_found", "message": f"Thread '{name}' not found"})
        config = {"configurable": {**place, "thread_id": name}}
        return _snapshot_document(self.graph.get_state(config, subgraphs=subgraphs))

    def _history(self, name: str, body: Mapping[str, Any]) -> Any:
        if self.is_aegra and body.get("before") is not None:
            wrong = {"loc": ["body", "before"], "msg": "Input should be a valid string"}
            raise Refusal(422, {"detail": [wrong]})
        config = {"configurable": {"thread_id": name, **(body.get("checkpoint") or {})}}
        given = {"before": body.get("before"), "limit": min(body["limit"], self.most)}
        return list(map(_snapshot_document, self.graph.get_state_history(config, **given)))

    def _copy(self, name: str) -> Any:
        saver, copy = self.graph.checkpointer, str(uuid.uuid4())
        saver.storage[copy] = deepcopy(saver.storage[name])
        for kept in (saver.blobs, saver.writes):
            kept.update({(copy, *key[1:]): deepcopy(kept[key]) for key in list(kept) if key[0] == name})
        return {"thread_id": copy}

    def _stream(self, name: str, body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        self.runs.append(body)
        given, command = body.get("input"), body.get("command")
        if body.get("strict_resume") and (unknown := self._not_waiting(name, command)):
            message = f"no interrupt {unknown} waits"
            return iter([("error", {"error": "UnknownInterruptError", "message": message})])
        if not self.is_aegra:
            stops = {name: body[name] for name in ("interrupt_before", "interrupt_after") if name in body}
            return self._start_run(name, body, given if command is None else _command(command), stops)
        if given is None and command is None and not body.get("checkpoint"):
            wrong = {"loc": ["body"], "msg": "Must specify either 'input' or 'command'"}
            raise Refusal(422, {"detail": [wrong]})
        if command is not None and command.get("resume") is not None and name not in self.interrupted:
            message = "Cannot resume: thread is not in interrupted state"
            raise Refusal(400, {"error": "bad_request", "message": message})
        return self._start_run(name, body, (given or {}) if command is None else _command(command), {})

    def _not_waiting(self, name: str, command: Mapping[str, Any]) -> list[str]:
        state = self.graph.get_state({"configurable": {"thread_id": name}})
        waiting = set() if self.forgets else {asked.id for asked in state.interrupts}
        return [answered for answered in command["resume"] if answered not in waiting]

    def _start_run(
        self, name: str, body: Mapping[str, Any], entry: Any, stops: Mapping[str, Any]
    ) -> Iterator[tuple[str, Any]]:
        if name not in self.threads:
            self.threads.append(name)
        given = (body.get("config") or {}).get("configurable", {})
        config = {"configurable": {**given, **(body.get("checkpoint") or {}), "thread_id": name}}
        modes = ["messages" if mode == "messages-tuple" else mode for mode in body["stream_mode"]]
        parts = self.graph.stream(entry, config, stream_mode=[*modes, "updates"], **stops)
        return self._parts(name, parts, modes)

    def _parts(self, name: str, parts: Iterator[Any], modes: list[str]) -> Iterator[tuple[str, Any]]:
        self.interrupted.discard(name)
        try:
            for mode, data in parts:
                if "__interrupt__" in data:
                    self.interrupted.add(name)
                if mode in modes:
                    yield mode, data
        except Exception as error:  # of a node
            yield "error", {"error": type(error).__name__, "message": str(error)}


@contextmanager
def serving(graph: Any, *, is_aegra: bool = False) -> Iterator[GraphServer]:
    """A server while it answers requests."""
    server = GraphServer(graph, is_aegra=is_aegra)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def _is_snapshot(state: Any) -> bool:
    return hasattr(state, "values") and not isinstance(state, dict)


def _snapshot_document(snapshot: Any) -> Any:
    if snapshot is None:
        return None
    config, parent = snapshot.config["configurable"], snapshot.parent_config
    tasks = [
        {
            "id": task.id, "name": task.name, "path": task.path, "error": task.error,
            "interrupts": list(task.interrupts),
            "checkpoint": None, "result": task.result,
            "state": _snapshot_document(task.state) if _is_snapshot(task.state) else task.state,
        }
        for task in snapshot.tasks
    ]  # fmt: skip
    return {
        "values": snapshot.values, "next": list(snapshot.next), "tasks": tasks, "interrupts": [],
        "metadata": snapshot.metadata or {}, "created_at": snapshot.created_at,
        "checkpoint": {name: config.get(name) for name in ("thread_id", "checkpoint_ns", "checkpoint_id")},
        "parent_checkpoint": parent and parent["configurable"],
    }  # fmt: skip


def _state_schema(graph: Any) -> dict[str, Any]:
    if graph.stream_channels_asis == "__root__":
        return {"type": "object", "additionalProperties": True}
    return {"type": "object", "properties": {name: {} for name in graph.stream_channels_list}}


def _command(document: Mapping[str, Any]) -> Command[Any]:
    return Command(resume=document["resume"])


def _as_json(value: Any) -> Any:
    if isinstance(value, Interrupt):
        return {"value": value.value, "id": value.id}  # without the schema of its answer
    return value.model_dump() if hasattr(value, "model_dump") else str(value)


class _Handler(BaseHTTPRequestHandler):
    server: GraphServer

    def _reply(self) -> None:
        given = self.rfile.read(int(self.headers.get("content-length") or 0))
        path, _, query = self.path.partition("?")
        self.server.asked.append(f"{self.command} {self.path}")
        try:
            response = self.server.answer(self.command, path, query, json.loads(given or b"{}"))
        except Refusal as refusal:
            self._send(refusal.status, refusal.body)
            return
        if not isinstance(response, Iterator):
            self._send(200, response)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for mode, data in response:
            self.wfile.write(f"event: {mode}\ndata: {json.dumps(data, default=_as_json)}\n\n".encode())
            self.wfile.flush()

    def _send(self, status: int, body: Any) -> None:
        data = json.dumps(body, default=_as_json).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _reply  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass
