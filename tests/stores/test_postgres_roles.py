"""Roles of a store in PostgreSQL, tried with real logins: each does what it may, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import msgspec
import psycopg
import pytest

from hitl_tui.engine.log.threads import Deletion
from hitl_tui.errors import StoreUnusable
from hitl_tui.stores.postgres.roles import ROLES
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from tests.stores.log_writer import NOW, Writer, entry
from tests.support.flows import line, say
from tests.support.postgres import PASSWORD, Postgres
from tests.support.spec import spec

pytestmark = spec("10")

LOGINS = {"vera": "hitl_viewer", "rita": "hitl_reviewer", "walt": "hitl_worker", "olga": "hitl_operator"}


@pytest.fixture
def schema(postgres_url: str, postgres: Postgres) -> str:
    """A store with a thread, roles and a login of each."""
    with closing(PostgresCheckpointer(postgres_url)) as store:
        for _ in range(2):
            store.make_roles()
        writer = Writer(store)
        writer.step({"n": 1}, ledger=(entry(writer.cursor),))
        store.release("t", writer.lease.token)
    for login, role in LOGINS.items():
        postgres.login(login)
        with postgres.admin() as db:
            db.execute(f"GRANT {role} TO {login}".encode())
    return postgres_url.rpartition("=")[2]


def opened(postgres: Postgres, schema: str, login: str) -> PostgresCheckpointer:
    return PostgresCheckpointer(postgres.url(user=login, password=PASSWORD, schema=schema))


@pytest.fixture(params=LOGINS)
def login(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(postgres: Postgres, schema: str, login: str) -> Iterator[PostgresCheckpointer]:
    there = opened(postgres, schema, login)
    yield there
    there.close()


def may(store: PostgresCheckpointer, do: object) -> bool:
    assert callable(do)
    try:
        do()
    except StoreUnusable as error:
        if "may not do that" in error.message:
            return False
        raise
    return True


def decide(store: PostgresCheckpointer) -> None:
    writer = Writer(store, create=False)
    try:
        said = entry(writer.cursor)
        writer.step({"n": 2}, ledger=(msgspec.structs.replace(said, kind="answer"),))
    finally:
        store.release("t", writer.lease.token)


def run(store: PostgresCheckpointer) -> None:
    line(store, say("x")).invoke({}, thread_id="own")


def delete(store: PostgresCheckpointer) -> None:
    cursor = store.cursor("t")
    assert cursor is not None
    store.delete(Deletion({"t": cursor.version}, None, None, NOW, force=True))


def test_each_role_does_what_it_may_and_nothing_else(store: PostgresCheckpointer, login: str) -> None:
    assert [thread.info.thread_id for thread in store.threads()] == ["t"]
    assert list(store.faults("t")) == []
    decided = may(store, lambda: decide(store))
    ran = may(store, lambda: run(store))
    deleted = may(store, lambda: delete(store))
    assert {
        "vera": (False, False, False),
        "rita": (True, False, False),
        "walt": (False, True, False),
        "olga": (True, True, True),
    }[login] == (decided, ran, deleted)
    assert (store.info("t") is None) == deleted


REWRITTEN = [
    "UPDATE ledger SET actor = 'bob'",
    "UPDATE record SET note = 'x'",
    "UPDATE checkpoint SET note = 'x'",
    "UPDATE snapshot SET body = ''",
    "TRUNCATE ledger",
    "UPDATE cursor SET version = 0",
    "UPDATE cursor SET head = -1",
]
TAKEN = ["DELETE FROM ledger", "DELETE FROM record", "DELETE FROM checkpoint", "DELETE FROM thread"]
FORGED = (
    "INSERT INTO ledger (id, kind, step, seen, data, at, hash, request_hash, account, signature, login) "
    "VALUES (4294967305, 'answer', 0, '', 'null', 0, '', '', '', '', 'rita')"
)


def refused(db: psycopg.Connection[object], statement: str) -> bool:
    try:
        db.execute(statement.encode())
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


@pytest.mark.parametrize("statement", [*REWRITTEN, FORGED, "DELETE FROM store_ledger"])
def test_nobody_rewrites_the_log_or_writes_under_another_login(
    postgres: Postgres, schema: str, statement: str
) -> None:
    for login in (*LOGINS, "owner"):
        if (login, statement) == ("rita", FORGED):
            continue
        with psycopg.connect(
            postgres.url(user=login, password=PASSWORD), autocommit=True, options=f"-csearch_path={schema}"
        ) as db:
            assert refused(db, statement), login


@pytest.mark.parametrize("statement", TAKEN)
def test_only_an_operator_takes_rows_out(postgres: Postgres, schema: str, statement: str) -> None:
    for login in ("vera", "rita", "walt"):
        with psycopg.connect(
            postgres.url(user=login, password=PASSWORD), autocommit=True, options=f"-csearch_path={schema}"
        ) as db:
            assert refused(db, statement), login


def test_the_ledger_keeps_the_login_beside_the_name_that_was_claimed(postgres: Postgres, schema: str) -> None:
    with closing(opened(postgres, schema, "rita")) as store:
        decide(store)
        assert [made.actor for made in store.ledger("t")] == ["ann", "ann"]
        assert store.logins("t") == {1: "owner", 2: "rita"}


def test_every_role_is_granted() -> None:
    assert set(LOGINS.values()) == set(ROLES)
