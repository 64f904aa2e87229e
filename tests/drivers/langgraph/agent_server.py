"""Real servers for tests, in environments of their own and without network: `langgraph dev`, and aegra."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.once import made_once
from tests.support.places import SAMPLES
from tests.support.postgres import Postgres, binaries

SLOW = """
import pathlib, time
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

class State(TypedDict):
    place: str
    done: str

def wait(state):
    place = pathlib.Path(state["place"])
    (place / "started").touch()
    end = time.monotonic() + 120
    while not (place / "go").exists() and time.monotonic() < end:
        time.sleep(0.05)
    return {"done": "yes"}

builder = StateGraph(State)
builder.add_node("wait", wait)
builder.add_node("after", lambda state: {"done": state["done"] + ", and after"})
builder.add_edge(START, "wait")
builder.add_edge("wait", "after")
graph = builder.compile()
"""
"""A graph whose first node says that it has started, and waits until it may go on."""


TEAM = """
import operator
from typing import Annotated
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

class Inner(TypedDict):
    log: Annotated[list[str], operator.add]
    mood: str

class Outer(TypedDict):
    log: Annotated[list[str], operator.add]

inner = StateGraph(Inner)
inner.add_node("gather", lambda state: {"log": ["gathered"], "mood": "calm"})
inner.add_node("ask", lambda state: {"log": [f"{interrupt('go on?')} {state['mood']}"]})
inner.add_edge(START, "gather")
inner.add_edge("gather", "ask")

builder = StateGraph(Outer)
builder.add_node("team", inner.compile())
builder.add_node("sum", lambda state: {"log": ["summed"]})
builder.add_edge(START, "team")
builder.add_edge("team", "sum")
graph = builder.compile()
"""
"""A graph with one inside it that asks."""


GATE = """
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

class State(TypedDict):
    text: str

builder = StateGraph(State)
builder.add_node("draft", lambda state: {"text": "a draft"})
builder.add_node("send", lambda state: {"text": "sent"})
builder.add_edge(START, "draft")
builder.add_edge("draft", "send")
graph = builder.compile(interrupt_before=["send"])
"""
"""A graph that was compiled to stop before its last node."""


_QUIET = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1"}


class Proxy:
    """Hands connections on to a server, until they are cut.

    Attributes:
        sent: what was sent to the server.
    """

    def __init__(self, url: str) -> None:
        self._target = ("127.0.0.1", int(url.rpartition(":")[2]))
        self._open: list[socket.socket] = []
        self._all: list[socket.socket] = []
        self.sent = bytearray()
        self._threads: list[threading.Thread] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._start(self._accept)

    def _start(self, work: Callable[..., None], *arguments: Any) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = socket.create_connection(self._target)
            self._open += [near, far]
            self._all += [near, far]
            for source, target in ((near, far), (far, near)):
                self._start(self._hand_on, source, target, source is near)

    def _hand_on(self, source: socket.socket, target: socket.socket, is_request: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if is_request:
                    self.sent += data
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Cut the connections that are open; new ones are handed on."""
        for end in self._open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)  # `close` alone would not wake who waits for a connection
        self._threads[0].join()
        self._listening.close()
        self.cut()
        for thread in self._threads:
            thread.join()
        for end in self._all:
            end.close()


def until(there: Path) -> None:
    end = time.monotonic() + 60
    while not there.exists():
        assert time.monotonic() < end, f"{there} did not come"
        time.sleep(0.05)


def installed(places: pytest.TempPathFactory, *packages: str) -> Path:
    """Where the programs of a server are; `langgraph dev` is no dependency: its licence is Elastic-2.0."""
    name = packages[0].partition("-")[0]
    return made_once(places, f"{name} installed", lambda folder: _install(folder, packages)) / "venv" / "bin"


def _install(folder: Path, packages: Sequence[str]) -> None:
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip(f"there is no uv to install {packages} with")
    venv = folder / "venv"
    for command in (
        [uv, "venv", "-q", "--python", sys.executable, str(venv)],
        [uv, "pip", "install", "-q", "--python", str(venv), *packages, "langchain>=1.0"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            pytest.skip(f"{packages} can't be installed here: {done.stderr.strip()[-300:]}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _project(folder: Path) -> Path:
    """The samples, with `slow`, `team` and `gate`."""
    project = folder / "project"
    shutil.copytree(SAMPLES / "langgraph", project, ignore=shutil.ignore_patterns("__pycache__"))
    config = json.loads((project / "langgraph.json").read_text())
    for name, source in (("slow", SLOW), ("team", TEAM), ("gate", GATE)):
        (project / f"{name}.py").write_text(source)
        config["graphs"][name] = f"./{name}.py:graph"
    (project / "langgraph.json").write_text(json.dumps(config))
    return project


@contextlib.contextmanager
def _serving(command: list[str], project: Path, up: bytes, **environment: str) -> Iterator[None]:
    """A server while it runs; it is up once it says so."""
    path = f"{Path(command[0]).parent}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen(
        command, cwd=project, env={**os.environ, **_QUIET, **environment, "PATH": path},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    output: list[bytes] = []
    is_up = threading.Event()
    reading = threading.Thread(target=_read, args=(process, output, up, is_up), daemon=True)
    reading.start()
    try:
        if not is_up.wait(120) or process.poll() is not None:
            pytest.skip(f"{command[0]} does not start here: {b''.join(output).decode()[-500:]}")
        yield
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)
        reading.join(30)


def _read(process: subprocess.Popen[bytes], output: list[bytes], up: bytes, is_up: threading.Event) -> None:
    """Read what a server says, to its end; it is up once it says so."""
    assert process.stdout is not None
    with process.stdout as said:
        for line in said:
            output.append(line)
            if up in line:
                is_up.set()
    is_up.set()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that has the samples."""
    folder = tmp_path_factory.mktemp("server")
    program, port = installed(tmp_path_factory, "langgraph-cli[inmem]") / "langgraph", free_port()
    given = ("--no-browser", "--no-reload", "--allow-blocking")
    command = [str(program), "dev", "--port", str(port), *given]
    with _serving(command, _project(folder), b"Starting 1 background workers"):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="session")
def aegra_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an aegra that has the samples, with a PostgreSQL server of its own."""
    if (programs := binaries()) is None:
        pytest.skip("there is no PostgreSQL for aegra to keep its threads in")
    folder = tmp_path_factory.mktemp("aegra")
    program, port = (
        installed(tmp_path_factory, "aegra-api==0.6.0", "greenlet", "uvicorn") / "uvicorn",
        free_port(),
    )
    command = [str(program), "aegra_api.main:app", "--port", str(port)]
    postgres = Postgres(programs)
    try:
        with postgres.admin() as database:
            database.execute(b"CREATE DATABASE aegra")
        given = {"AUTH_TYPE": "noop", "DATABASE_URL": postgres.url("aegra")}
        with _serving(command, _project(folder), b"Application startup complete", **given):
            yield f"http://127.0.0.1:{port}"
    finally:
        postgres.stop("immediate")
