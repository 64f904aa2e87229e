"""A process can end although a node is still busy, and the next one goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from tests.drivers import leaving
from tests.support.flows import check_log
from tests.support.places import ROOT
from tests.support.spec import spec

pytestmark = [pytest.mark.integration, spec("11"), pytest.mark.integration]


@pytest.mark.parametrize("style", ["sync", "async"])
def test_closing_in_the_middle_of_a_node_lets_the_process_end(tmp_path: Path, style: str) -> None:
    path = tmp_path / "runs.db"
    done = subprocess.run(
        [sys.executable, "-m", "tests.drivers.leaving", str(path), style],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "node 'b' was running, nothing of it was saved" in done.stdout
    store = SQLiteCheckpointer(path)
    runner = leaving.runner(store, None)
    cursor = store.cursor("t")
    assert cursor is not None
    assert (cursor.status, cursor.reason, cursor.head) == ("waiting", "paused", 1)
    assert list(runner.invoke(thread_id="t")["log"]) == ["one", "two"]
    check_log(runner, "t")
    store.close()
