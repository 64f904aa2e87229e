"""The guard of the tests themselves: what hangs fails, with a stack."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable

import pytest

from tests.support.hanging import Hung, no_longer_than


def in_a_lock() -> None:
    threading.Event().wait()


def in_a_loop() -> None:
    asyncio.run(asyncio.Event().wait())


@pytest.mark.parametrize("hang", [in_a_lock, in_a_loop])
def test_what_hangs_is_ended_with_a_stack(
    hang: Callable[[], None], capfd: pytest.CaptureFixture[str]
) -> None:
    outer = signal.getitimer(signal.ITIMER_REAL)[0]
    with pytest.raises(Hung), no_longer_than(0.1):
        hang()
    assert hang.__name__ in capfd.readouterr().err
    signal.setitimer(signal.ITIMER_REAL, outer)


def test_programs_that_tests_start_hear_ctrl_c() -> None:
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
