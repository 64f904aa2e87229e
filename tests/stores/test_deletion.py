"""Threads that are deleted: whole families, never what runs or waits, and what is kept of them."""

from __future__ import annotations

import os
import resource
import shutil
import signal
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest

from hitl_tui.engine.audit.verify import verify_tree
from hitl_tui.engine.log.threads import Deletion, Lease, Owner
from hitl_tui.engine.thread.hashes import ledger_hash
from hitl_tui.errors import StaleWriter, ThreadBusy, UnknownThread, UsageError
from hitl_tui.stores import Checkpointer, FileCheckpointer, SQLiteCheckpointer, open_store
from hitl_tui.stores.deletion import DeletionPlan, Retention, delete, delete_in_batches, leaving, prunable
from hitl_tui.stores.files import deletion as files_deletion
from tests.engine.run.booking import World
from tests.engine.run.nested_trip import DESK, TEAM, nested
from tests.stores.log_writer import NOW, Writer, info
from tests.stores.processes import process
from tests.support.spec import spec

pytestmark = spec("10")

DAY = 86_400_000_000


def ended(store: Checkpointer, name: str, at: int = NOW) -> Writer:
    """A thread of two steps that is done and held by nobody."""
    writer = Writer(store, name)
    writer.step({"messages": "hello", "draft": "x" * 900})
    writer.step(status="completed", reason="end", position="end", updated_at=at, snapshot=b"{}")
    store.release(name, writer.lease.token)
    return writer


def names(store: Checkpointer) -> set[str]:
    return {row.info.thread_id for row in store.threads(limit=999)}


def deletion(store: Checkpointer, *threads: str, force: bool = False) -> Deletion:
    versions = {name: cursor.version for name in threads if (cursor := store.cursor(name))}
    return Deletion(versions, "ann", "only a try", NOW, force=force)


