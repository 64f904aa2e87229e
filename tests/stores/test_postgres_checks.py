"""What `doctor` says of the server of a store, and that opening one to look makes nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui.errors import NoSuchStore, StoreUnusable
from hitl_tui.stores import open_store
from hitl_tui.stores.postgres import checks, schema, server
from hitl_tui.stores.postgres.checks import Check
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from tests.support.commands import App
from tests.support.flows import line, say
from tests.support.postgres import PASSWORD, Postgres, binaries
from tests.support.spec import spec

pytestmark = spec("10")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def url(postgres_url: str) -> str:
    PostgresCheckpointer(postgres_url).close()
    return postgres_url


def of(url: str, subject: str) -> Check:
    """What is said of a subject: what is wrong with it before what is well."""
    return min(
        (check for check in checks.checks(url) if check.subject == subject), key=lambda check: check.ok
    )


def wrong(url: str) -> dict[str, str]:
    return {check.subject: check.value for check in checks.checks(url) if not check.ok}


def sql(postgres: Postgres, url: str, *statements: str) -> None:
    with postgres.admin() as db:
        db.execute(f"SET search_path = {url.rpartition('=')[2]}".encode())
        for statement in statements:
            db.execute(statement.encode())


def test_doctor_lists_every_problem_of_a_database_server(url: str) -> None:
    findings = list(checks.checks(url))
    assert {check.subject for check in findings} == {
        "server", "login", "connection", "clock", "disk", "connections", "room", "tables", "rights", "roles",
        "workers",
    }  # fmt: skip
    # The tests' server waits for no disk.
    assert wrong(url).keys() == {"disk"}
    assert [check.value.split()[0] for check in findings if not check.ok] == ["fsync", "full_page_writes"]
    assert all(check.hint for check in findings if not check.ok)


def test_checking_creates_no_tables(postgres: Postgres, postgres_url: str, app: App) -> None:
    name = postgres_url.rpartition("=")[2]
    with pytest.raises(NoSuchStore, match="no tables yet"):
        open_store(postgres_url, create=False)
    assert of(postgres_url, "tables").value == "there are none yet"
    for command in ("threads", "doctor", "verify x", "log x"):
        app(*command.split(), "--store", postgres_url)
    with postgres.admin() as db:
        there = db.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (name,)).fetchone()
    assert there is None


def test_checking_migrates_no_tables(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    with pytest.raises(StoreUnusable, match="by an older hitl-tui") as caught:
        open_store(url, create=False)
    assert "store init" in caught.value.hint
    assert of(url, "tables").hint == "`hitl-tui store init` makes them"


def test_an_existing_store_is_checked(url: str) -> None:
    with closing(open_store(url, create=False)) as store:
        assert store.threads() == []


def test_a_server_that_is_too_old(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_OLDEST", 990000)
    assert "is PostgreSQL" in of(url, "server").value
    assert of(url, "server").hint == "use PostgreSQL 99 or newer"
    with pytest.raises(StoreUnusable, match="is PostgreSQL"):
        PostgresCheckpointer(url)


def test_a_server_that_does_not_know_our_settings(postgres: Postgres) -> None:
    check = of(f"{postgres.url()}?options=-cno_such_setting%3D1", "server")
    assert "is not a supported PostgreSQL" in check.value
    assert check.hint == "use PostgreSQL 14 or newer"


def test_no_server_and_a_wrong_password(postgres: Postgres) -> None:
    postgres.login("ann")
    assert "does not take the password" in of(postgres.url(user="ann"), "server").value
    assert "can't be reached" in of("postgresql://127.0.0.1:1/db", "server").value
    assert "can't be read" in of("postgresql://host/db?nonsense=1", "server").value


def test_rights(postgres: Postgres, url: str) -> None:
    name = url.rpartition("=")[2]
    postgres.login("ulla")
    as_ulla = postgres.url(user="ulla", password=PASSWORD, schema=name)
    assert "may not do that" in of(as_ulla, "server").value
    with closing(PostgresCheckpointer(url)) as store:
        store.make_roles()
    assert of(url, "rights").value == "may look, decide, run threads, delete"
    for role, may in (("hitl_viewer", "may look"), ("hitl_reviewer", "may look, decide")):
        postgres.grant(role, "ulla")
        assert of(as_ulla, "rights").value == may


def test_tables_and_guards_that_are_missing(postgres: Postgres, url: str) -> None:
    sql(postgres, url, "ALTER TABLE ledger DISABLE TRIGGER appended", "DROP TRIGGER forward ON cursor")
    assert of(url, "guards").value == "off or missing: cursor.forward, ledger.appended"
    sql(postgres, url, "DROP TABLE spending CASCADE")
    assert of(url, "tables").value == "missing: spending"


def test_a_queue_that_is_missing_or_that_nobody_works_on(postgres: Postgres, url: str) -> None:
    assert "no queue yet" in of(url, "workers").value
    with closing(PostgresCheckpointer(url)) as store:
        store.jobs().make()
        assert of(url, "workers").value == "0 at work, 0 threads in the queue"
        line(store, say("x"), interrupt_after=["a"]).invoke({}, thread_id="t")
        store.jobs().hand("t")
    assert wrong(url)["workers"] == "0 at work, 1 threads in the queue"
    sql(postgres, url, "UPDATE queue SET version = 99")
    assert "version 99" in wrong(url)["workers"]
    sql(postgres, url, "DROP TABLE procrastinate_events CASCADE")
    assert wrong(url)["workers"] == "missing: procrastinate_events"


def test_a_server_that_is_read_only_or_has_few_connections(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "read-only" in of(f"{url}&options=-cdefault_transaction_read_only%3Don", "server").value
    assert of(url, "connections").ok
    monkeypatch.setattr(checks, "_FEWEST_LEFT", 10_000)
    assert "in use" in wrong(url)["connections"]


def test_a_clock_that_is_apart_and_a_disk_without_room(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    with monkeypatch.context() as patch:
        patch.setattr(checks.time, "time", lambda: real() + 3600)
        assert "ahead of the server" in wrong(url)["clock"]
    with monkeypatch.context() as patch:
        patch.setattr(checks.time, "time", lambda: real() - 3600)
        assert "behind the server" in wrong(url)["clock"]
    usage = shutil.disk_usage("/")._replace(free=1_000_000)
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda _: usage)
    assert wrong(url)["room"] == "0.0 GB are free on the server's disk"


def test_a_connection_that_others_can_read(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert of(url, "connection").ok
    monkeypatch.setattr(checks, "_is_here", lambda _: False)
    assert "sslmode" in of(url, "connection").hint
    assert of(url, "room").value == "unknown: the server is not on this machine, or does not say it"


def test_the_command_prints_every_problem_with_a_fix(url: str, app: App) -> None:
    result = app("doctor", "--store", url)
    assert result.code == 1
    assert "WRONG" in result.out
    assert "fsync is off" in result.out
    assert "postgresql.conf" in result.out
    assert "correct horse" not in result.out


def test_a_server_of_the_tests_ends_with_the_process_that_was_killed(tmp_path: Path) -> None:
    if (programs := binaries()) is None or sys.platform != "linux":
        pytest.skip("no PostgreSQL server here, or a system that can't tell a child that its parent has gone")
    code = (
        "import sys, time; from pathlib import Path; from tests.support.postgres import Postgres\n"
        "server = Postgres(Path(sys.argv[1])); print(server.folder, flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(programs)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as holder:
        assert holder.stdout is not None
        folder = Path(holder.stdout.readline().strip())
        pid = int((folder / "data/postmaster.pid").read_text().splitlines()[0])
        holder.kill()
    end = time.monotonic() + 60
    while _is_postgres(pid):
        assert time.monotonic() < end
        time.sleep(0.02)
    Postgres(programs).close()
    assert not folder.exists()


def _is_postgres(pid: int) -> bool:
    try:
        return "postgres" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False
