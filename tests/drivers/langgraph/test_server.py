"""Graphs on a real server of LangGraph, `langgraph dev` in an environment of its own, without network."""

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
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("langgraph")

from tests.support.commands import App
from tests.support.places import SAMPLES

pytestmark = pytest.mark.slow


SLOW = """
import pathlib, time
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

class State(TypedDict):
    place: str
    done: str

def wait(state):
    place = pathlib.Path(state["place"])
    (place / "begun").touch()
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
"""A graph whose first node says that it has begun, and waits until it may go on."""


class Proxy:
    """Hands connections on to a server, until they are cut."""

    def __init__(self, url: str) -> None:
        self._target = ("127.0.0.1", int(url.rpartition(":")[2]))
        self._open: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = socket.create_connection(self._target)
            self._open += [near, far]
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._hand_on, args=(source, target), daemon=True).start()

    def _hand_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
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
        self._listening.close()
        self.cut()


def until(there: Path) -> None:
    end = time.monotonic() + 60
    while not there.exists():
        assert time.monotonic() < end, f"{there} did not come"
        time.sleep(0.05)


def installed(folder: Path) -> Path:
    """The server's program; it is never one of our dependencies, since its licence is Elastic-2.0."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("there is no uv to install `langgraph-cli[inmem]` with")
    venv = folder / "venv"
    for command in (
        [uv, "venv", "-q", "--python", sys.executable, str(venv)],
        [uv, "pip", "install", "-q", "--python", str(venv), "langgraph-cli[inmem]", "langchain>=1.0"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            pytest.skip(f"`langgraph-cli[inmem]` can't be installed here: {done.stderr.strip()[-300:]}")
    return venv / "bin" / "langgraph"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that has the samples."""
    folder = tmp_path_factory.mktemp("server")
    program, port = installed(folder), free_port()
    project = folder / "project"
    shutil.copytree(SAMPLES / "langgraph", project, ignore=shutil.ignore_patterns("__pycache__"))
    (project / "slow.py").write_text(SLOW)
    config = json.loads((project / "langgraph.json").read_text())
    config["graphs"]["slow"] = "./slow.py:graph"
    (project / "langgraph.json").write_text(json.dumps(config))
    quiet = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1"}
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(program), "dev", "--port", str(port), "--no-browser", "--no-reload", "--allow-blocking"],
            cwd=folder / "project", env={**os.environ, **quiet, "PATH": path}, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            if process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"{url}/ok", timeout=2):
                    break
            except OSError:
                time.sleep(0.2)
        else:
            process.kill()
        if process.poll() is not None:
            pytest.skip(f"`langgraph dev` does not start here: {(folder / 'log').read_text()[-500:]}")
        yield url
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)


def at(url: str, assistant: str) -> tuple[str, ...]:
    return "--server", url, "--assistant", assistant


def test_a_thread_is_run_asked_and_answered_by_several_processes(server: str, app: App) -> None:
    asked = app.expect(3, "run", *at(server, "approval"), "--input", "amount=1200", "--json").documents[-1]
    thread = asked["thread"]
    (request,) = asked["pending"]
    assert request["schema"]["required"] == ["approved", "amount", "reason"]
    assert thread in app.expect(0, "threads", *at(server, "approval")).out
    store = ("--store", f"langgraph+{server}#approval")
    given = ("--set", "approved=yes", "--set", "amount=900", "--set", "reason=goodwill")
    app.expect(0, "answer", thread, request["id"], *given, "--step", "1", "--note", "late", *store)
    app.expect(0, "resume", thread, "--headless", *store)
    shown = app.expect(0, "show", thread, "--json", *store).document
    assert shown["state"]["offer"] == "Paid: 900 €."
    assert "late" in app.expect(0, "log", thread, *store).out


def test_a_fan_out_and_the_words_of_a_model_come_as_from_a_local_graph(server: str, app: App) -> None:
    done = app.expect(0, "run", *at(server, "jokes"), "--input", "topic=animals", "--json").documents[-1]
    assert len(done["state"]["jokes"]) == 3
    done = app.expect(
        0, "run", *at(server, "chat"), "--input", 'messages=[{"role": "user", "content": "What?"}]', "--json"
    ).documents[-1]
    assert [message["type"] for message in done["state"]["messages"]] == ["human", "ai"]


def test_what_a_server_does_not_tell_is_refused_in_words(server: str, app: App) -> None:
    asked = app.expect(3, "run", *at(server, "approval"), "--input", "amount=5", "--json").documents[-1]
    store = ("--store", f"langgraph+{server}#approval")
    refused = app.expect(2, "update-state", asked["thread"], "amount=6", *store)
    assert "does not tell which reducer" in refused.err


@pytest.mark.parametrize(
    ("assistant", "words"), [((), "has several graphs"), (("--assistant", "gone"), "no assistant 'gone'")]
)
def test_which_graph_is_meant_must_be_plain(
    server: str, app: App, assistant: tuple[str, ...], words: str
) -> None:
    assert words in app.expect(2, "threads", "--server", server, *assistant).err


def test_a_key_of_the_environment_goes_with_each_request_and_is_never_kept(
    server: str, app: App, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HITL_TUI_SERVER_HEADERS", '{"X-Team": "SECRET-OF-MINE"}')
    app.expect(0, "run", *at(server, "jokes"), "--input", "topic=tools", "--headless")
    data = Path(os.environ["XDG_DATA_HOME"])
    files = [file for file in data.rglob("*") if file.is_file()]
    assert any(file.suffix == ".db" for file in files)
    assert [file for file in files if b"SECRET-OF-MINE" in file.read_bytes()] == []


def test_a_run_whose_connection_is_cut_is_joined_again(server: str, app: App, tmp_path: Path) -> None:
    proxy = Proxy(server)

    def cut() -> None:
        until(tmp_path / "begun")
        proxy.cut()
        (tmp_path / "go").touch()

    cutting = threading.Thread(target=cut)
    cutting.start()
    try:
        given = ("--input", f"place={tmp_path}", "--json")
        done = app.expect(0, "run", *at(proxy.url, "slow"), *given).documents[-1]
    finally:
        cutting.join()
        proxy.close()
    assert (done["status"], done["state"]["done"]) == ("completed", "yes, and after")


def test_a_thread_that_the_server_runs_is_not_run_twice(server: str, app: App, tmp_path: Path) -> None:
    from langgraph_sdk import get_sync_client

    client = get_sync_client(url=server)
    thread = client.threads.create(graph_id="slow")["thread_id"]
    client.runs.create(thread, "slow", input={"place": str(tmp_path)})
    until(tmp_path / "begun")
    try:
        refused = app("resume", thread, "--headless", "--store", f"langgraph+{server}#slow")
        assert refused.code == 1
        assert "the server runs this thread already" in refused.out
    finally:
        (tmp_path / "go").touch()