class TestBatches:
    def test_families_stay_whole_and_the_ledger_is_true_wherever_it_ends(
        self, store: Checkpointer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("hitl_tui.stores.deletion._BATCH", 3)
        writers = [ended(store, f"t{number}") for number in range(8)]
        fork = writers[0].fork(1, "t0-b")
        fork.step(status="completed", reason="end", position="end")
        store.release("t0-b", fork.lease.token)
        # As a rule names them: each by itself, the fork far from what it was forked from.
        going = leaving(store, [*(f"t{number}" for number in range(8)), "t0-b"])
        batches = delete_in_batches(store, going, actor="ann", note="old", at=NOW, why="prune: all")
        assert [entry.thread_id for entry in next(batches)] == ["t0", "t0-b", "t1"]
        assert names(store) == {"t2", "t3", "t4", "t5", "t6", "t7"}
        ended(store, "new")
        assert len(next(batches)) == 3
        batches.close()
        assert names(store) == {"t5", "t6", "t7", "new"}
        entries = store.store_ledger()
        assert [entry.n for entry in entries] == [1, 2, 3, 4, 5, 6]
        assert [entry.prev_hash for entry in entries] == [b"", *(entry.hash for entry in entries[:-1])]
        assert store.store_ledger(newest=2) == entries[-2:]
        assert store.store_ledger(newest=9) == entries
        assert list(store.faults(None)) == []


class TestDelete:
    def test_a_deleted_thread_leaves_only_an_entry_of_the_store(self, store: Checkpointer) -> None:
        ended(store, "kept")
        writer = ended(store, "gone")
        last = writer.cursor
        (entry,) = store.delete(deletion(store, "gone"))
        assert names(store) == {"kept"}
        assert (store.info("gone"), store.cursor("gone"), store.summary("gone")) == (None, None, None)
        assert list(store.records("gone", 0, 9)) == store.ledger("gone") == store.checkpoints("gone", None, 9)
        assert store.store_ledger() == [msgspec.structs.replace(entry, login=store.login)]
        assert (entry.kind, entry.thread_id, entry.n, entry.step) == ("delete", "gone", 1, 1)
        assert (entry.actor, entry.note, entry.at) == ("ann", "only a try", NOW)
        assert entry.data["checkpoint_hash"] == last.checkpoint_hash.hex()
        assert entry.data["ledger_hash"] == last.ledger_hash.hex()
        assert entry.account

    def test_the_entries_are_chained(self, store: Checkpointer) -> None:
        for name in ("a", "b", "c"):
            ended(store, name)
        store.delete(deletion(store, "b", "a"))
        store.delete(deletion(store, "c"))
        entries = store.store_ledger()
        assert [(entry.n, entry.thread_id) for entry in entries] == [(1, "b"), (2, "a"), (3, "c")]
        assert [entry.prev_hash for entry in entries] == [b"", entries[0].hash, entries[1].hash]
        assert [ledger_hash(entry) for entry in entries] == [entry.hash for entry in entries]

    def test_its_name_can_be_taken_again(self, store: Checkpointer) -> None:
        ended(store, "t")
        store.delete(deletion(store, "t"))
        again = Writer(store, "t")
        again.step({"messages": "anew"})
        assert [record.update for record in store.records("t", 0, 9)] == ["anew"]
        assert store.size("t").steps == 1

    def test_a_thread_that_moved_since_the_plan_is_kept(self, store: Checkpointer) -> None:
        writer = ended(store, "t")
        looked = deletion(store, "t")
        store.acquire("t", writer.lease, NOW)
        writer.step(status="completed", reason="end", position="end")
        store.release("t", writer.lease.token)
        with pytest.raises(StaleWriter, match="'t' has changed since"):
            store.delete(looked)
        assert names(store) == {"t"}
        assert store.store_ledger() == []

    def test_one_undeletable_thread_keeps_all(self, store: Checkpointer) -> None:
        ended(store, "a")
        Writer(store, "b").step(status="waiting", reason="paused")
        with pytest.raises(ThreadBusy, match="'b' is run by"):
            store.delete(deletion(store, "a", "b"))
        assert names(store) == {"a", "b"}
        store.delete(deletion(store, "a", "b", force=True))
        assert names(store) == set()

    def test_a_waiting_thread_is_deleted_only_with_force(self, store: Checkpointer) -> None:
        writer = Writer(store, "t")
        writer.step(status="waiting", reason="paused")
        store.release("t", writer.lease.token)
        with pytest.raises(ThreadBusy, match="'t' waits"):
            leaving(store, ["t"])
        assert [thread.thread_id for thread in leaving(store, ["t"], force=True)] == ["t"]

    def test_a_fork_keeps_its_parent_unless_it_goes_too(self, store: Checkpointer) -> None:
        writer = ended(store, "t")
        fork = writer.fork(1, "t-b")
        fork.step(status="completed", reason="end", position="end")
        store.release("t-b", fork.lease.token)
        with pytest.raises(UsageError, match="'t-b' is a fork of 't'"):
            leaving(store, ["t"])
        with pytest.raises(UsageError, match="'t-b' is a fork of 't'"):
            store.delete(deletion(store, "t"))
        both = leaving(store, ["t"], forks=True)
        assert [(thread.thread_id, thread.why, thread.of) for thread in both] == [
            ("t", "named", ""),
            ("t-b", "fork", "t"),
        ]
        delete(store, both, actor="ann", note=None, at=NOW)
        assert names(store) == set()

    def test_a_fork_is_deleted_without_its_parent(self, store: Checkpointer) -> None:
        writer = ended(store, "t")
        fork = writer.fork(1, "t-b")
        store.release("t-b", fork.lease.token)
        store.delete(deletion(store, "t-b", force=True))
        assert names(store) == {"t"}
        assert store.children("t") == []
        assert [record.update for record in store.records("t", 0, 0)] == ["hello", "x" * 900]

    def test_a_writer_of_a_deleted_thread_gets_an_error(self, store: Checkpointer) -> None:
        writer = Writer(store, "t")
        writer.step()
        commit = writer.commit_of({"messages": "late"})
        store.delete(deletion(store, "t", force=True))
        with pytest.raises(UnknownThread, match="'t'"):
            store.commit("t", commit)
        with pytest.raises(UnknownThread, match="'t'"):
            store.acquire("t", writer.lease, NOW)

    def test_deleting_an_unknown_thread_is_an_error(self, store: Checkpointer) -> None:
        with pytest.raises(UnknownThread, match="'x'"):
            leaving(store, ["x"])
        with pytest.raises(UnknownThread, match="'x'"):
            store.delete(Deletion({"x": 0}, None, None, NOW))


class TestManyOfAFilesStore:
    @pytest.mark.slow
    def test_few_files_are_open_at_a_time(self, files: FileCheckpointer) -> None:
        threads = [ended(files, f"t{number}").thread_id for number in range(40)]
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        probe = os.open(os.devnull, os.O_RDONLY)
        os.close(probe)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (probe + 12, hard))
            files.delete(deletion(files, *threads))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert names(files) == set()

    def test_a_writer_during_the_deletion_waits_and_gets_an_error(
        self, files: FileCheckpointer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gone, stays = ended(files, "gone"), ended(files, "stays")
        for writer in (gone, stays):
            files.acquire(writer.thread_id, writer.lease, NOW)
        outcomes: dict[str, object] = {}

        commits = {writer.thread_id: writer.commit_of({"messages": "late"}) for writer in (gone, stays)}

        def write(writer: Writer) -> None:
            try:
                outcomes[writer.thread_id] = files.commit(writer.thread_id, commits[writer.thread_id])
            except UnknownThread as error:
                outcomes[writer.thread_id] = error

        late = [Thread(target=write, args=(writer,)) for writer in (gone, stays)]

        def started(*given: Any) -> None:
            begin(*given)
            if not any(thread.ident for thread in late):
                for thread in late:
                    thread.start()

        begin = files_deletion.begin
        monkeypatch.setattr(files_deletion, "begin", started)
        files.delete(deletion(files, "gone", force=True))
        for thread in late:
            thread.join(60)
        assert isinstance(outcomes["gone"], UnknownThread)
        assert outcomes["stays"] is None
        assert names(files) == {"stays"}
        assert [record.update for record in files.records("stays", 0, 9)][-1] == "late"


@pytest.fixture(params=[50, 0], ids=["one by one", "at once"])
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Families are read thread by thread, and for many threads all at once."""
    monkeypatch.setattr("hitl_tui.stores.deletion._MANY", request.param)


@pytest.mark.usefixtures("many")
class TestFamilies:
    def test_subgraph_threads_are_deleted_only_with_their_owner(self, store: Checkpointer) -> None:
        nested(store, World()).invoke({"note": "x"}, thread_id="t")
        nested(store, World()).invoke({"note": "y"}, thread_id="u")
        with pytest.raises(UsageError, match=f"'{TEAM}' ran inside 't'"):
            leaving(store, [TEAM])
        going = leaving(store, ["t"])
        assert {thread.thread_id: thread.why for thread in going} == {
            "t": "named",
            TEAM: "inside",
            DESK: "inside",
        }
        delete(store, going, actor="ann", note=None, at=NOW)
        assert {name.partition("/")[0] for name in names(store)} == {"u"}
        assert nested(store, World()).verify("u", strict=True).mismatches == ()

    def test_a_subgraph_thread_started_meanwhile_keeps_its_owner(self, store: Checkpointer) -> None:
        ended(store, "t")
        looked = deletion(store, "t")
        child = info("t/team#1", owner=Owner("t", "team"))
        store.create_thread(child, msgspec.structs.replace(store.cursor("t"), thread_id="t/team#1"))  # type: ignore[type-var]
        with pytest.raises(UsageError, match="ran inside 't'"):
            store.delete(looked)
        assert "t" in names(store)


def going(plan: DeletionPlan) -> list[str]:
    return [thread.thread_id for thread in plan.going]


@pytest.mark.usefixtures("many")
class TestPrune:
    def test_recent_newest_and_waiting_threads_are_kept(self, store: Checkpointer) -> None:
        for days in range(1, 6):
            ended(store, f"day{days}", NOW - days * DAY)
        waits = Writer(store, "waits")
        waits.step(status="waiting", reason="paused", updated_at=NOW - 9 * DAY)
        store.release("waits", waits.lease.token)
        plan = prunable(store, Retention(older_than=2 * DAY, keep_last=3), NOW)
        assert going(plan) == ["day4", "day5"]
        assert plan.kept == {"newest": 3, "waits": 1}
        plan = prunable(store, Retention(older_than=2 * DAY + 1), NOW, force=True)
        assert sorted(going(plan)) == ["day3", "day4", "day5", "waits"]
        assert plan.kept == {"young": 2}

    def test_threads_with_human_decisions_are_kept(self, store: Checkpointer) -> None:
        ended(store, "plain")
        writer = Writer(store, "decided")
        from tests.stores.log_writer import entry

        writer.step(ledger=(entry(writer.cursor),), status="completed", reason="end", position="end")
        store.release("decided", writer.lease.token)
        plan = prunable(store, Retention(keep_decided=True), NOW)
        assert (going(plan), plan.kept) == (["plain"], {"decided": 1})

    def test_a_young_fork_keeps_its_parent_and_the_parents_parent(self, store: Checkpointer) -> None:
        old = ended(store, "old", NOW - 9 * DAY)
        middle = old.fork(1, "middle")
        middle.step(status="completed", reason="end", position="end", updated_at=NOW - 8 * DAY)
        young = middle.fork(2, "young")
        young.step(status="completed", reason="end", position="end", updated_at=NOW)
        alone = old.fork(0, "alone")
        alone.step(status="completed", reason="end", position="end", updated_at=NOW - 7 * DAY)
        for writer in (middle, young, alone):
            store.release(writer.thread_id, writer.lease.token)
        looked: list[tuple[int, int]] = []
        plan = prunable(
            store, Retention(older_than=DAY), NOW, watch=lambda done, of: looked.append((done, of))
        )
        assert (going(plan), plan.kept) == (["alone"], {"young": 1, "forked": 2})
        assert [seen for seen in looked if seen != (0, 0)] == [(1, 3), (2, 3), (3, 3)]
        assert sorted(going(prunable(store, Retention(), NOW))) == ["alone", "middle", "old", "young"]


class TestSpace:
    def test_sizes_are_listed_by_channel(self, store: Checkpointer) -> None:
        ended(store, "t")
        size = store.size("t")
        assert size.steps == 2
        assert size.channels["draft"] == 902
        assert size.channels["messages"] == 14
        assert size.snapshots > 0
        assert size.bytes >= 916 + size.snapshots

    def test_a_fork_counts_its_own_steps(self, store: Checkpointer) -> None:
        writer = ended(store, "t")
        writer.fork(1, "t-b").step({"draft": "y"})
        assert (store.size("t-b").steps, store.size("t-b").channels) == (1, {"draft": 3})

    @pytest.mark.parametrize("kind", ["sqlite", "files"])
    def test_vacuum_frees_the_space(self, tmp_path: Path, kind: str) -> None:
        path = tmp_path / "runs.db" if kind == "sqlite" else tmp_path / "runs"
        store = open_store(str(path) if kind == "sqlite" else f"files:{path}")
        writer = ended(store, "big")
        ended(store, "small")
        store.acquire("big", writer.lease, NOW)
        for _ in range(20):
            writer.step({"draft": "SECRET" * 2000}, status="completed", reason="end", position="end")
        store.release("big", writer.lease.token)
        full = store.space().used
        store.delete(deletion(store, "big"))
        held = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
        assert b"SECRET" not in held, "what was deleted is overwritten"
        assert store.vacuum().used < full - 200_000
        assert [record.update for record in store.records("small", 0, 0)] == ["hello", "x" * 900]
        store.close()

    def test_vacuum_drops_graphs_that_no_thread_names(self, sqlite: SQLiteCheckpointer) -> None:
        writer = ended(sqlite, "t")
        digest = writer.cursor.graph or info("t").graph_digest
        sqlite.vacuum()
        assert sqlite.graph(digest) is not None
        sqlite.delete(deletion(sqlite, "t"))
        sqlite.vacuum()
        assert sqlite.graph(digest) is None


DELETING = """
import os, signal, shutil
from hitl_tui.stores.deletion import delete, leaving

left = int(sys.argv[2])

def counted(function):
    def call(*arguments, **options):
        global left
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return function(*arguments, **options)
    return call

store = open_store(sys.argv[1])
going = leaving(store, ["t", "u"])
os.rename, os.replace, os.unlink = counted(os.rename), counted(os.replace), counted(os.unlink)
if isinstance(store, SQLiteCheckpointer):
    store._take_out = counted(store._take_out)
    from hitl_tui.stores import rows
    rows.ledger_row = counted(rows.ledger_row)
delete(store, going, actor="ann", note=None, at=NOW)
"""


EVERY = 3
"""Calls between the moments at which a deletion is killed: the first, the fourth and so on."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "files"])
def test_a_deletion_killed_at_any_moment_is_complete_or_absent(tmp_path: Path, kind: str) -> None:
    def url_of(folder: Path) -> str:
        return str(folder / "runs.db") if kind == "sqlite" else f"files:{folder / 'runs'}"

    model = tmp_path / "model"
    model.mkdir()
    store = open_store(url_of(model))
    for name in ("t", "u"):
        nested(store, World()).invoke({"note": "x"}, thread_id=name)
    ended(store, "other")
    everything = names(store)
    store.close()
    outcomes, number = set(), 0
    while True:
        url = url_of(shutil.copytree(model, tmp_path / str(number)))
        with process(DELETING, url, number) as deleting:
            code = deleting.wait()
        store = open_store(url)
        left, entries = names(store), store.store_ledger()
        outcomes.add(left == {"other"})
        if left == {"other"}:
            assert {entry.thread_id for entry in entries} == everything - left
        else:
            assert (left, entries) == (everything, [])
            assert verify_tree(store, "t").mismatches == verify_tree(store, "u").mismatches == ()
        assert list(store.faults(None)) == []
        if isinstance(store, FileCheckpointer):
            assert not (store.path / "deleting.json").exists()
            assert len(list((store.path / "threads").iterdir())) == len(left)
        store.close()
        if code == 0:
            break
        assert code == -signal.SIGKILL
        number += EVERY
    assert number > 4
    assert outcomes == {False, True}


def test_two_processes_see_the_same(tmp_path: Path) -> None:
    for url in (str(tmp_path / "runs.db"), f"files:{tmp_path / 'runs'}"):
        here, there = open_store(url), open_store(url)
        ended(here, "t")
        assert there.cursor("t") == here.cursor("t")
        here.delete(deletion(here, "t"))
        assert there.cursor("t") is None
        assert there.info("t") is None
        assert there.threads() == []
        Writer(here, "t").step({"messages": "anew"})
        assert there.cursor("t") == here.cursor("t")
        assert [record.update for record in there.records("t", 0, 9)] == ["anew"]
        here.close()
        there.close()


def test_a_thread_that_was_taken_out_by_hand_is_found(sqlite: SQLiteCheckpointer) -> None:
    ended(sqlite, "kept")
    ended(sqlite, "gone")
    assert list(sqlite.faults(None)) == []
    for table in ("record", "checkpoint", "snapshot", "spending", "ledger"):
        sqlite._db.execute(f"DELETE FROM {table} WHERE id >> 32 = 2")
    for sql in ("DELETE FROM cursor WHERE thread = 2", "DELETE FROM thread WHERE key = 2"):
        sqlite._db.execute(sql)
    assert [fault.field for fault in sqlite.faults(None)] == ["store_ledger"]


def test_a_holder_elsewhere_that_gave_no_sign_for_long_keeps_nothing(store: Checkpointer) -> None:
    ended(store, "t")
    afar = Lease("token", "hal", "afar", 4711, 17, expires_at=NOW, boot="b", namespace="n")
    store.acquire("t", afar, NOW - 1)
    store.delete(deletion(store, "t"))
    assert names(store) == set()
