"""What a store in PostgreSQL does beside the contract of all stores: a server that goes, comes, says no."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext, suppress
from typing import Any

import msgspec
import psycopg
import pytest

from hitl_tui import Gate, GateChoice, HitlError
from hitl_tui.drivers.watching import Watcher
from hitl_tui.engine.log.events import Event
from hitl_tui.engine.log.threads import Fault, PauseRequest
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import StoreUnusable, ThreadBusy, UsageError, ValueRejected
from hitl_tui.stores import open_store
from hitl_tui.stores.postgres import schema, server
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from tests.stores.log_writer import NOW, Writer, entry
from tests.support.commands import App
from tests.support.flows import line, say
from tests.support.places import SAMPLES
from tests.support.postgres import PASSWORD, Postgres
from tests.support.spec import spec

pytestmark = spec("10")


@pytest.fixture
def url(postgres_url: str) -> str:
    return postgres_url


@pytest.fixture
def store(url: str) -> Iterator[PostgresCheckpointer]:
    opened = PostgresCheckpointer(url)
    yield opened
    opened.close()


class Wire:
    """A way to the server that can be cut before a request arrives, or before its answer does.

    Attributes:
        trips: how often something was asked since something was answered, on all connections.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._listens = socket.create_server(("127.0.0.1", 0))
        self.port = self._listens.getsockname()[1]
        self.cut_request: Callable[[bytes], bool] = lambda _: False
        self.cut_answer: Callable[[bytes], bool] = lambda _: False
        self.cuts = 0
        self.trips = 0
        self._carriers: list[threading.Thread] = []
        self._listener = threading.Thread(target=self._run, daemon=True)
        self._listener.start()

    def close(self) -> None:
        """Close the way, and wait for its threads; whoever used it has closed their end."""
        with suppress(OSError):
            self._listens.shutdown(socket.SHUT_RDWR)
        self._listens.close()
        for thread in (self._listener, *self._carriers):
            thread.join(10)

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listens.accept()
                there = socket.create_connection(("127.0.0.1", self._port))
                asked = [b""]  # the newest request, nothing once it is answered
                pair = [
                    threading.Thread(target=self._carry, args=(a, b, asked, request), daemon=True)
                    for a, b, request in ((client, there, True), (there, client, False))
                ]
                for thread in pair:
                    thread.start()
                self._carriers += [*pair, threading.Thread(target=_close_behind, args=(pair, client, there))]
                self._carriers[-1].start()

    def _carry(self, a: socket.socket, b: socket.socket, asked: list[bytes], request: bool) -> None:
        with suppress(OSError):
            while data := a.recv(1 << 16):
                if request:
                    self.trips += asked == [b""]
                    asked[0] = data
                if self.cut_request(data) if request else self.cut_answer(asked[0]):
                    self.cuts += 1
                    break
                if not request:
                    asked[0] = b""
                b.sendall(data)
        for end in (a, b):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _close_behind(carriers: Sequence[threading.Thread], *ends: socket.socket) -> None:
    """Close both ends of a connection once nothing is carried between them."""
    for thread in carriers:
        thread.join()
    for end in ends:
        end.close()


@pytest.fixture
def wire(postgres: Postgres) -> Iterator[Wire]:
    opened = Wire(postgres.port)
    yield opened
    opened.close()


@pytest.fixture
def far(wire: Wire, postgres: Postgres, url: str) -> Iterator[PostgresCheckpointer]:
    """The store by way of the wire."""
    opened = PostgresCheckpointer(url.replace(str(postgres.port), str(wire.port)))
    yield opened
    opened.close()


def once(word: bytes) -> Callable[[bytes], bool]:
    """Whether it is said, for the first time."""
    left = [word]

    def said(data: bytes) -> bool:
        return bool(left and left[0] in data and left.pop())

    return said


