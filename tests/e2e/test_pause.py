"""`hitl-tui pause` on a thread that another process runs: it pauses there, and the log says who asked."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hitl_tui.stores import open_store
from tests.support.program import APP, call
from tests.support.terminal import PATIENCE

LOOP = """
import pathlib, time
from hitl_tui import END, START, Channel, StateGraph
from hitl_tui import Limits
def tick(state):
    while pathlib.Path(__file__).with_name("wait").exists():
        time.sleep(0.02)
    time.sleep(0.01)
    return {"n": state["n"] + 1}
graph = StateGraph({"n": Channel(0)}, name="loop").add_node("tick", tick).add_edge(START, "tick")
graph.add_conditional_edge("tick", lambda s: s["n"] < 1_000_000, {"true": "tick", "false": END})
runner = graph.compile(limits=Limits(max_iterations=None))
"""


@pytest.fixture(params=["sqlite:///{}/runs.db", "files:{}/runs"], ids=["sqlite", "files"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.param).format(tmp_path)


@contextmanager
def running(folder: Path, url: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs thread `t` without end."""
    (folder / "loop.py").write_text(LOOP)
    process = subprocess.Popen(
        [*APP, "run", f"{folder / 'loop.py'}:runner", "--json", "--thread", "t", "--store", url],
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        end = time.monotonic() + PATIENCE
        while not moving(url):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait()


def moving(url: str) -> bool:
    """Whether the thread has a step that a node wrote."""
    if not Path(url.removeprefix("sqlite:///").removeprefix("files:")).exists():
        return False
    store = open_store(url)
    try:
        cursor = store.cursor("t")
    finally:
        store.close()
    return cursor is not None and cursor.head > 0


def test_a_thread_is_paused_in_the_process_that_runs_it_and_the_log_names_who_asked(
    tmp_path: Path, url: str
) -> None:
    with running(tmp_path, url) as process:
        done = call("pause", "t", "--store", url, "--as", "ann", "--note", "lunch", "--wait", "60", "--json")
        assert done.returncode == 0, done
        result = json.loads(done.stdout)
        assert (result["status"], result["reason"]) == ("waiting", "paused")
        assert process.wait(PATIENCE) == 3
    ledger = json.loads(call("log", "t", "--store", url, "--limit", "1", "--json").stdout)["decisions"]
    assert [(entry["decision"], entry["actor"], entry["note"]) for entry in ledger] == [
        ("pause", "ann", "lunch")
    ]
    assert call("verify", "t", "--store", url).returncode == 0


def test_a_slow_node_pauses_the_thread_when_it_is_done(tmp_path: Path, url: str) -> None:
    with running(tmp_path, url) as process:
        (tmp_path / "wait").touch()
        done = call("pause", "t", "--store", url, "--wait", "0.5", "--json")
        assert done.returncode == 4
        error = json.loads(done.stdout)
        assert f"process {process.pid}" in error["message"]
        assert "was asked to pause" in error["message"]
        (tmp_path / "wait").unlink()
        assert process.wait(PATIENCE) == 3


def test_a_dead_holder_is_reported_and_its_thread_is_left_paused(tmp_path: Path, url: str) -> None:
    with running(tmp_path, url) as process:
        process.kill()
        process.wait()
        done = call("pause", "t", "--store", url)
    assert done.returncode == 0, done
    assert f"process {process.pid}" in done.stderr
    assert "ended without giving the thread back" in done.stderr


def test_a_pause_request_for_an_earlier_run_does_not_stop_the_next_one(tmp_path: Path, url: str) -> None:
    with running(tmp_path, url) as process:
        (tmp_path / "wait").touch()
        assert call("pause", "t", "--store", url, "--wait", "0").returncode == 4
        process.kill()
    (tmp_path / "wait").unlink()
    before = json.loads(call("show", "t", "--store", url, "--json").stdout)["step"]
    done = call("step", "t", "--store", url, "--json")
    assert json.loads(done.stdout.splitlines()[-1])["step"] == before + 1
    assert call("log", "t", "--store", url, "--limit", "1").stdout.count(" pause ") == 0
