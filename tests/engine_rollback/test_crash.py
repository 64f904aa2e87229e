"""A process killed between two handlers: the next rollback goes on where it was (SPEC 13)."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer, UsageError
from tests.engine_rollback import crashing
from tests.engine_rollback.booking import states
from tests.support.flows import check_log


def test_what_was_committed_is_never_run_twice_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.engine_rollback.crashing", str(path)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    said = process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert said.strip() == "in the handler"

    store = SQLiteCheckpointer(path)
    runner = crashing.runner(store, path)
    assert states(runner.run_info("t").rollback) == {"car": "done", "hotel": "open", "flight": "open"}
    with pytest.raises(UsageError, match="is being rolled back"):
        runner.invoke(thread_id="t")
    report = runner.rollback("t")
    assert (report.status, report.reason, report.ok) == ("cancelled", "rolled_back", True)
    assert [point.node for point in runner.history("t")[:3]] == [
        "<rollback>/flight", "<rollback>/hotel", "<rollback>/car",
    ]  # fmt: skip
    first, second = (line.split() for line in crashing.calls(path).read_text().splitlines())
    assert (first[:2], second[:2]) == (["hotel-2", "1"], ["hotel-2", "2"])
    assert first[2] == second[2]
    check_log(runner, "t")
    assert runner.verify("t", strict=True).ok
    assert runner.replay("t").ok
    store.close()
