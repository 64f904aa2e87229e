"""A clock that jumps back harms nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.program import COUNTER
from tests.support.spec import spec

pytestmark = spec("10")

JUMPING = """
import itertools, sys, time
real, calls = time.time_ns, itertools.count()
time.time_ns = lambda: real() - next(calls) * 3_600_000_000_000
from hitl_tui.cli.main import main
sys.argv = ["hitl-tui", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize("kind", ["sqlite:///runs.db", "files:runs"])
def test_a_clock_that_jumps_back_ends_no_run(kind: str, tmp_path: Path) -> None:
    def jumping(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-c", JUMPING, *arguments, "--store", kind],
            cwd=tmp_path, capture_output=True, text=True, timeout=150, check=False,
        )  # fmt: skip

    assert jumping("step", "c").returncode == 2
    done = jumping("run", COUNTER, "--headless", "--thread", "c", "--input", "limit=5")
    assert done.returncode == 0, done.stderr
    for arguments in (("threads",), ("show", "c"), ("log", "c"), ("verify", "c"), ("fork", "c@2", "d")):
        done = jumping(*arguments)
        assert done.returncode == 0, (arguments, done.stderr)
        assert "Traceback" not in done.stderr
