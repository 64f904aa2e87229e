"""A store that several processes share, some of which are killed: commits stay whole, one writer wins."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from hitl_tui.errors import ThreadBusy
from hitl_tui.stores import Checkpointer, open_store
from tests.stores.log_writer import NOW, Writer
from tests.stores.processes import process, read_line, write_line
from tests.support.spec import spec
from tests.support.workers import until

pytestmark = [pytest.mark.integration, spec("10")]


@pytest.fixture(params=["sqlite", "files", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    urls = {"sqlite": f"sqlite:///{tmp_path / 'runs.db'}", "files": f"files:{tmp_path / 'runs'}"}
    return urls.get(request.param) or request.getfixturevalue("postgres_url")


@pytest.fixture
def shared(url: str) -> Iterator[Checkpointer]:
    opened = open_store(url)
    yield opened
    opened.close()


WRITING = """
from tests.stores.log_writer import entry
store = open_store(sys.argv[1])
say("open")
writer = Writer(store, create=store.info("t") is None)
while True:
    head = writer.cursor.head
    ledger = (entry(writer.cursor),) if head % 3 == 0 else ()
    writer.step({"a": "x" * 3000, "b": head}, snapshot=b"s%d" % head if head % 2 else None, ledger=ledger)
"""


def assert_whole(store: Checkpointer) -> int:
    """All that `WRITING` has committed is there, and nothing of what it has not; gives the last step."""
    cursor = store.cursor("t")
    assert cursor is not None
    assert cursor.version == cursor.head + 1
    records = list(store.records("t", 0, 2**31))
    assert [record.seq for record in records] == list(range(1, cursor.last_seq + 1))
    assert [record.update for record in records[1::2]] == list(range(-1, cursor.head))
    points = store.checkpoints("t", None, 2**31)
    assert [point.step for point in points] == list(range(cursor.head, -1, -1))
    if records:
        assert records[-1].record_hash == cursor.last_record_hash
        assert points[0].last_seq == cursor.last_seq == 2 * (cursor.head + 1)
    assert len(store.ledger("t")) == cursor.ledger_n
    for step in range(cursor.head + 1):
        last = step if step % 2 == 0 else step - 1
        assert store.snapshot("t", step) == (last, b"s%d" % (last - 1))
    assert store.totals("t", cursor.head).tokens_in == 10 * (cursor.head + 1)
    return cursor.head


def wait_for_the_server(url: str) -> None:
    """Wait until a server has ended what processes that were killed had asked it for."""
    if not url.startswith("postgresql"):
        return
    others = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND application_name = 'killed'"
    )
    with psycopg.connect(url.partition("?")[0], autocommit=True) as db:
        until(lambda: db.execute(others).fetchone() == (0,), "the server has ended what it was asked for")


def test_a_writer_killed_at_any_moment_leaves_whole_commits_only(shared: Checkpointer, url: str) -> None:
    writes_to = f"{url}&application_name=killed" if url.startswith("postgresql") else url
    moments = random.Random(7)
    head = -1
    for killed in range(80):
        # A busy machine lets a writer come to few commits, or to none, before it is killed.
        if killed >= 8 and head > 8:
            break
        with process(WRITING, writes_to) as started:
            assert read_line(started) == "open"
            time.sleep(moments.uniform(0, 0.25))
            started.send_signal(signal.SIGKILL)
            started.wait()
        wait_for_the_server(url)
        if shared.info("t") is not None:
            head = assert_whole(shared)
    assert head > 8
    assert Writer(shared, create=False).step().cursor.head == head + 1


RACING = """
store = open_store(sys.argv[1])
writer = object.__new__(Writer)
writer.store, writer.thread_id, writer.lease = store, "t", store.lease("t")
commit = writer.commit_of({"messages": sys.argv[2]})
say("ready")
sys.stdin.readline()
try:
    store.commit("t", commit)
    say("won")
except HitlError as error:
    say(type(error).__name__)
"""


def test_one_of_two_processes_on_the_same_version_wins(shared: Checkpointer, url: str) -> None:
    Writer(shared).step()
    with process(RACING, url, "a") as a, process(RACING, url, "b") as b:
        assert (read_line(a), read_line(b)) == ("ready", "ready")
        write_line(a)
        write_line(b)
        outcomes = [read_line(a), read_line(b)]
    assert sorted(outcomes) == ["StaleWriter", "won"]
    winner = "ab"[outcomes.index("won")]
    assert [record.update for record in shared.records("t", 1, 9)] == [winner]


HOLDING = """
Writer(open_store(sys.argv[1])).step()
say("held")
sys.stdin.readline()
"""


def test_a_thread_of_a_dead_process_is_taken_over_and_of_a_living_one_not(
    shared: Checkpointer, url: str
) -> None:
    with process(HOLDING, url) as holder:
        assert read_line(holder) == "held"
        with pytest.raises(ThreadBusy, match=f"process {holder.pid}"):
            shared.acquire("t", shared.new_lease(NOW), NOW)
        (row,) = shared.threads()
        assert row.held_by is not None
        assert str(holder.pid) in row.held_by
        holder.send_signal(signal.SIGKILL)
        # Waits for the end without reaping: what is left is a zombie, which holds nothing.
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
        dead = shared.acquire("t", shared.new_lease(NOW), NOW)
        assert dead is not None
        assert dead.pid == holder.pid
    assert dead.host


CREATING = """
say("ready")
sys.stdin.readline()
store = open_store(sys.argv[1])
Writer(store, sys.argv[2]).step()
try:
    Writer(store, "same")
    say("made")
except HitlError as error:
    say(type(error).__name__)
"""


def test_many_processes_may_make_one_store_and_one_thread_at_once(url: str) -> None:
    with process(CREATING, url, 0) as a, process(CREATING, url, 1) as b, process(CREATING, url, 2) as c:
        everyone = (a, b, c)
        assert [read_line(one) for one in everyone] == ["ready"] * 3
        for one in everyone:
            write_line(one)
        assert sorted(read_line(one) for one in everyone) == ["ThreadBusy", "ThreadBusy", "made"]
    threads = open_store(url)
    assert threads.list_threads() == ["0", "1", "2"]
    threads.close()
