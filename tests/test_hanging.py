"""The guard of the tests themselves: what hangs fails, with a stack."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.hanging import Hung, no_longer_than

_HANGS_TWICE = """
import threading
from tests.support.hanging import no_longer_than

with no_longer_than(0.1, grace=0.1):
    try:
        threading.Event().wait()
    finally:
        threading.Event().wait()
"""


def in_a_lock() -> None:
    threading.Event().wait()


def in_a_loop() -> None:
    asyncio.run(asyncio.Event().wait())


@pytest.mark.parametrize("hang", [in_a_lock, in_a_loop])
def test_a_hanging_test_is_ended_with_a_stack_trace(
    hang: Callable[[], None], capfd: pytest.CaptureFixture[str]
) -> None:
    outer = signal.getitimer(signal.ITIMER_REAL)
    with pytest.raises(Hung), no_longer_than(0.1):
        hang()
    assert hang.__name__ in capfd.readouterr().err
    signal.setitimer(signal.ITIMER_REAL, *outer)


def test_a_test_that_hangs_in_its_teardown_ends_its_process() -> None:
    root = Path(__file__).parent.parent
    ended = subprocess.run(
        [sys.executable, "-c", _HANGS_TWICE],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.count("in wait") > 2


def test_no_failure_calls_the_guard_off(pytestconfig: pytest.Config) -> None:
    assert not pytestconfig.pluginmanager.has_plugin("faulthandler")


def test_programs_that_tests_start_hear_ctrl_c() -> None:
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
