"""Other Python processes for tests; what one says line by line is what a test waits for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.places import ROOT

PRELUDE = """
import sys
from hitl_tui.errors import HitlError
from hitl_tui.stores import FileCheckpointer, SQLiteCheckpointer, open_store
from tests.stores.log_writer import NOW, Writer

def say(text):
    print(text, flush=True)

"""


@contextmanager
def process(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Another Python, killed at the end."""
    started = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + code, *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def read_line(started: subprocess.Popen[str]) -> str:
    """The next line it says."""
    assert started.stdout is not None
    return started.stdout.readline().strip()


def write_line(started: subprocess.Popen[str], line: str = "go") -> None:
    """Say a line to it."""
    assert started.stdin is not None
    started.stdin.write(f"{line}\n")
    started.stdin.flush()
