"""Graphs on a real server of LangGraph, `langgraph dev` in an environment of its own, without network."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("langgraph")

from tests.support.commands import App
from tests.support.places import SAMPLES

pytestmark = pytest.mark.slow


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
    shutil.copytree(SAMPLES / "langgraph", folder / "project", ignore=shutil.ignore_patterns("__pycache__"))
    quiet = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1"}
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(program), "dev", "--port", str(port), "--no-browser", "--no-reload"],
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