class TestConnections:
    def test_a_commit_whose_request_is_lost_is_written_once(
        self, far: PostgresCheckpointer, wire: Wire
    ) -> None:
        writer = Writer(far)
        writer.step()
        wire.cut_request = once(b"messages")
        commit = writer.step({"messages": "two"})
        assert wire.cuts == 1
        assert far.cursor("t") == commit.cursor
        assert [record.update for record in far.records("t", 1, 9)] == ["two"]

    def test_a_commit_whose_answer_is_lost_is_found_and_not_written_again(
        self, far: PostgresCheckpointer, wire: Wire
    ) -> None:
        writer = Writer(far)
        writer.step()
        wire.cut_answer = once(b"messages")
        commit = writer.step({"messages": "two"})
        assert wire.cuts == 1
        assert far.cursor("t") == commit.cursor
        assert [record.update for record in far.records("t", 1, 9)] == ["two"]
        assert writer.step().cursor.head == 2

    def test_a_lost_response_is_found_even_after_later_commits(
        self, far: PostgresCheckpointer, store: PostgresCheckpointer, wire: Wire
    ) -> None:
        writer = Writer(far)
        seen = once(b"messages")

        def overtaken(data: bytes) -> bool:
            if not seen(data):
                return False
            other = Writer.__new__(Writer)
            other.store, other.thread_id, other.lease = store, "t", store.new_lease(NOW)
            store.release("t", writer.lease.token)
            store.acquire("t", other.lease, NOW)
            other.step({"other": "two"})
            return True

        wire.cut_answer = overtaken
        writer.step({"messages": "one"})
        assert [record.update for record in store.records("t", 0, 9)] == ["one", "two"]

    def test_a_commit_that_lost_a_race_is_refused_even_after_a_lost_connection(
        self, far: PostgresCheckpointer, wire: Wire
    ) -> None:
        writer = Writer(far)
        late = writer.commit_of({"late": 1}, point={"checkpoint_hash": b"l" * 32})
        writer.step({"first": 1})
        wire.cut_answer = once(b"late")
        with pytest.raises(HitlError, match="version 1, not 0"):
            far.commit("t", late)
        assert [record.channel for record in far.records("t", 0, 9)] == ["first"]

    @pytest.mark.parametrize("lost", ["request", "answer"])
    def test_a_transaction_whose_end_is_lost_is_looked_up(
        self, far: PostgresCheckpointer, wire: Wire, lost: str
    ) -> None:
        for name in ("t", "u", "v"):  # until all that is said often is prepared
            Writer(far, name)
        setattr(wire, f"cut_{lost}", once(b"COMMIT"))
        if lost == "answer":
            Writer(far, "new")
            assert far.lease("new") is not None
        else:
            with pytest.raises(StoreUnusable, match="nothing was stored"):
                Writer(far, "new")
            assert far.info("new") is None
            Writer(far, "new")
        assert [fault.field for fault in far.faults(None)] == []

    @pytest.mark.parametrize("mode", ["fast", "immediate"])
    def test_a_server_that_restarts_takes_the_next_commit(
        self, postgres: Postgres, store: PostgresCheckpointer, mode: str
    ) -> None:
        writer = Writer(store)
        writer.step({"messages": "before"})
        token = writer.lease.token
        postgres.restart(mode)
        writer.step({"messages": "after"})
        assert [record.update for record in store.records("t", 0, 9)] == ["before", "after"]
        store.release("t", token)
        assert store.lease("t") is None

    def test_a_server_that_stays_away_is_an_error_in_words_and_comes_back(
        self, postgres: Postgres, store: PostgresCheckpointer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(server, "PATIENCE", 0.3)
        writer = Writer(store)
        commit = writer.commit_of({"messages": 1})
        postgres.stop()
        try:
            with pytest.raises(StoreUnusable, match="can't be reached"):
                store.commit("t", commit)
            with pytest.raises(StoreUnusable, match="can't be reached"):
                store.cursor("t")
        finally:
            postgres.start()
        monkeypatch.setattr(server, "PATIENCE", 10.0)
        store.commit("t", commit)
        assert store.cursor("t") == commit.cursor

    def test_they_are_pooled(self, postgres: Postgres, url: str) -> None:
        name = "hitl-tui-pooled"
        with closing(PostgresCheckpointer(f"{url}&application_name={name}")) as store:
            Writer(store)
            readers = [
                threading.Thread(target=lambda: [store.cursor("t") for _ in range(20)]) for _ in range(30)
            ]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
            with postgres.admin() as db:
                (there,) = (
                    db.execute(
                        "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", (name,)
                    ).fetchone()
                    or ()
                )
            assert 1 <= int(str(there)) <= server._MOST_CONNECTIONS + 1, "with the one that listens"


class TestWords:
    def refusal(self, url: str) -> str:
        with pytest.raises((StoreUnusable, UsageError)) as caught:
            open_store(url).close()
        return f"{caught.value.message} ({caught.value.hint})"

    def deaf(self) -> str:
        """The URL of something that takes a connection and ends it."""
        listens = socket.create_server(("127.0.0.1", 0))

        def end() -> None:
            with listens:
                listens.accept()[0].close()

        threading.Thread(target=end, daemon=True).start()
        return f"postgresql://127.0.0.1:{listens.getsockname()[1]}/db"

    def test_of_no_server_and_no_database(self, postgres: Postgres) -> None:
        with closing(socket.create_server(("127.0.0.1", 0))) as taken:
            port = taken.getsockname()[1]
        refusal = self.refusal(f"postgresql://127.0.0.1:{port}/db")
        assert "can't be reached: Connection refused (check that it runs" in refusal
        assert "can't be reached: server closed the connection unexpectedly" in self.refusal(self.deaf())
        assert '"nowhere" does not exist' in self.refusal(postgres.url("nowhere"))

    def test_of_a_wrong_password_which_is_never_quoted(self, postgres: Postgres) -> None:
        postgres.login("ann")
        refusal = self.refusal(postgres.url(user="ann", password="s3cret word"))
        assert "does not take the password of user 'ann'" in refusal
        assert "s3cret" not in refusal
        assert "does not take the password" in self.refusal(postgres.url(user="ann"))

    def test_a_command_that_is_suggested_names_the_store_without_its_password(
        self, postgres: Postgres, url: str, app: App
    ) -> None:
        postgres.login("sue")
        with postgres.admin() as db:
            db.execute(b"ALTER ROLE sue SUPERUSER")
        where = postgres.url(user="sue", password=PASSWORD, schema=url.rpartition("=")[2])
        graph = ("run", str(SAMPLES / "review.py"), "--input", "task=Hills", "--thread", "t")
        result = app.expect(3, *graph, "--headless", "--store", where)
        assert f"--store 'postgresql://sue@127.0.0.1:{postgres.port}/" in result.out
        assert "correct" not in result.out + result.err

    def test_of_a_user_who_may_not_make_tables(self, postgres: Postgres) -> None:
        postgres.login("ann")
        refusal = self.refusal(postgres.url(user="ann", password=PASSWORD, schema="anns"))
        assert "user 'ann' may not do that" in refusal

    def test_of_tables_of_a_newer_version(self, postgres: Postgres, url: str) -> None:
        PostgresCheckpointer(url).close()
        with postgres.admin() as db:
            db.execute(f"UPDATE {url.rpartition('=')[2]}.store SET version = 99".encode())
        assert f"newer hitl-tui (version 99, this one knows {schema.VERSION})" in self.refusal(url)

    def test_of_an_encoding_that_can_not_hold_every_text(self, postgres: Postgres) -> None:
        with postgres.admin() as db:
            db.execute("CREATE DATABASE old ENCODING 'LATIN1' TEMPLATE template0")
        assert "encoded as LATIN1" in self.refusal(postgres.url("old"))

    def test_of_a_url_that_can_not_be_read(self) -> None:
        refusal = self.refusal("postgresql://ann:s3cret@host/db?nonsense=1")
        assert "can't be read" in refusal
        assert "s3cret" not in refusal
        assert "can't be the schema" in self.refusal("postgresql://host/db?schema=A;drop")

    def test_of_a_store_that_was_closed(self, store: PostgresCheckpointer) -> None:
        store.close()
        with pytest.raises(StoreUnusable, match="closed"):
            store.cursor("t")

    def test_of_tables_that_have_gone(
        self, postgres: Postgres, store: PostgresCheckpointer, url: str
    ) -> None:
        postgres.drop(url)
        with pytest.raises(StoreUnusable, match="no longer exist"):
            store.threads()


class TestVersions:
    def test_tables_of_an_older_version_are_migrated(
        self, postgres: Postgres, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with closing(PostgresCheckpointer(url)) as old:
            kept = Writer(old).step().cursor
        step = ("ALTER TABLE graph ADD COLUMN kind text",)
        monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, step))
        monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
        for _ in range(2):
            with closing(PostgresCheckpointer(url)) as new:
                assert new.cursor("t") == kept
        with postgres.admin() as db:
            rows = db.execute(f"SELECT version FROM {url.rpartition('=')[2]}.store".encode()).fetchall()
        assert rows == [(schema.VERSION,)]

    def test_a_failed_migration_leaves_the_tables_unchanged(
        self, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        PostgresCheckpointer(url).close()
        with monkeypatch.context() as patch:
            step = ("ALTER TABLE graph ADD COLUMN kind text", "ALTER TABLE nowhere ADD COLUMN kind text")
            patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, step))
            patch.setattr(schema, "VERSION", schema.VERSION + 1)
            with pytest.raises(StoreUnusable):
                PostgresCheckpointer(url)
        with closing(PostgresCheckpointer(url)) as again:
            assert again._rows("SELECT count(*) FROM graph WHERE false") == [(0,)]
            columns = "SELECT count(*) FROM information_schema.columns WHERE table_schema = current_schema() "
            assert again._rows(columns + "AND table_name = 'graph'") == [(2,)]


