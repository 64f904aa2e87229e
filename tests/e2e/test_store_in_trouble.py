"""Stores that can't be used for a while: full, locked, read-only.  The run says so and goes on later."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.support.commands import App
from tests.support.program import APP, COUNTER, call
from tests.support.terminal import Terminal


def test_a_full_disk_and_on_screen(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=False, capture_output=True
    ).returncode:
        pytest.skip("a file system can't be mounted here")
    try:
        ballast = disk / "ballast"
        with contextlib.suppress(OSError):
            ballast.write_bytes(b"\0" * 2_000_000)
        store = str(disk / "runs.db")
        done = call("run", COUNTER, "--headless", "--thread", "c", "--store", store, cwd=tmp_path)
        assert done.returncode == 1
        assert "no space is left" in done.stderr
        ballast.write_bytes(b"\0" * 930_000)
        with Terminal(
            [*APP, "run", COUNTER, "--thread", "c", "--store", store, "--input", "limit=9999"]
        ) as terminal:
            terminal.wait_for("increment is next")
            terminal.press("c")
            terminal.wait_for("no space is left")
            terminal.settle()
            terminal.press("q")
            assert terminal.wait_exit() == 1
        ballast.unlink()
        done = call("verify", "c", "--store", store, cwd=tmp_path)
        assert done.returncode == 0, done.stderr + done.stdout
        assert call("step", "c", "--store", store, cwd=tmp_path).returncode in (0, 3)
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_store_that_somebody_keeps_locked(tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    started = call("run", COUNTER, "--headless", "--thread", "c", "--store", store, cwd=tmp_path)
    assert started.returncode == 0
    holder = sqlite3.connect(store, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        assert call("show", "c", "--store", store, cwd=tmp_path).returncode == 0
        done = call("fork", "c@1", "d", "--store", store, cwd=tmp_path)
    finally:
        holder.close()
    assert done.returncode == 1
    assert "stayed locked by another program" in done.stderr
    assert call("fork", "c@1", "d", "--store", store, cwd=tmp_path).returncode == 0


def test_a_store_that_gets_locked_while_it_is_on_screen(app: App, tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    with Terminal(
        [*APP, "run", COUNTER, "--thread", "c", "--store", store, "--input", "limit=3"]
    ) as terminal:
        terminal.wait_for("increment is next")
        holder = sqlite3.connect(store, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        try:
            terminal.press("s")
            terminal.wait_for("stayed locked by another program")
        finally:
            holder.close()
        terminal.press("c")
        terminal.wait_for("DONE")
        terminal.press("q")
        assert terminal.wait_exit() == 0
    assert "ok" in app.expect(0, "verify", "c", "--store", store).out


@pytest.mark.parametrize("kind", ["sqlite:///{}/runs.db", "files:{}/runs"])
def test_a_file_system_that_is_read_only(kind: str, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a file system can't be mounted here")
    store = kind.format(disk)
    try:
        run = ("run", COUNTER, "--headless", "--thread", "c", "--store", store)
        assert call(*run, cwd=tmp_path).returncode == 0
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for arguments in (("fork", "c@1", "d"), ("resume", "c", "--headless")):
            done = call(*arguments, "--store", store, cwd=tmp_path)
            assert done.returncode == 2
            assert "the store is read-only" in done.stderr
        for looking in ("threads", "show c", "log c", "verify --strict c", "export c"):
            done = call(*looking.split(), "--store", store, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


SLOW = """
import time
from hitl_tui import END, START, Channel, StateGraph
def tick(state):
    time.sleep(0.25)
    return {"n": state["n"] + 1}
graph = (
    StateGraph({"n": Channel(0)}, name="slow").add_node("tick", tick).add_edge(START, "tick")
    .add_conditional_edge("tick", lambda s: s["n"] < 18, {"true": "tick", "false": END})
)
"""


@contextlib.contextmanager
def lost(store: Path) -> Iterator[None]:
    """The file is deleted, and stays so."""
    for part in store.parent.glob("runs.db*"):
        part.unlink()
    yield


@contextlib.contextmanager
def moved(store: Path) -> Iterator[None]:
    """All of the store is away for a while."""
    away = store.parent.rename(store.parent.with_name("away"))
    yield
    away.rename(store.parent)


@contextlib.contextmanager
def locked(store: Path) -> Iterator[None]:
    """Another program keeps it locked for a while."""
    holder = sqlite3.connect(store, isolation_level=None)
    try:
        while True:
            with contextlib.suppress(sqlite3.OperationalError):
                holder.execute("BEGIN IMMEDIATE")
                break
        yield
    finally:
        holder.close()


@pytest.mark.parametrize(
    ("kind", "trouble", "words"),
    [
        ("{}/runs.db", lost, "deleted or moved"),
        ("{}/runs.db", moved, "deleted or moved"),
        ("{}/runs.db", locked, "stayed locked by another program"),
        ("files:{}/runs", moved, "deleted or moved"),
    ],
    ids=["deleted", "moved", "locked", "files moved"],
)
def test_a_store_that_disappears_stops_the_run_which_continues_once_it_is_back(
    kind: str, trouble: Callable[[Path], AbstractContextManager[None]], words: str, tmp_path: Path
) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    store = kind.format(tmp_path / "kept")
    (tmp_path / "kept").mkdir()
    run = [*APP, "run", "slow.py", "--thread", "t", "--store", store]
    with Terminal(run, cwd=tmp_path) as terminal:
        terminal.wait_for("tick is next")
        terminal.press("c")
        terminal.wait_for("at step 2")
        with trouble(tmp_path / "kept" / "runs.db"):
            screen = terminal.wait_for_words("The store can't be used", words, "FAILED", "try again")
            assert "runs this thread" not in screen
        terminal.press("c")
        terminal.wait_for("DONE")
        terminal.wait_gone("The store can't be used")
        terminal.press("q")
        assert terminal.wait_exit() == 0
    done = call("verify", "t", "--strict", "--store", store, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "  | 18" in call("show", "t", "--store", store, cwd=tmp_path).stdout
