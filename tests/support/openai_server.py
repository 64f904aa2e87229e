"""A real HTTP server on loopback that speaks OpenAI's chat protocol and misbehaves on request.

Each request takes the next planned answer; when none is planned the server says "hello".
"""

from __future__ import annotations

import json
import select
import socket
import struct
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Call:
    """A tool call of an answer; a stream cuts its arguments in `parts`."""

    name: str
    arguments: str = "{}"
    id: str = "call_1"
    parts: int = 3


@dataclass(frozen=True)
class Say:
    """A good answer in `pieces`, with `calls` of tools; with `hold_after` it waits after that many
    pieces until the client leaves."""

    pieces: tuple[str, ...] = ("hello",)
    usage: tuple[int, int] | None = (7, 3)
    hold_after: int | None = None
    finish_reason: str = "stop"
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True)
class Refuse:
    """An HTTP error with a body such as OpenAI sends."""

    status: int
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hang:
    """No answer at all until the client leaves."""


@dataclass(frozen=True)
class Cut:
    """Some pieces, then the connection ends: rudely (inside a chunk) or as if all were said."""

    pieces: tuple[str, ...] = ("half a ",)
    rude: bool = True


@dataclass(frozen=True)
class Garbage:
    """Pieces, then a line that is not JSON."""

    pieces: tuple[str, ...] = ()


@dataclass(frozen=True)
class Other:
    """Whatever a server or a proxy before it may send in place of an answer.

    `{key}`, `{headers}` and `{body}` in the text and the headers stand for what the request brought.
    """

    status: int
    text: str
    content_type: str = "text/html"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reset:
    """The connection is reset before any answer."""


@dataclass(frozen=True)
class PlainOnly:
    """A server without streaming: it answers a stream request with one plain JSON body."""

    text: str = "all at once"
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True)
class Deltas:
    """A stream of these deltas as they are, then a finish reason and a usage as they are."""

    deltas: tuple[Mapping[str, Any], ...]
    finish_reason: str = "stop"
    usage: Mapping[str, Any] | None = None


Answer = Deltas | Say | Refuse | Hang | Cut | Garbage | PlainOnly | Other | Reset


@dataclass(frozen=True)
class Received:
    """One request as it came in; header names in lower case."""

    headers: Mapping[str, str]
    body: Mapping[str, Any]


