"""What every store must do with lists of threads, their names and who holds them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hitl_tui import MemoryCheckpointer
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.threads import Lease, Owner, PauseRequest
from hitl_tui.errors import StaleWriter, ThreadBusy, UnknownThread, UsageError
from hitl_tui.stores import Checkpointer
from tests.stores.log_writer import GRAPH, NOW, Writer, entry, info, start
from tests.support.spec import spec

pytestmark = spec("10")

GONE = 2**22 + 1
"""A process id above the highest that Linux gives."""


class TestThreads:
    def test_any_printable_text_names_a_thread(self, store: Checkpointer) -> None:
        names = ["a1", "x" * 200, "überblick/Δ#1", "a b'; --", "%_[*]", "\u202e"]
        for name in names:
            Writer(store, name).step()
        assert store.list_threads() == sorted(names)
        for name in names:
            assert [row.info.thread_id for row in store.threads(name)] == [name]

    def test_refuses_a_name_that_is_not_printable(self, store: Checkpointer) -> None:
        for name in ("", "x" * 201, "a\x00b", "a\nb", "\x1b[2J", "\x9b", "\ud800"):
            with pytest.raises(UsageError, match="thread id"):
                store.create_thread(info(name), Cursor(name))
        assert store.threads() == []

    def test_refuses_a_name_that_is_taken(self, writer: Writer) -> None:
        writer.step()
        with pytest.raises(ThreadBusy, match="a thread 't' already"):
            writer.store.create_thread(info("t"), Cursor("t"))
        assert writer.cursor.head == 0

    def test_a_thread_and_its_first_commit_are_there_at_once(self, store: Checkpointer) -> None:
        model = Writer(MemoryCheckpointer())
        decided = entry(model.cursor)
        first = model.commit_of({"messages": "hello"}, snapshot=b"{}", ledger=(decided,))
        store.create_thread(info("t"), model.cursor, first)
        assert store.cursor("t") == first.cursor
        assert store.checkpoints("t", None, 9) == [first.checkpoint]
        assert tuple(store.records("t", 0, 9)) == first.records
        assert store.ledger("t") == [msgspec.structs.replace(decided, login=store.login)]
        assert store.snapshot("t", 0) == (0, b"{}")
        assert store.graph(GRAPH.digest) == GRAPH
        with pytest.raises(ThreadBusy):
            store.create_thread(info("t"), model.cursor, model.commit_of({"messages": "other"}))
        assert tuple(store.records("t", 0, 9)) == first.records

    def test_lists_the_last_changed_first(self, store: Checkpointer) -> None:
        writers = [Writer(store, f"Run {n}") for n in range(5)]
        for at, n in enumerate((3, 0, 4, 1, 2)):
            writers[n].step(updated_at=NOW + at)
        names = [row.info.thread_id for row in store.threads()]
        assert names == ["Run 2", "Run 1", "Run 4", "Run 0", "Run 3"]
        assert [row.info.thread_id for row in store.threads(limit=2, after=store.summary("Run 2"))] == names[
            1:3
        ]
        assert [row.info.thread_id for row in store.threads("RUN 4")] == ["Run 4"]
        assert store.threads("run %") == []
        assert [store.summary(f"Run {n}") for n in (2, 1, 4, 0, 3)] == store.threads()

    def test_says_what_a_thread_waits_for(self, writer: Writer) -> None:
        asked = Request("r", "approve", "n", "after", 0, "Approve this draft?", asked_at=NOW + 5)
        writer.step(status="waiting", reason="approval", position="route:n", pending=(asked,))
        (row,) = writer.store.threads()
        assert (row.status, row.reason, row.next_node) == ("waiting", "approval", None)
        assert (row.waiting_for, row.waiting_since) == ("Approve this draft?", NOW + 5)
        assert (row.head, row.last_writer, row.updated_at) == (0, "input", NOW)
        writer.step(point={"actor": "ann"}, status="running", reason="", pending=(), position="node:n")
        (row,) = writer.store.threads()
        assert (row.waiting_for, row.waiting_since) == ("", None)
        assert (row.next_node, row.last_writer) == ("n", "ann")

    def test_lists_waiting_threads_longest_first(self, store: Checkpointer) -> None:
        def asking(name: str, asked_at: int) -> None:
            asked = Request("r", "approve", "n", "after", 0, "", asked_at=NOW + asked_at)
            Writer(store, name).step(status="waiting", reason="approval", pending=(asked,))

        for name, asked_at in (("b1", 5), ("b2", 1), ("a2", 1), ("b3", 9)):
            asking(name, asked_at)
        Writer(store, "running").step()
        Writer(store, "b4").step(status="waiting", reason="paused", updated_at=NOW + 3)
        inside = info("b1/x", owner=Owner("b1", "n"))
        store.create_thread(inside, Cursor("b1/x", created_at=NOW, **start(inside)))
        Writer(store, "b1/x", create=False).step(status="waiting", reason="paused", updated_at=NOW + 2)

        def names(*page: Any, **wanted: Any) -> list[str]:
            return [row.info.thread_id for row in store.threads(*page, **wanted, waiting=True)]

        assert names() == ["a2", "b2", "b1/x", "b4", "b1", "b3"]
        assert names("", 2, store.summary("a2"), "") == ["b2", "b4"]
        assert names("B") == ["b2", "b1/x", "b4", "b1", "b3"]
        assert names(within="b1") == ["b1/x"]
        assert [row.inside for row in store.threads(within="", waiting=True)] == [0, 0, 0, 1, 0]

    def test_returns_the_requests_of_waiting_threads_with_their_state(self, store: Checkpointer) -> None:
        asked = [Request(f"r{n}", "approve", "n", "after", 0, "", asked_at=NOW + n) for n in range(3)]
        for n, name in ((2, "late"), (0, "early")):
            pending = (asked[n], asked[1])
            Writer(store, name).step(status="waiting", reason="approval", pending=pending, goal=name)
        Writer(store, "paused").step(status="waiting", reason="paused", updated_at=NOW + 1)
        Writer(store, "running").step()
        waiting = store.waiting(9)
        assert [row.thread for row in waiting] == store.threads("", 9, None, "", waiting=True)
        assert [(row.thread.info.thread_id, row.pending, row.goal) for row in waiting] == [
            ("early", (asked[0], asked[1]), "early"),
            ("paused", (), None),
            ("late", (asked[2], asked[1]), "late"),
        ]
        (newest,) = store.checkpoints("early", None, 1)
        assert waiting[0].state_hash == newest.state_hash
        assert store.waiting(1) == waiting[:1]

    def test_reports_changes_if_the_store_can(self, store: Checkpointer) -> None:
        writer = Writer(store, "t")
        before = store.changes()
        assert store.changes() == before
        writer.step()
        assert before is None or store.changes() != before

    def test_says_who_holds_a_thread_while_they_live(self, writer: Writer) -> None:
        (row,) = writer.store.threads()
        assert row.held_by == f"{writer.lease.user} on host {writer.lease.host}, process {writer.lease.pid}"
        writer.store.release("t", writer.lease.token)
        writer.store.acquire("t", msgspec.structs.replace(writer.lease, pid=GONE), NOW)
        assert [row.held_by for row in writer.store.threads()] == [None]

    def test_a_thread_whose_runner_has_died_waits_among_those_that_wait(self, store: Checkpointer) -> None:
        for name, at in (("late", 9), ("dead", 5), ("early", 1)):
            writer = Writer(store, name)
            status = "running" if name == "dead" else "waiting"
            writer.step(status=status, reason="" if name == "dead" else "paused", updated_at=NOW + at)
        alive = [row.info.thread_id for row in store.threads(waiting=True)]
        assert alive == ["early", "late"]
        dead = store.lease("dead")
        assert dead is not None
        store.release("dead", dead.token)
        store.acquire("dead", msgspec.structs.replace(dead, pid=GONE), NOW)
        waiting = store.threads(waiting=True)
        assert [row.info.thread_id for row in waiting] == ["early", "dead", "late"]
        assert [row.waiting_since for row in waiting] == [NOW + 1, NOW + 5, NOW + 9]
        store.release("dead", dead.token)
        assert store.threads(waiting=True)[1:2] == [store.summary("dead")]
        assert [row.info.thread_id for row in store.threads("", 1, waiting[0], waiting=True)] == ["dead"]

    def test_lists_a_thread_whose_runner_has_died_as_paused(self, writer: Writer) -> None:
        writer.step(status="running", updated_at=NOW)
        assert [row.status for row in writer.store.threads()] == ["running"]
        writer.store.release("t", writer.lease.token)
        writer.store.acquire("t", msgspec.structs.replace(writer.lease, pid=GONE), NOW)
        (row,) = writer.store.threads()
        assert (row.status, row.reason, row.waiting_for) == ("waiting", "paused", "paused")
        assert row == writer.store.summary("t")

    def test_lists_names_of_threads_that_have_a_step(self, store: Checkpointer) -> None:
        Writer(store, "b").step()
        Writer(store, "empty")
        Writer(store, "a").step()
        assert store.list_threads() == ["a", "b"]


class TestLease:
    def rival(self, writer: Writer, **changes: Any) -> Lease:
        return msgspec.structs.replace(writer.store.new_lease(NOW), **changes)

    def test_a_living_holder_keeps_its_thread_however_late(self, writer: Writer) -> None:
        with pytest.raises(ThreadBusy, match="already running in this process"):
            writer.store.acquire("t", self.rival(writer), writer.lease.expires_at + 10**12)
        writer.step()

    def test_its_own_holder_may_take_it_again(self, writer: Writer) -> None:
        assert writer.store.acquire("t", writer.lease, NOW) is None
        assert writer.store.lease("t") == writer.lease
        assert writer.store.held() == ["t"]

    def test_a_dead_holder_is_taken_over_from(self, writer: Writer) -> None:
        dead: dict[str, dict[str, Any]] = {
            "gone": {"pid": GONE},
            "gone, host renamed": {"pid": GONE, "host": "renamed"},
            "its id went to another": {"process_started": 1},
            "other host": {"boot": "another", "expires_at": NOW - 1},
            "other container": {"namespace": "another", "expires_at": NOW - 1},
        }
        writer.store.release("t", writer.lease.token)
        for why, facts in dead.items():
            holder, rival = self.rival(writer, **facts), self.rival(writer)
            writer.store.acquire("t", holder, NOW)
            assert writer.store.acquire("t", rival, NOW) == holder, why
            late = msgspec.structs.replace(writer.commit_of({}), lease_token=holder.token)
            with pytest.raises(ThreadBusy):
                writer.store.commit("t", late)
            writer.store.release("t", rival.token)

    def test_a_holder_elsewhere_counts_as_living_until_its_lease_ends(self, writer: Writer) -> None:
        """Its host may have the same name, and no process here may have its process id."""
        writer.store.release("t", writer.lease.token)
        places: tuple[dict[str, str], ...] = ({"boot": "another"}, {"namespace": "another"})
        for place in places:
            holder, rival = self.rival(writer, pid=GONE, expires_at=NOW + 5, **place), self.rival(writer)
            writer.store.acquire("t", holder, NOW)
            with pytest.raises(ThreadBusy, match=r"run by .* on host"):
                writer.store.acquire("t", rival, NOW + 4)
            assert writer.store.acquire("t", rival, NOW + 5) == holder, place
            writer.store.release("t", rival.token)

    def test_knows_its_boot_and_its_pid_namespace(self, writer: Writer) -> None:
        lease = writer.store.lease("t")
        assert lease is not None
        assert lease.boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        assert lease.namespace == os.readlink("/proc/self/ns/pid")

    def test_is_renewed_only_by_its_holder(self, writer: Writer) -> None:
        writer.store.renew("t", writer.lease.token, NOW + 77)
        assert writer.store.lease("t") == msgspec.structs.replace(writer.lease, expires_at=NOW + 77)
        with pytest.raises(ThreadBusy):
            writer.store.renew("t", "another", NOW + 99)
        writer.store.release("t", "another")
        writer.store.release("none", "another")
        assert writer.store.lease("t") == msgspec.structs.replace(writer.lease, expires_at=NOW + 77)
        writer.store.release("t", writer.lease.token)
        assert writer.store.lease("t") is None
        with pytest.raises(ThreadBusy, match="nobody"):
            writer.store.renew("t", writer.lease.token, NOW + 99)

    def test_goes_with_the_commit_that_gives_it_back_or_stays_with_a_refused_one(
        self, writer: Writer
    ) -> None:
        last = msgspec.structs.replace(writer.commit_of({"messages": "bye"}), gives_back=True)
        with pytest.raises(StaleWriter):
            writer.store.commit("t", msgspec.structs.replace(last, expected_version=7))
        assert writer.store.lease("t") == writer.lease
        writer.store.commit("t", last)
        assert (writer.store.lease("t"), writer.cursor.head) == (None, 0)
        with pytest.raises(ThreadBusy, match="nobody"):
            writer.store.commit("t", writer.commit_of({}))

    def test_carries_what_is_asked_of_its_holder(self, writer: Writer) -> None:
        assert writer.store.pause_request("t") is None
        for request in (
            PauseRequest("ann", "look\x1b[2J", NOW),
            PauseRequest(None, None, NOW + 1, at_once=True),
            None,
            None,
        ):
            writer.store.request_pause("t", request)
            assert writer.store.pause_request("t") == request
        assert writer.store.pause_request("none") is None
        with pytest.raises(UnknownThread):
            writer.store.request_pause("none", PauseRequest("ann", None, NOW))

    def test_needs_a_thread_that_exists(self, store: Checkpointer) -> None:
        with pytest.raises(UnknownThread):
            store.acquire("none", store.new_lease(NOW), NOW)
