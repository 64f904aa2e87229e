"""Servers that refuse, abort or answer unlike a LangGraph server get an explanation."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

pytest.importorskip("langgraph")

from tests.support.commands import App

THREAD = "11111111-2222-4333-8444-555555555555"
_NODES = [
    {"id": name, "type": "runnable", "data": {"name": name}} for name in ("__start__", "ask", "__end__")
]
_STATE = {"type": "object", "properties": {"n": {"type": "integer"}}}
GIVEN: dict[str, Any] = {
    "search": [{"assistant_id": "a", "graph_id": "g", "name": "g"}],
    "schemas": {"graph_id": "g", "state_schema": _STATE, "input_schema": _STATE, "output_schema": _STATE},
    "subgraphs": {},
    "graph": {"nodes": _NODES, "edges": [{"source": "__start__", "target": "ask"}]},
}
"""What it answers to what is asked of an assistant, by the end of the path."""


class Refusing(ThreadingHTTPServer):
    """Tells its graph, and answers everything else with one status and body; 0 breaks the connection off."""

    daemon_threads = True
    answer: tuple[int, str] = (404, "")
    asked: list[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Refusing

    def _reply(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        self.server.asked.append(path)
        of_assistants = path.startswith("/assistants") and path.rpartition("/")[2] in GIVEN
        status, body = (
            (200, json.dumps(GIVEN[path.rpartition("/")[2]])) if of_assistants else self.server.answer
        )
        if not status:
            self.connection.close()
            return
        self.send_response(status)
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _reply  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@pytest.fixture
def server() -> Iterator[Refusing]:
    serving = Refusing(("127.0.0.1", 0), _Handler)
    serving.asked = []
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield serving
    serving.shutdown()
    serving.server_close()


ANSWERS = {
    "of another kind": (422, '{"detail": [{"loc": ["body", "before"], "msg": "is no string"}]}'),
    "not as it wants": (400, '{"detail": "checkpoint_id is required"}'),
    "not for us": (403, ""),
    "too often": (429, '{"detail": "slow down"}'),
    "broken": (500, "oops"),
    "not there": (503, "<html>\x1b[2J</html>"),
    "no JSON": (200, "<html>hello</html>"),
    "broken off": (0, ""),
}
COMMANDS = {
    "threads": (),
    "show": (THREAD,),
    "log": (THREAD,),
    "resume": (THREAD, "--headless"),
    "step": (THREAD,),
    "run": ("--headless", "--input", "n=1"),
    "update-state": (THREAD, "n=2"),
    "fork": (THREAD, "--step", "1"),
    "answer": (THREAD, "r", "yes"),
    "cancel": (THREAD,),
    "export": (THREAD, "out.json"),
    "verify": (THREAD,),
    "items": (),
}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(name, marks=() if name in ("of another kind", "broken off") else pytest.mark.slow)
        for name in ANSWERS
    ],
)
@pytest.mark.slow
def test_a_refusal_of_the_langgraph_server_is_explained(
    server: Refusing, app: App, answer: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server.answer = ANSWERS[answer]
    for command, arguments in COMMANDS.items():
        place = ("--server", server.url) if command == "run" else ("--store", f"langgraph+{server.url}#g")
        server.asked.clear()
        done = app(command, *arguments, *place)
        assert done.code in (1, 2, 4), (command, done)
        assert "this is a bug" not in done.err, (command, done)


@pytest.mark.parametrize("rows", ['{"a": 1}', "[1]", '[{"graph_id": "g"}]', '"text"', "null"])
def test_a_url_that_is_no_langgraph_server_is_reported(
    server: Refusing, app: App, rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GIVEN, "search", json.loads(rows))
    done = app("threads", "--server", server.url)
    assert done.code in (1, 2)
    assert server.url in done.err
    assert "this is a bug" not in done.err


def test_an_invalid_part_of_a_request_is_named(server: Refusing, app: App) -> None:
    wrong = {"loc": ["query", "limit"], "msg": "Input should be less than 100"}
    server.answer = (422, json.dumps({"detail": [wrong]}))
    refused = app.expect(1, "log", THREAD, "--store", f"langgraph+{server.url}#g").err
    assert "(422): query.limit: Input should be less than 100" in refused
