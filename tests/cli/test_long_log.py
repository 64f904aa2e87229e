"""`verify` of a long log: in processes that end with it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui import END, START, Channel, SQLiteCheckpointer, StateGraph
from hitl_tui.engine.log.records import Limits
from tests.support.spec import spec

pytestmark = [spec("12"), pytest.mark.slow]


STEPS = 40_000
"""More than processes are started for, and as many as one of them checks for a while."""


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_ctrl_c_ends_a_check_and_its_processes(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with closing(SQLiteCheckpointer(path, durability="none")) as store:
        graph = StateGraph({"n": Channel(0)}).add_node("count", lambda s, c: {"n": s["n"] + 1})
        graph.add_edge(START, "count")
        graph.add_conditional_edge("count", lambda s: s["n"] < STEPS, {"true": "count", "false": END})
        runner = graph.compile(checkpointer=store, limits=Limits(max_iterations=None))
        runner.invoke({}, thread_id="t")
    program = "from hitl_tui.engine.audit import processes; processes.cores = lambda: 2; "
    program += "from hitl_tui.cli.main import main; main()"
    argv = [sys.executable, "-c", program, "verify", "t", "--store", str(path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as check:
        while len(started := children(check.pid)) < 2 and check.poll() is None:
            pass
        check.send_signal(signal.SIGINT)
        said, _ = check.communicate(timeout=60)
    assert len(started) == 2
    assert check.returncode == 130, said
    assert b"Traceback" not in said
    end = time.monotonic() + 30  # one that was just beginning ends when it finds nobody at its pipe
    while any(Path(f"/proc/{pid}").exists() for pid in started):
        assert time.monotonic() < end
