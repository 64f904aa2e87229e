"""A real PgBouncer in front of the tests' PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.support.postgres import Postgres, end_with_parent, free_port, unprivileged

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
"""Where the program is, None where it isn't installed."""

_CONFIG = """
[databases]
* = host={server.folder} port={server.port} user=owner
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
{more}
"""


@contextmanager
def pgbouncer(server: Postgres, mode: str, *, drops_options: bool) -> Iterator[int]:
    """Run PgBouncer; gives the port that it listens at.

    Args:
        mode: what a client keeps a session of the server for, as its `pool_mode` says.
        drops_options: startup options are dropped; otherwise they are refused.
    """
    assert PROGRAM is not None
    port = free_port()
    user = unprivileged() if os.getuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="hitlpgb-", dir="/tmp"))
    folder.chmod(0o755)
    config = folder / "pgbouncer.ini"
    more = "ignore_startup_parameters = options" if drops_options else ""
    config.write_text(_CONFIG.format(server=server, port=port, mode=mode, more=more))
    with (folder / "log").open("w") as log:
        running = subprocess.Popen(
            [PROGRAM, config], user=user, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            preexec_fn=end_with_parent,  # noqa: PLW1509  it calls the system alone
        )  # fmt: skip
    try:
        _wait_until_it_answers(running, port, folder / "log")
        yield port
    finally:
        running.kill()
        running.wait()
        shutil.rmtree(folder)


def _wait_until_it_answers(running: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(host="127.0.0.1", port=port, user="owner", dbname="postgres").close()
        except psycopg.OperationalError as error:
            if running.poll() is not None or time.monotonic() > end:
                raise RuntimeError(log.read_text()) from error
            time.sleep(0.02)
        else:
            return
