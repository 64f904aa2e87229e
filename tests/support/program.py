"""The real program as a process of its own, and graphs for it to run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.places import SAMPLES

APP = [str(Path(sys.executable).with_name("hitl-tui"))]
COUNTER = str(SAMPLES / "counter.py")
ADVISOR = str(SAMPLES / "advisor.py")


def call(*arguments: str, cwd: Path | None = None, **options: str) -> subprocess.CompletedProcess[str]:
    """Run a command without a terminal; `options` are variables of its environment."""
    return subprocess.run(
        [*APP, *arguments],
        cwd=cwd,
        env={**os.environ, **options},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
