"""Roles of a store in PostgreSQL, tried with real logins: each does what it may, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from hitl_tui import GraphRunner
from hitl_tui.engine.commands.answering import answer
from hitl_tui.engine.commands.command import Answer
from hitl_tui.engine.graph.gates import Gate, GateChoice
from hitl_tui.engine.log.events import Event, LedgerWritten
from hitl_tui.engine.log.threads import Deletion
from hitl_tui.errors import AnswerRefused, StoreUnusable
from hitl_tui.stores import MemoryCheckpointer
from hitl_tui.stores.postgres.roles import ROLES
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from hitl_tui.view.format import identity
from tests.stores.log_writer import NOW, Writer, entry
from tests.support.commands import App
from tests.support.flows import line, say
from tests.support.postgres import PASSWORD, Postgres, may
from tests.support.spec import spec

pytestmark = spec("10")

LOGINS = {"vera": "hitl_viewer", "rita": "hitl_reviewer", "walt": "hitl_worker", "olga": "hitl_operator"}


@pytest.fixture
def schema(postgres_url: str, postgres: Postgres, app: App) -> str:
    """A store with a thread, roles and a login of each."""
    for _ in range(2):
        output = app.expect(0, "store", "init", "--roles", "--store", postgres_url).out
        assert output.startswith("the tables are there, the roles too")
    with closing(PostgresCheckpointer(postgres_url)) as store:
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


def decide(store: PostgresCheckpointer) -> None:
    writer = Writer(store, create=False)
    try:
        point = {"source": "human", "status": "waiting"}
        writer.step({"n": 2}, ledger=(entry(writer.cursor, "update_state"),), point=point)
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
    decided = may(lambda: decide(store))
    ran = may(lambda: run(store))
    deleted = may(lambda: delete(store))
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
    "UPDATE graph SET body = ''",
    "UPDATE graph SET digest = 'x'",
    "UPDATE store SET threads = 0",
]
TAKEN_OVER = [
    "ALTER TABLE ledger DISABLE TRIGGER ALL",
    "ALTER TABLE ledger DISABLE ROW LEVEL SECURITY",
    "CREATE POLICY mine ON ledger USING (true)",
    "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "DROP TABLE ledger",
    "GRANT hitl_operator TO CURRENT_USER",
    "SET session_replication_role = replica",
    "SET SESSION AUTHORIZATION owner",
    "UPDATE store SET version = 0",
    "UPDATE thread SET id = 'x'",
    "DELETE FROM lease",
]
"""Statements that would switch the guards off, or make a login another one."""
TAKEN = ["DELETE FROM ledger", "DELETE FROM record", "DELETE FROM checkpoint", "DELETE FROM thread"]
FORGED = (
    "INSERT INTO ledger (id, kind, step, seen, data, at, hash, pending_hash, account, signature, login) "
    "VALUES (4294967305, 'answer', 0, '', 'null', 0, '', '', '', '', 'rita')"
)


def answered(row: int, request_id: str | None, kind: str = "answer", schema: str = "", at: int = 0) -> str:
    """A statement that writes an answer by hand."""
    columns = "id, kind, step, request_id, seen, data, at, hash, pending_hash, account, signature"
    values = f"{row}, '{kind}', 0, '{request_id}', '', 'null', {at}, '', '', '', ''"
    return f"INSERT INTO {schema}ledger ({columns}) VALUES ({values})"


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


@pytest.mark.parametrize("statement", TAKEN_OVER)
def test_no_login_switches_the_guards_off_or_becomes_another(
    postgres: Postgres, schema: str, statement: str
) -> None:
    for login in LOGINS:
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
        assert [(made.actor, made.login) for made in store.ledger("t")] == [("ann", "owner"), ("ann", "rita")]
        assert (store.login, store.roles()[0], "hitl_reviewer" in store.roles()) == ("rita", "rita", True)
        assert store.roles("nobody here") == ()


def test_every_role_is_granted() -> None:
    assert set(LOGINS.values()) == set(ROLES)


class TestGatesThatNameLogins:
    """A gate that logins answer: olga, and the group `release`, of which rita is a member."""

    @pytest.fixture(autouse=True)
    def waits(self, postgres: Postgres, schema: str) -> None:
        postgres.group("release", "rita")
        postgres.group("others", "walt")

    def asked(
        self, postgres: Postgres, schema: str, login: str = "olga", **terms: Any
    ) -> tuple[GraphRunner, PostgresCheckpointer]:
        store = opened(postgres, schema, login)
        gate = Gate("a", "ship it?", [GateChoice("yes", "ship")], **{"logins": ["release", "olga"], **terms})
        runner = line(store, say("x"), interrupt_after=[gate])
        if store.info("g") is None:
            runner.invoke({}, thread_id="g")
        return runner, store

    def answer(self, runner: GraphRunner, actor: str) -> int:
        waits = runner.open("g").cursor.pending[0]
        return runner.answer("g", waits.id, "yes", step=waits.step, actor=actor)

    def test_a_member_of_a_named_group_answers_under_any_name_and_both_names_are_recorded(
        self, postgres: Postgres, schema: str
    ) -> None:
        self.asked(postgres, schema)[1].close()
        runner, store = self.asked(postgres, schema, "rita")
        events: list[Event] = []
        session = runner.open("g")
        session.sink = events.append
        waits = session.cursor.pending[0]
        with session.writing():
            answer(session, Answer(waits.id, "yes", waits.step, "olga"))
        entry = store.ledger("g")[-1]
        assert (entry.kind, entry.actor, entry.login) == ("answer", "olga", "rita")
        assert [event.entry.login for event in events if isinstance(event, LedgerWritten)] == ["rita"]
        assert identity(entry.actor, entry.login) == "olga (login rita)"
        assert runner.verify("g", strict=True).mismatches == ()
        store.close()

    @pytest.mark.parametrize("login", ["walt", "vera"])
    def test_another_login_is_refused_whatever_name_it_claims(
        self, postgres: Postgres, schema: str, login: str
    ) -> None:
        self.asked(postgres, schema)[1].close()
        postgres.grant("hitl_operator", "walt")
        runner, store = self.asked(postgres, schema, login)
        with pytest.raises((AnswerRefused, StoreUnusable), match=f"login '{login}' may not|may not do that"):
            self.answer(runner, "rita")
        assert runner.open("g").cursor.pending
        store.close()

    def test_the_database_refuses_it_too_whatever_program_is_used(
        self, postgres: Postgres, schema: str
    ) -> None:
        _, store = self.asked(postgres, schema)
        asked = store.ledger("g")[-1]
        key = store._key("g")
        store.close()
        postgres.grant("hitl_reviewer", "walt")
        row = (key << 32) + asked.n + 1
        with psycopg.connect(
            postgres.url(user="walt", password=PASSWORD), autocommit=True, options=f"-csearch_path={schema}"
        ) as db:
            for kind in ("answer", "vote"):
                assert refused(db, answered(row, asked.request_id, kind))

    def test_shadowing_tables_do_not_bypass_the_login_check(self, postgres: Postgres, schema: str) -> None:
        _, store = self.asked(postgres, schema)
        asked = store.ledger("g")[-1]
        row = (store._key("g") << 32) + asked.n + 1
        store.close()
        postgres.grant("hitl_reviewer", "walt")
        with psycopg.connect(
            postgres.url(user="walt", password=PASSWORD), autocommit=True, options=f"-csearch_path={schema}"
        ) as db:
            # Tables of a session are found before all others, unless somebody says otherwise.
            for shadow in (
                f"CREATE TEMP TABLE ledger (LIKE {schema}.ledger)",
                "CREATE TEMP VIEW pg_roles AS SELECT name AS rolname, current_user::regrole::oid AS oid "
                "FROM unnest(ARRAY['release', 'olga']) AS name",
            ):
                db.execute(shadow.encode())
                assert refused(db, answered(row, asked.request_id, schema=f"{schema}."))

    @pytest.mark.parametrize("terms", [{"on_timeout": "yes"}, {}], ids=["answers", "fails"])
    def test_a_deadline_answer_before_the_deadline_is_refused(
        self, postgres: Postgres, schema: str, terms: dict[str, Any]
    ) -> None:
        runner, store = self.asked(postgres, schema, deadline=3600, **terms)
        waits = runner.open("g").cursor.pending[0]
        row = (store._key("g") << 32) + store.ledger("g")[-1].n + 1
        assert waits.deadline is not None
        for login in ("rita", "walt", "olga", "owner"):
            with psycopg.connect(
                postgres.url(user=login, password=PASSWORD),
                autocommit=True,
                options=f"-csearch_path={schema}",
            ) as db:
                for at in (waits.asked_at, waits.deadline, waits.deadline + 1):
                    assert refused(db, answered(row, waits.id, "timeout", at=at)), (login, at)
                assert refused(db, answered(row, "0" * 12, "timeout", at=waits.deadline + 1)), login
        store.close()

    def test_a_passed_deadline_answers_under_any_login(self, postgres: Postgres, schema: str) -> None:
        runner, store = self.asked(postgres, schema, deadline=1e-6, on_timeout="yes")
        assert runner.invoke(thread_id="g").status == "completed"
        assert [entry.kind for entry in store.ledger("g")].count("timeout") == 1
        assert runner.verify("g", strict=True).mismatches == ()
        store.close()

    def test_a_quorum_is_of_logins(self, postgres: Postgres, schema: str) -> None:
        runner, store = self.asked(postgres, schema, quorum=2, one_account=True)
        self.answer(runner, "olga")
        with pytest.raises(AnswerRefused, match="login 'olga' has answered 'ship it\\?' already, as olga"):
            self.answer(runner, "rita")
        assert [vote.login for vote in runner.open("g").cursor.pending[0].votes] == ["olga"]
        store.close()
        runner, store = self.asked(postgres, schema, "rita", quorum=2, one_account=True)
        self.answer(runner, "bob")
        assert runner.open("g").cursor.pending == ()
        assert runner.verify("g", strict=True).mismatches == ()
        store.close()

    def test_a_decision_of_a_login_without_a_right_is_found(self, postgres: Postgres, schema: str) -> None:
        runner, store = self.asked(postgres, schema)
        self.answer(runner, "olga")
        with postgres.admin() as db:
            db.execute(f"SET search_path = {schema}".encode())
            db.execute("ALTER TABLE ledger DISABLE TRIGGER USER")
            db.execute("UPDATE ledger SET login = 'walt' WHERE kind = 'answer' AND login = 'olga'")
            db.execute("ALTER TABLE ledger ENABLE TRIGGER USER")
        (finding,) = runner.verify("g", strict=True).mismatches
        assert (finding.field, finding.expected, finding.actual) == ("login", "release, olga", "walt")
        store.close()

    def test_a_store_without_logins_says_what_it_takes(self) -> None:
        gate = Gate("a", "ship it?", [GateChoice("yes", "ship")], logins=["release"])
        runner = line(MemoryCheckpointer(), say("x"), interrupt_after=[gate])
        runner.invoke({}, thread_id="g")
        with pytest.raises(AnswerRefused, match="this store has none") as caught:
            self.answer(runner, "rita")
        assert "PostgreSQL" in caught.value.hint