class OpenAIServer:
    """The server's plan and what it saw.

    `holding` is set when an answer waits for its client to leave, `left` when that client left.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self.api_base = f"http://{address[0]}:{address[1]}/v1"
        self.requests: list[Received] = []
        self.holding = threading.Event()
        self.left = threading.Event()
        self.closing = threading.Event()
        self.answers: dict[str, Answer] = {}
        """Answers to requests whose last message has a word, before those that are planned."""
        self._plan: deque[Answer] = deque()

    def plan(self, *answers: Answer) -> None:
        """Answer the next requests with these, in order."""
        self._plan.extend(answers)

    def next_answer(self) -> Answer:
        """The answer for the request that has just come in."""
        asked = str(self.requests[-1].body["messages"][-1]["content"])
        for word, answer in self.answers.items():
            if word in asked:
                return answer
        return self._plan.popleft() if self._plan else Say()


@contextmanager
def openai_server() -> Iterator[OpenAIServer]:
    """Run a server on a free port of loopback for the length of the block."""
    http = _Http(("127.0.0.1", 0), _Handler)
    server = http.server = OpenAIServer(("127.0.0.1", http.server_address[1]))
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        http.shutdown()
        http.server_close()
        thread.join()


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them
    server: OpenAIServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients of these tests hang up as they please."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10.0  # seconds that a connection may say nothing
    server: _Http

    def end_headers(self) -> None:
        """Keep no connection: clients would keep it open after the test, in a pool of the process."""
        self.send_header("Connection", "close")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the base class names it)
        """Say nothing: the terminal belongs to the test run."""

    def do_POST(self) -> None:
        board = self.server.server
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        board.requests.append(Received({k.lower(): v for k, v in self.headers.items()}, body))
        match board.next_answer():
            case Say() as say if body.get("stream"):
                self._stream(say)
            case Say() as say:
                self._plain("".join(say.pieces), say.usage, say.calls)
            case Deltas() as deltas:
                self._deltas(deltas)
            case PlainOnly(text, calls):
                self._plain(text, (5, 4), calls)
            case Refuse() as refuse:
                error = {"error": {"message": refuse.message, "type": "error", "code": None}}
                self._json(refuse.status, error, refuse.headers)
            case Hang():
                self._hold()
            case Other() as other:
                self._other(other, body)
            case Reset():
                # Closed with nothing lingering, it tells the client so at once.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
            case Cut() as cut:
                self._cut(cut)
            case Garbage(pieces):
                self._open_stream()
                self._pieces(pieces)
                self._chunk(b"data: {this is not json\n\n")
                self._chunk(b"")

    def _other(self, other: Other, body: Mapping[str, Any]) -> None:
        key = self.headers.get("authorization", "").removeprefix("Bearer ")

        def filled(text: str) -> str:
            text = text.replace("{headers}", str(dict(self.headers)).replace("'", ""))
            return text.replace("{key}", key).replace("{body}", json.dumps(body))

        data = filled(other.text).encode()
        self.send_response(other.status)
        self.send_header("Content-Type", other.content_type)
        self.send_header("Content-Length", str(len(data)))
        for name, value in other.headers.items():
            self.send_header(name, filled(value))
        self.end_headers()
        self.wfile.write(data)

    def _json(self, status: int, payload: object, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(payload).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _plain(self, text: str, usage: tuple[int, int] | None, calls: tuple[Call, ...] = ()) -> None:
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        answer: dict[str, Any] = {"id": "x", "object": "chat.completion", "created": 1, "model": "test"}
        answer["choices"] = [choice]
        if usage:
            answer["usage"] = _usage(usage)
        self._json(200, answer)

    def _stream(self, say: Say) -> None:
        self._open_stream()
        if say.hold_after is not None:
            self._pieces(say.pieces[: say.hold_after])
            self._hold()
            return
        self._pieces(say.pieces)
        for index, call in enumerate(say.calls):
            self._call(index, call)
        reason = "tool_calls" if say.calls else say.finish_reason
        self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        if say.usage:
            self._event({"choices": [], "usage": _usage(say.usage)})
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _deltas(self, answer: Deltas) -> None:
        self._open_stream()
        for delta in answer.deltas:
            self._event({"choices": [{"index": 0, "delta": dict(delta)}]})
        self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": answer.finish_reason}]})
        self._event({"choices": [], "usage": answer.usage})
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _cut(self, cut: Cut) -> None:
        self._open_stream()
        self._pieces(cut.pieces)
        if not cut.rude:
            self._chunk(b"")
        self.close_connection = True

    def _open_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _pieces(self, pieces: tuple[str, ...]) -> None:
        for piece in pieces:
            self._event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": piece}}]})

    def _call(self, index: int, call: Call) -> None:
        """A tool call as OpenAI streams it: the name first, then the arguments bit by bit."""
        begin = {
            "index": index,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }
        self._event({"choices": [{"index": 0, "delta": {"tool_calls": [begin]}}]})
        size = max(1, -(-len(call.arguments) // call.parts))
        for at in range(0, len(call.arguments), size):
            part = {"index": index, "function": {"arguments": call.arguments[at : at + size]}}
            self._event({"choices": [{"index": 0, "delta": {"tool_calls": [part]}}]})

    def _event(self, event: dict[str, Any]) -> None:
        whole = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "test", **event}
        self._chunk(b"data: " + json.dumps(whole).encode() + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _hold(self) -> None:
        """Wait, silent, until the client hangs up or the server closes."""
        board = self.server.server
        board.holding.set()
        poll = select.poll()  # a long run of tests has more open files than select can number
        poll.register(self.connection, select.POLLIN)
        while not board.closing.is_set():
            if poll.poll(50) and not self.connection.recv(1):
                board.left.set()
                break
        self.close_connection = True


def _usage(usage: tuple[int, int]) -> dict[str, int]:
    return {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
