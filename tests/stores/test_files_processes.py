"""The files store in several processes at once, some of which are killed: commits stay whole."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from hitl_tui.errors import StoreUnusable, ThreadBusy
from hitl_tui.stores import FileCheckpointer, files_io
from tests.stores.log_writer import NOW, Writer
from tests.stores.processes import heard, process, tell


class TestSeveralProcesses:
    WRITING = """
store = FileCheckpointer(sys.argv[1])
say("open")
writer = Writer(store, create=store.info("t") is None)
while True:
    head = writer.cursor.head
    ledger = (entry(writer.cursor),) if head % 3 == 0 else ()
    writer.step({"a": "x" * 3000, "b": head}, snapshot=b"s%d" % head if head % 2 else None, ledger=ledger)
"""

    def test_a_writer_killed_at_any_moment_leaves_whole_commits_only(self, root: Path) -> None:
        moments = random.Random(7)
        for _ in range(12):
            with process("from tests.stores.log_writer import entry\n" + self.WRITING, root) as started:
                assert heard(started) == "open"
                time.sleep(moments.uniform(0, 0.25))
                started.send_signal(signal.SIGKILL)
                started.wait()
            store = FileCheckpointer(root)
            if store.info("t") is None:
                continue
            cursor = store.cursor("t")
            assert cursor is not None
            assert cursor.version == cursor.head + 1
            records = list(store.records("t", 0, 2**31))
            assert [record.seq for record in records] == list(range(1, cursor.last_seq + 1))
            assert [record.update for record in records[1::2]] == list(range(-1, cursor.head))
            points = store.checkpoints("t", None, 2**31)
            assert [point.step for point in points] == list(range(cursor.head, -1, -1))
            assert len(store.ledger("t")) == cursor.ledger_n
            for step in range(cursor.head + 1):
                last = step if step % 2 == 0 else step - 1
                assert store.snapshot("t", step) == (last, b"s%d" % (last - 1))
            assert store.totals("t", cursor.head).tokens_in == 10 * (cursor.head + 1)
        assert cursor.head > 12

    def test_of_two_processes_on_one_version_one_wins(self, files: FileCheckpointer) -> None:
        Writer(files).step()
        racing = """
store = FileCheckpointer(sys.argv[1])
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
        with process(racing, files.path, "a") as a, process(racing, files.path, "b") as b:
            assert (heard(a), heard(b)) == ("ready", "ready")
            tell(a)
            tell(b)
            outcomes = [heard(a), heard(b)]
        assert sorted(outcomes) == ["StaleWriter", "won"]
        winner = "ab"[outcomes.index("won")]
        assert [record.update for record in files.records("t", 1, 9)] == [winner]

    def test_a_thread_of_a_dead_process_is_taken_over_and_of_a_living_one_not(
        self, files: FileCheckpointer
    ) -> None:
        holding = """
Writer(FileCheckpointer(sys.argv[1])).step()
say("held")
sys.stdin.readline()
"""
        with process(holding, files.path) as holder:
            assert heard(holder) == "held"
            with pytest.raises(ThreadBusy, match=f"process {holder.pid}"):
                files.acquire("t", files.new_lease(NOW), NOW)
            holder.send_signal(signal.SIGKILL)
            os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
            dead = files.acquire("t", files.new_lease(NOW), NOW)
            assert dead is not None
            assert dead.pid == holder.pid

    def test_many_processes_may_make_one_store_and_one_thread_at_once(self, root: Path) -> None:
        creating = """
say("ready")
sys.stdin.readline()
store = FileCheckpointer(sys.argv[1])
Writer(store, sys.argv[2]).step()
try:
    Writer(store, "same")
    say("made")
except HitlError as error:
    say(type(error).__name__)
"""
        with (
            process(creating, root, 0) as a,
            process(creating, root, 1) as b,
            process(creating, root, 2) as c,
        ):
            everyone = (a, b, c)
            assert [heard(one) for one in everyone] == ["ready"] * 3
            for one in everyone:
                tell(one)
            assert sorted(heard(one) for one in everyone) == ["ThreadBusy", "ThreadBusy", "made"]
        assert FileCheckpointer(root).list_threads() == ["0", "1", "2"]

    def test_a_thread_locked_for_too_long_says_so(
        self, files: FileCheckpointer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(files_io, "BUSY_SECONDS", 0.02)
        writer = Writer(files)
        with (
            files_io.locked(next((files.path / "threads").iterdir()) / "lock"),
            pytest.raises(StoreUnusable, match="locked"),
        ):
            writer.step()
        writer.step()
        assert writer.cursor.head == 0

    def test_a_list_of_threads_shows_what_another_process_wrote_a_moment_ago(
        self, files: FileCheckpointer
    ) -> None:
        writer = Writer(files)
        other = FileCheckpointer(files.path)
        for head in range(30):
            writer.step({"n": head})
            assert [row.head for row in other.threads()] == [head]
