"""Processes that are killed in the middle of what they do."""

from __future__ import annotations

import subprocess
import sys
import time

from tests.support.places import ROOT


def kill_once_it_says(words: str, module: str, *arguments: object, after: float = 0.0) -> None:
    """Run a module of the tests in another Python, and kill that once it has said its first line.

    Args:
        after: seconds to wait then, so that the kill comes at another moment each time.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, *map(str, arguments)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    said = process.stdout.readline()
    time.sleep(after)
    process.kill()
    process.communicate()
    assert said.strip() == words