class TestValues:
    def test_texts_that_the_database_has_not_come_back_as_they_were(
        self, store: PostgresCheckpointer
    ) -> None:
        writer = Writer(store)
        note = "a\0b\x1a0c\x1ad\x1a\0"
        said = entry(writer.cursor, note=note, actor="\x1a")
        writer.step({"plan": "\0"}, point={"note": note, "text": "\0"}, ledger=(said,))
        point = store.checkpoint("t", 0)
        assert point is not None
        assert (point.note, point.text) == (note, "\0")
        assert [(made.note, made.actor) for made in store.ledger("t")] == [(note, "\x1a")]

    def test_a_lone_surrogate_is_refused_and_nothing_is_stored(self, store: PostgresCheckpointer) -> None:
        writer = Writer(store)
        with pytest.raises(ValueRejected, match="surrogate"):
            writer.step({"plan": 1}, point={"note": "\ud800"})
        assert writer.cursor.version == 0
        assert store.info("\ud800") is None

    def test_a_commit_of_many_records_is_one_round_trip(self, far: PostgresCheckpointer, wire: Wire) -> None:
        writer = Writer(far)
        for _ in range(3):  # until what is said often is prepared
            writer.step({"n": 1})
        commit = writer.commit_of({f"c{number}": "x" * 1000 for number in range(300)})
        before = wire.trips
        far.commit("t", commit)
        assert wire.trips == before + 1
        assert len(list(far.records("t", 3, 3))) == 300

    def test_a_step_of_a_run_is_one_round_trip(self, far: PostgresCheckpointer, wire: Wire) -> None:
        def trips(steps: int, thread: str) -> int:
            before = wire.trips
            line(far, *(say("x") for _ in range(steps))).invoke({}, thread_id=thread)
            return wire.trips - before

        for warm in "abc":  # until all that is said often is prepared
            trips(10, warm)
        # Of two a step there were 40; another connection, or a sign of life, takes a few.
        assert trips(25, "many") - trips(5, "few") < 30


