"""A pooler between us and the server: it refuses startup options, drops them, or keeps no sessions."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from urllib.parse import urlsplit

import psycopg
import pytest

from hitl_tui.errors import StoreUnusable
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from tests.stores.log_writer import Writer
from tests.support.postgres import Postgres

pytestmark = pytest.mark.integration

_SSL = 80877103


class Pooler:
    """Takes connections as PgBouncer does, one of ours for each of its clients.

    Args:
        refuses: it answers startup options with an error; else it drops them.
    """

    def __init__(self, port: int, *, refuses: bool) -> None:
        self._port, self._refuses = port, refuses
        self._listens = socket.create_server(("127.0.0.1", 0))
        self.port = self._listens.getsockname()[1]
        self._threads = [threading.Thread(target=self._run, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        with suppress(OSError):
            self._listens.shutdown(socket.SHUT_RDWR)
        self._listens.close()
        for thread in self._threads:
            thread.join(10)

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listens.accept()
                self._threads.append(threading.Thread(target=self._serve, args=(client,), daemon=True))
                self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError, struct.error):
            code, body = _startup(client)
            while code == _SSL:
                client.sendall(b"N")
                code, body = _startup(client)
            parts = body.rstrip(b"\0").split(b"\0")
            facts = dict(zip(parts[::2], parts[1::2], strict=True))
            if facts.pop(b"options", None) is not None and self._refuses:
                told = b"SFATAL\0C08P01\0Munsupported startup parameter: options\0\0"
                client.sendall(b"E" + struct.pack("!I", len(told) + 4) + told)
                return
            words = b"\0".join(part for pair in facts.items() for part in pair) + b"\0\0"
            with socket.create_connection(("127.0.0.1", self._port)) as server:
                server.sendall(struct.pack("!II", len(words) + 8, code) + words)
                back = threading.Thread(target=_carry, args=(server, client), daemon=True)
                back.start()
                _carry(client, server)
                back.join(10)


def _startup(client: socket.socket) -> tuple[int, bytes]:
    size, code = struct.unpack("!II", client.recv(8, socket.MSG_WAITALL))
    return code, client.recv(size - 8, socket.MSG_WAITALL) if size > 8 else b""


def _carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@pytest.fixture(params=[True, False], ids=["refuses options", "drops options"])
def through(request: pytest.FixtureRequest, postgres: Postgres, postgres_url: str) -> Iterator[str]:
    """The URL of a store behind a pooler."""
    pooler = Pooler(postgres.port, refuses=request.param)
    parts = urlsplit(postgres_url)
    assert parts.port == postgres.port
    yield postgres_url.replace(f":{postgres.port}", f":{pooler.port}")
    pooler.close()


def test_a_store_behind_a_pooler_is_the_same_store(through: str, postgres_url: str) -> None:
    with closing(PostgresCheckpointer(through)) as store:
        Writer(store).step()
        settings = store._rows("SELECT current_setting('search_path'), current_setting('lock_timeout')")
        assert settings == [(through.rpartition("=")[2], "5s")]
    with closing(PostgresCheckpointer(postgres_url)) as store:
        assert [row.info.thread_id for row in store.threads()] == ["t"]


def test_a_pooler_that_keeps_no_sessions_is_named(through: str, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = psycopg.connect
    shared: list[psycopg.Connection[tuple[object, ...]]] = []

    class SameSession:
        """What transaction pooling comes to: another client gets the session that was given back last."""

        def __enter__(self) -> psycopg.Connection[tuple[object, ...]]:
            return shared[0]

        def __exit__(self, *_: object) -> None:
            pass

    def one_session(*arguments: object, **options: object) -> object:
        if shared:
            return SameSession()
        shared.append(connect(*arguments, **options))  # type: ignore[arg-type]
        return shared[0]

    with monkeypatch.context() as patch:
        patch.setattr(psycopg, "connect", one_session)
        with pytest.raises(StoreUnusable, match="gives each transaction another session") as refused:
            PostgresCheckpointer(through)
    assert "pool_mode=session" in refused.value.hint
    shared[0].close()
