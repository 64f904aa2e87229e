"""The standard streams that belong to the code of nodes, given back between two commands."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hitl_tui.drivers.node_streams import flush_output, give_output_back, keep_output

pytestmark = pytest.mark.skipif(os.name != "posix", reason="without POSIX no descriptors are kept")


def open_pipes() -> set[str]:
    links = {str(file) for file in Path("/dev/fd").iterdir()}
    return {os.readlink(link) for link in links if os.path.islink(link) and "pipe:" in os.readlink(link)}


def readers_end() -> None:
    for thread in threading.enumerate():
        if thread.name == "hitl-tui node output":
            thread.join(30)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="it counts the pipes in /proc")
def test_a_pipe_stays_open_only_while_a_process_of_a_node_can_write_to_it() -> None:
    before = open_pipes()
    lines: list[str] = []
    for _ in range(3):
        keep_output(lines.extend)
        os.write(1, b"a line\n")
        give_output_back()
    readers_end()
    assert (lines, open_pipes()) == (["a line"] * 3, before)
    keep_output(lines.extend)
    child = subprocess.Popen(
        [sys.executable, "-c", "print('later'); input(); print('at last')"], stdin=subprocess.PIPE
    )
    give_output_back()
    child.communicate(b"\n", timeout=60)
    assert child.returncode == 0, "whoever still writes there is not ended by it"
    readers_end()
    assert (lines[3:], open_pipes()) == (["later", "at last"], before)


def test_the_final_flush_waits_for_the_thread_that_is_reporting() -> None:
    is_reporting, may_end, rest_reported = threading.Event(), threading.Event(), threading.Event()
    order: list[str] = []

    def record(lines: list[str]) -> None:
        is_reporting.set()
        assert may_end.wait(60)
        order.extend(lines)

    def tell_and_note() -> None:
        flush_output()
        order.append("the rest was reported")
        rest_reported.set()

    keep_output(record)
    try:
        os.write(1, b"a line\n")
        assert is_reporting.wait(60)
        asking = threading.Thread(target=tell_and_note)
        asking.start()
        assert not rest_reported.wait(0.1)
        may_end.set()
        asking.join(60)
    finally:
        may_end.set()
        give_output_back()
    readers_end()
    assert order == ["a line", "the rest was reported"]
