"""A pooler between us and the server: it refuses startup options, drops them, or keeps no sessions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from hitl_tui.errors import StoreUnusable
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from tests.stores.log_writer import Writer
from tests.support.commands import App
from tests.support.pgbouncer import PROGRAM, pgbouncer
from tests.support.postgres import Postgres

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(PROGRAM is None, reason="PgBouncer is not installed"),
]


@pytest.fixture(params=[False, True], ids=["refuses options", "drops options"])
def drops_options(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def keeping_sessions(drops_options: bool, postgres: Postgres, postgres_url: str) -> Iterator[str]:
    """The URL of a store behind a pooler in session mode."""
    with pgbouncer(postgres, "session", drops_options=drops_options) as port:
        yield postgres_url.replace(f":{postgres.port}", f":{port}")


@pytest.fixture(params=["transaction", "statement"])
def keeping_none(
    request: pytest.FixtureRequest, drops_options: bool, postgres: Postgres, postgres_url: str
) -> Iterator[str]:
    """The URL of a store behind a pooler in another mode."""
    with pgbouncer(postgres, request.param, drops_options=drops_options) as port:
        yield postgres_url.replace(f":{postgres.port}", f":{port}")


def test_a_store_behind_a_pooler_is_the_same_store(keeping_sessions: str, postgres_url: str) -> None:
    with closing(PostgresCheckpointer(keeping_sessions)) as store:
        Writer(store).step()
        settings = store._rows("SELECT current_setting('search_path'), current_setting('lock_timeout')")
        assert settings == [(keeping_sessions.rpartition("=")[2], "5s")]
    with closing(PostgresCheckpointer(postgres_url)) as store:
        assert [row.info.thread_id for row in store.threads()] == ["t"]


def test_a_thread_is_run_answered_and_verified_through_it(keeping_sessions: str, app: App) -> None:
    store = ("--store", keeping_sessions)
    app.expect(3, "run", "review", "--headless", "--input", "task=x", "--thread", "t", *store)
    app.expect(0, "decide", "t", "--answer", "approve", "--yes", "--trust", *store)
    app.expect(0, "verify", "t", "--strict", *store)


def test_a_pooler_that_keeps_no_sessions_is_named(keeping_none: str, postgres_url: str) -> None:
    with pytest.raises(StoreUnusable, match="gives each transaction another session") as refused:
        PostgresCheckpointer(keeping_none)
    assert "pool_mode=session" in refused.value.hint
    schema = postgres_url.rpartition("=")[2]
    with psycopg.connect(postgres_url.partition("?")[0]) as db:
        assert db.execute("SELECT to_regnamespace(%s)", (schema,)).fetchone() == (None,)