class TestFence:
    def test_a_commit_that_waited_for_a_takeover_is_refused(
        self, postgres: Postgres, store: PostgresCheckpointer, url: str
    ) -> None:
        writer = Writer(store)
        late = writer.commit_of({"messages": "late"})
        refused: list[Exception] = []

        def commit() -> None:
            try:
                store.commit("t", late)
            except ThreadBusy as error:
                refused.append(error)

        with postgres.admin() as db, db.transaction():
            db.execute(f"SET search_path = {url.rpartition('=')[2]}".encode())
            db.execute("UPDATE cursor SET token = 'another' WHERE thread = 1")
            waiting = threading.Thread(target=commit)
            waiting.start()
            blocked = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            with postgres.admin() as other:
                until(lambda: other.execute(blocked).fetchone() is not None)
        waiting.join()
        assert len(refused) == 1
        assert writer.cursor.version == 0

    def test_a_stalled_writer_blocks_others_only_for_its_timeout(
        self, store: PostgresCheckpointer, url: str
    ) -> None:
        line(store, say("x")).invoke({}, thread_id="t")
        still = pytest.raises(StoreUnusable, match=r"was stopped .*: nothing was stored")
        with closing(PostgresCheckpointer(url)) as other, still, store._server.transaction() as db:
            store._locked(db, "t")
            db.run("UPDATE cursor SET expires_at = 7")
            other.request_pause("t", PauseRequest("ann", "", other.now()))
        assert store._server.rows("SELECT expires_at FROM cursor") != [(7,)]
        assert store.pause_request("t") is not None

    def test_times_are_the_servers(
        self, store: PostgresCheckpointer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = store.now()
        real = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: real() + 3_600_000_000_000)
        ahead = PostgresCheckpointer(store._url)
        assert abs(ahead.now() - before) < 60_000_000
        assert abs(store.now() - before) < 60_000_000
        lease = msgspec.structs.replace(ahead.new_lease(ahead.now()), boot="another host's")
        runner = line(store, say("x"))
        runner.invoke({}, thread_id="t")
        ahead.acquire("t", lease, ahead.now())
        with pytest.raises(ThreadBusy), Session.open(runner.graph, store, "t").writing():
            pass
        gate = Gate("a", "Go on?", [GateChoice("yes", "yes")], deadline=1800, on_timeout="yes")
        waits = line(ahead, say("x"), say("y"), interrupt_after=[gate])
        for _ in range(2):
            waits.invoke({}, thread_id="w")
        (request,) = waits.open("w").cursor.pending
        assert request.deadline is not None
        assert 0 <= request.deadline - before - 1_800_000_000 < 60_000_000
        ahead.close()


