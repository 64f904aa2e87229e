"""A server with TLS: whom it is, is checked as the URL wants it, and what is wrong is said in words."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from hitl_tui.errors import StoreUnusable
from hitl_tui.stores.postgres import checks
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from tests.support.flows import line, say
from tests.support.postgres import PASSWORD, Postgres
from tests.support.spec import spec

pytestmark = [
    spec("10"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make certificates"),
]


class Encrypted(NamedTuple):
    """A server whose certificate, signed by itself, says that it is 127.0.0.1."""

    server: Postgres
    certificate: Path
    others: Path

    def url(self, host: str = "127.0.0.1", *, root: Path | None = None) -> str:
        """A store on it, for somebody who comes with a password and trusts a certificate."""
        login = f"postgresql://tess:{PASSWORD.replace(' ', '%20')}@{host}:{self.server.port}/postgres"
        return f"{login}?schema=tls&sslmode=verify-full&sslrootcert={root or self.certificate}"


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A key, and a certificate of 127.0.0.1 that it signed itself."""
    key, cert = folder / f"{name}.key", folder / f"{name}.crt"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    return key, cert


@pytest.fixture(scope="module")
def tls(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Encrypted]:
    folder = tmp_path_factory.mktemp("tls")
    key, own = certificate(folder, "server")
    _, others = certificate(folder, "other")
    try:
        postgres.encrypt(key, own)
    except psycopg.Error as error:
        pytest.skip(f"this server was built without TLS: {error}")
    postgres.login("tess")
    with postgres.admin() as db:
        db.execute(b"ALTER ROLE tess SUPERUSER")
    yield Encrypted(postgres, own, others)
    postgres.drop("postgresql://?schema=tls")
    postgres.encrypt(None, None)


def test_threads_and_news_go_over_an_encrypted_connection(tls: Encrypted) -> None:
    with closing(PostgresCheckpointer(tls.url())) as store, closing(PostgresCheckpointer(tls.url())) as other:
        woken = threading.Event()
        store.subscribe(woken.set, "t")
        assert line(other, say("x")).invoke({}, thread_id="t").status == "completed"
        assert woken.wait(60)
        assert [row.info.thread_id for row in store.threads()] == ["t"]
        encrypted = store._server.rows(
            "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'tess'"
        )
        assert encrypted == [(True,)]
    assert "encrypted" in {check.value for check in checks.checks(tls.url()) if check.subject == "connection"}


@pytest.mark.parametrize("root", ["other", "none"])
def test_a_database_server_with_another_certificate_is_refused(tls: Encrypted, root: str) -> None:
    where = tls.url(root=tls.others if root == "other" else Path("/no/such.crt"))
    for refused in (lambda: PostgresCheckpointer(where), lambda: PostgresCheckpointer(where, create=False)):
        with pytest.raises(StoreUnusable, match="can't be trusted") as caught:
            refused()
        assert PASSWORD not in str(caught.value)
        assert "sslrootcert" in caught.value.hint
    (finding,) = checks.checks(where)
    assert ("can't be trusted" in finding.value, finding.ok) == (True, False)


def test_a_certificate_of_another_host_name_is_refused(tls: Encrypted) -> None:
    with pytest.raises(StoreUnusable, match=r"can't be trusted.*localhost"):
        PostgresCheckpointer(tls.url("localhost"))


def test_a_database_server_without_tls_is_refused_if_the_url_requires_tls(tls: Encrypted) -> None:
    tls.server.encrypt(None, None)
    try:
        with pytest.raises(StoreUnusable, match="does not support SSL"):
            PostgresCheckpointer(tls.url())
    finally:
        key = tls.certificate.with_suffix(".key")
        tls.server.encrypt(key, tls.certificate)