def until(true: Callable[[], bool]) -> None:
    """Wait for something."""
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


class TestNews:
    def test_a_subscriber_is_woken_by_another_processs_commit(
        self, store: PostgresCheckpointer, url: str
    ) -> None:
        woken = threading.Event()
        end = store.subscribe(woken.set)
        until(lambda: store.changes() is not None)
        with closing(PostgresCheckpointer(url)) as other:
            writer = Writer(other)
            until(lambda: store.info("t") is not None)
            for write in (
                writer.step,
                lambda: other.release("t", writer.lease.token),
                lambda: other.acquire("t", writer.lease, NOW),
                lambda: other.request_pause("t", None),
            ):
                until(lambda: store.changes() == store.changes())
                before, there = store.changes(), store.changes("t")
                elsewhere = store.changes("another")
                woken.clear()
                write()
                assert woken.wait(30)
                until(
                    lambda before=before, there=there: (
                        store.changes() != before and store.changes("t") != there
                    )
                )
                assert store.changes("another") == elsewhere
            woken.clear()
            end()
            writer.step()
            until(lambda: store.changes("t") is not None)

    def test_a_subscriber_of_a_thread_is_woken_only_by_its_family(
        self, store: PostgresCheckpointer, url: str
    ) -> None:
        woken: list[str] = []
        store.subscribe(lambda: woken.append("t"), "t")
        store.subscribe(lambda: woken.append("all"))
        until(lambda: store.changes() is not None)
        with closing(PostgresCheckpointer(url)) as other:
            for name in ("a", "b"):  # with the second one all is told that the first one brought about
                before = store.changes(name)
                Writer(other, name)
                until(lambda name=name, before=before: store.changes(name) != before)
            woken.clear()
            Writer(other, "c").step()
            until(lambda: "all" in woken)
            assert "t" not in woken
            Writer(other, "t/team#1").step()
            until(lambda: "t" in woken)

    def test_a_thread_inside_another_counts_as_news_of_it(self, store: PostgresCheckpointer) -> None:
        until(lambda: store.changes() is not None)
        before = store.changes("t")
        Writer(store, "t/team#1")
        until(lambda: store.changes("t") != before)

    def test_without_a_listener_all_changes_count_as_new(
        self, postgres: Postgres, store: PostgresCheckpointer
    ) -> None:
        until(lambda: store.changes() is not None)
        before = store.changes()
        woken = threading.Event()
        store.subscribe(woken.set)
        postgres.stop()
        try:
            until(lambda: store.changes() is None)
        finally:
            postgres.start()
        until(lambda: store.changes() is not None)
        assert store.changes() != before
        assert woken.is_set()

    def test_a_look_at_what_nobody_wrote_asks_the_server_nothing(
        self, store: PostgresCheckpointer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runner = line(store, say("x"))
        runner.invoke({}, thread_id="t")
        until(lambda: store.changes() is not None)
        events: list[Event] = []
        watcher = Watcher(
            Session.open(runner.graph, store, "t"), store, emit=events.append, together=nullcontext(),
            resync=lambda: None, busy=lambda: False, inside=lambda: False,
        )  # fmt: skip
        asked: list[str] = []
        rows = server.Server.rows

        def counted(self: server.Server, statement: str, values: Any = ()) -> list[tuple[Any, ...]]:
            asked.append(statement)
            return rows(self, statement, values)

        monkeypatch.setattr(server.Server, "rows", counted)
        # What this process wrote itself may still be told to it.
        until(lambda: (asked.clear(), watcher.look(), not asked)[-1])
        runner.update_state("t", {"log": "y"})
        until(lambda: (watcher.look(), bool(events))[-1])


class TestTables:
    def test_a_thread_that_was_taken_out_by_hand_is_missed(
        self, postgres: Postgres, store: PostgresCheckpointer, url: str
    ) -> None:
        Writer(store).step()
        Writer(store, "gone")
        assert list(store.faults(None)) == []
        with postgres.admin() as db:
            db.execute(f"SET search_path = {url.rpartition('=')[2]}".encode())
            db.execute("DELETE FROM cursor WHERE thread = 2")
            db.execute("DELETE FROM thread WHERE key = 2")
        assert list(store.faults(None)) == [Fault("store_ledger", None, "2 threads", "1, and 0 deleted")]

    def test_to_take_a_lease_out_by_hand_leaves_the_thread(
        self, postgres: Postgres, store: PostgresCheckpointer, url: str
    ) -> None:
        writer = Writer(store)
        with postgres.admin() as db:
            db.execute(f"SET search_path = {url.rpartition('=')[2]}".encode())
            db.execute("DELETE FROM lease")
        assert store.lease("t") is None
        assert store.cursor("t") == writer.cursor

    def test_two_stores_of_one_database_are_apart(self, postgres: Postgres, url: str) -> None:
        with closing(PostgresCheckpointer(url)) as one, closing(PostgresCheckpointer(f"{url}b")) as other:
            Writer(one)
            assert other.list_threads() == []
            assert other.info("t") is None
        postgres.drop(f"{url}b")


def test_a_store_that_somebody_still_reads_can_be_taken_out(postgres: Postgres) -> None:
    """A test that hung leaves a transaction open, and the next ones must not wait for it."""
    url = postgres.new_url()
    schema = url.rpartition("=")[2]
    with psycopg.connect(postgres.url()) as reader:
        reader.execute(f"CREATE SCHEMA {schema}".encode())
        reader.execute(f"CREATE TABLE {schema}.steps (step int)".encode())
        reader.commit()
        reader.execute(f"SELECT step FROM {schema}.steps".encode())
        postgres.drop(url)
        with pytest.raises(psycopg.OperationalError):
            reader.execute("SELECT 1")
