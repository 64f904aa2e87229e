"""What every store must do; a new kind of store joins by one word in conftest."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hitl_tui.engine.log.outcomes import (
    BranchOutcome,
    BranchState,
    ChildLink,
    ErrorInfo,
    KeptAnswer,
    PassedGate,
)
from hitl_tui.engine.log.records import Cursor, Limits
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.taint import Lineage, Taint
from hitl_tui.engine.log.threads import Owner
from hitl_tui.engine.thread.call_log import CALL
from hitl_tui.errors import StaleWriter, ThreadBusy, UnknownThread
from hitl_tui.stores import Checkpointer
from tests.stores.log_writer import MODEL_USE, NOW, Writer, entry, info
from tests.support.spec import spec

pytestmark = spec("10")


def steps(points: list[Any]) -> list[int]:
    return [point.step for point in points]


class TestCommit:
    def test_reads_back_what_was_written(self, writer: Writer) -> None:
        commit = writer.step({"messages": {"a": [1, None, 1.5]}, "plan": None}, snapshot=b"\x00state")
        store = writer.store
        assert tuple(store.records("t", 0, 0)) == commit.records
        assert store.checkpoint("t", 0) == commit.checkpoint
        assert store.cursor("t") == commit.cursor
        assert store.snapshot("t", 0) == (0, b"\x00state")
        assert store.info("t") == info("t")

    def test_keeps_every_field_of_a_record(self, writer: Writer) -> None:
        changes = {
            "node": "scan",
            "path": "scan[2]",
            "attempt": 3,
            "op": "set",
            "reducer": "my_pkg:best",
            "visibility": "private",
            "source": "rollback",
            "tainted": True,
            "lineage": Lineage(4, "scan", ("web", "a\x00b"), ("plan",), cleared=True),
            "actor": "Zoë",
            "note": "why\x00not",
            "result": {"deep": [[]]},
        }
        record = writer.record("plan", "x", **changes)
        commit = msgspec.structs.replace(writer.commit_of({"plan": "x"}), records=(record,))
        writer.store.commit("t", commit)
        assert list(writer.store.records("t", 0, 0)) == [record]

    def test_keeps_where_a_record_came_from(self, writer: Writer) -> None:
        sources = ["input", "node", "map", "subgraph", "human", "fork", "rollback"]
        commit = writer.commit_of(dict.fromkeys(sources, "x"))
        records = tuple(
            msgspec.structs.replace(record, source=source)
            for record, source in zip(commit.records, sources, strict=True)
        )
        writer.store.commit("t", msgspec.structs.replace(commit, records=records))
        assert [found.source for found in writer.store.records("t", 0, 0)] == sources

    def test_keeps_every_field_of_a_checkpoint(self, writer: Writer) -> None:
        changes = {
            "parent_thread": "elsewhere",
            "parent_step": 7,
            "source": "human",
            "node": "n",
            "position": "route:n",
            "status": "waiting",
            "reason": "approval",
            "invocation": 2,
            "iteration": 9,
            "attempt": 4,
            "duration": 2**40,
            "tokens_in": 11,
            "tokens_out": 12,
            "cost": None,
            "actor": "ann",
            "note": "fine",
            "decision": "accept",
            "text": "a long\ntext",
            "uses": (MODEL_USE, MODEL_USE),
            "branches": (
                BranchOutcome("n[0]", "n", 0, "failed", ErrorInfo("n", 2, "T", "M", "H"), 2, 2**40),
                BranchOutcome("g/b", "b", 1, "ok", None, 1, 7, ("plan",), "t/b#1"),
            ),
            "tainted": (Taint("plan", 3, "scan", ("web", "Zoë")),),
            "read": ("plan.steps", "messages"),
        }
        commit = writer.step(point=changes)
        assert writer.store.checkpoint("t", 0) == commit.checkpoint

    def test_keeps_every_field_of_a_cursor(self, writer: Writer) -> None:
        commit = writer.step(
            reason="approval",
            invocation=3,
            answers=(KeptAnswer("sha256:01", {"ok": 2**70}, 4), KeptAnswer("sha256:02", None, 5, "k")),
            pending=(Request("r", "approve", "n", "after", 0, "Approve?", payload=[1], asked_at=NOW),),
            visits={"write": 2},
            cost=0.1 + 0.2,
            cost_known=False,
            passed=(PassedGate("n", "before", "sha256:04", "sha256:05", 7, "on_taint"),),
            limits=Limits(None, 5, 0.5, 1.25),
            goal={"g": [True]},
            error=ErrorInfo("n", 2, "T", "M", "H", "D", "draft"),
            log_bytes=2**40,
            branches=(
                BranchState("n[0]", "sha256:00", answers=(KeptAnswer("sha256:03", {"a": [1.5]}, 6),)),
                BranchState(
                    "n[1]",
                    outcome=BranchOutcome("n[1]", "n", 1, "ok"),
                    updates=(("plan", {"deep": [[2**70]]}, ""),),
                    child=ChildLink("t/n#1", 1, 2, 0.5, cost_known=False),
                ),
            ),
        )
        assert writer.cursor == commit.cursor

    def test_keeps_whom_the_thread_of_a_subgraph_runs_for(self, writer: Writer) -> None:
        child = msgspec.structs.replace(info("t/team#1"), owner=Owner("t", "team"))
        writer.store.create_thread(child, Cursor("t/team#1"))
        assert writer.store.info("t/team#1") == child
        assert [one.info.owner for one in writer.store.threads("team")] == [Owner("t", "team")]

    def test_keeps_a_null_update_apart_from_no_result(self, writer: Writer) -> None:
        bare, null = writer.record("a", None), writer.record("b", None, 1, result=None)
        commit = msgspec.structs.replace(writer.commit_of({"a": None, "b": None}), records=(bare, null))
        writer.store.commit("t", commit)
        assert [found.result for found in writer.store.records("t", 0, 0)] == [msgspec.UNSET, None]

    def test_takes_a_commit_of_decisions_alone(self, writer: Writer) -> None:
        writer.step()
        made = entry(writer.cursor)
        cursor = msgspec.structs.replace(writer.cursor, version=2, ledger_n=1, ledger_hash=made.hash)
        commit = msgspec.structs.replace(
            writer.commit_of({}), cursor=cursor, checkpoint=None, ledger=(made,), records=()
        )
        writer.store.commit("t", commit)
        login = writer.store.login
        assert writer.store.ledger("t") == [msgspec.structs.replace(made, login=login)]
        assert (writer.cursor.version, writer.cursor.head) == (2, 0)

    def test_gives_decisions_whole_where_the_data_of_calls_may_be_left_out(self, writer: Writer) -> None:
        call = entry(writer.cursor, CALL, data={"value": "long"})
        writer.step(ledger=(call,))
        made = entry(writer.cursor, prev_hash=call.hash)
        writer.step(ledger=(made,))
        whole, short = (writer.store.ledger("t", call_data=each) for each in (True, False))
        assert [each.data for each in whole] == [call.data, made.data]
        assert short[1] == whole[1]
        assert short[0] in (whole[0], msgspec.structs.replace(whole[0], data=None))

    def test_refuses_a_stale_writer_and_stores_nothing(self, writer: Writer) -> None:
        late = writer.commit_of({"messages": "late"}, snapshot=b"late", ledger=(entry(writer.cursor),))
        first = writer.step()
        with pytest.raises(StaleWriter, match="version 1, not 0"):
            writer.store.commit("t", late)
        assert writer.cursor == first.cursor
        assert tuple(writer.store.records("t", 0, 9)) == first.records
        assert steps(writer.store.checkpoints("t", None, 9)) == [0]
        assert writer.store.snapshot("t", 9) is None
        assert writer.store.ledger("t") == []

    def test_refuses_a_writer_that_is_ahead_of_a_store_put_back_from_a_copy(self, writer: Writer) -> None:
        writer.step()
        commit = writer.commit_of({"messages": "ahead"})
        with pytest.raises(StaleWriter, match="version 1, not 2"):
            writer.store.commit("t", msgspec.structs.replace(commit, expected_version=2))
        assert writer.cursor.version == 1

    def test_refuses_a_writer_without_the_lease(self, writer: Writer) -> None:
        commit = msgspec.structs.replace(writer.commit_of({"messages": 1}), lease_token="another")
        with pytest.raises(ThreadBusy, match="now run by"):
            writer.store.commit("t", commit)
        writer.store.release("t", writer.lease.token)
        with pytest.raises(ThreadBusy, match="nobody"):
            writer.store.commit("t", writer.commit_of({"messages": 1}))
        assert writer.cursor.version == 0
        assert list(writer.store.records("t", 0, 9)) == []

    def test_takes_a_thread_with_what_is_written_where_nobody_holds_it(self, writer: Writer) -> None:
        store, lease = writer.store, writer.store.new_lease(NOW)
        taking = msgspec.structs.replace(
            writer.commit_of({"messages": 1}), lease_token=lease.token, takes=lease, checkpoint=None
        )
        with pytest.raises(ThreadBusy, match="now run by"):
            store.commit("t", taking)
        assert (store.cursor("t"), store.lease("t")) == (writer.cursor, writer.lease)
        store.release("t", writer.lease.token)
        with pytest.raises(StaleWriter, match="version 0, not 3"):
            store.commit("t", msgspec.structs.replace(taking, expected_version=3))
        assert store.lease("t") is None
        store.commit("t", taking)
        assert (store.cursor("t"), store.lease("t")) == (taking.cursor, lease)

    def test_a_commit_that_releases_the_thread_returns_the_new_change_stamp(self, writer: Writer) -> None:
        assert writer.store.commit("t", writer.commit_of({"messages": 1})) is None
        last = msgspec.structs.replace(writer.commit_of({"messages": 2}), gives_back=True)
        stamp = writer.store.commit("t", last)
        assert stamp == writer.store.stamp("t")
        assert writer.store.lease("t") is None
        writer.store.acquire("t", writer.lease, NOW)
        writer.step()
        assert stamp is None or stamp != writer.store.stamp("t")

    def test_refuses_an_unknown_thread(self, writer: Writer) -> None:
        with pytest.raises(UnknownThread, match="'other'"):
            writer.store.commit("other", writer.commit_of({}))

    def test_lets_one_of_many_threads_of_a_process_win_each_version(self, writer: Writer) -> None:
        together = threading.Barrier(4)
        outcomes: list[str] = []
        commits = [writer.commit_of({"messages": n}) for n in range(4)]

        def race(n: int) -> None:
            together.wait()
            try:
                writer.store.commit("t", commits[n])
                outcomes.append("won")
            except StaleWriter:
                outcomes.append("stale")

        racers = [threading.Thread(target=race, args=(n,)) for n in range(4)]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
        assert sorted(outcomes) == ["stale"] * 3 + ["won"]
        assert len(list(writer.store.records("t", 0, 9))) == 1


class TestValues:
    def test_a_number_keeps_value_and_type(self, writer: Writer) -> None:
        numbers = [
            2**63,
            -(2**63) - 1,
            2**64,
            10**400,
            1.0,
            1,
            True,
            1e16,
            5e-324,
            1.7976931348623157e308,
            0.1 + 0.2,
        ]
        writer.step({"n": numbers})
        (found,) = writer.store.records("t", 0, 0)
        assert found.update == numbers
        assert [type(number) for number in found.update] == [type(number) for number in numbers]

    json = st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )

    @given(value=json)
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @pytest.mark.slow
    def test_any_json_comes_back_as_it_went_in(self, writer: Writer, value: Any) -> None:
        made = entry(writer.cursor, data=value)
        step = writer.step({"any": value}, ledger=(made,), goal=value).cursor.head
        (found,) = writer.store.records("t", step, step)
        assert repr(found.update) == repr(value)
        assert repr(writer.store.ledger("t")[-1].data) == repr(value)
        assert repr(writer.cursor.goal) == repr(value)


class TestReading:
    def test_pages_checkpoints_newest_first(self, writer: Writer) -> None:
        for _ in range(7):
            writer.step()
        store = writer.store
        assert steps(store.checkpoints("t", None, 3)) == [6, 5, 4]
        assert steps(store.checkpoints("t", 4, 3)) == [3, 2, 1]
        assert steps(store.checkpoints("t", 1, 3)) == [0]
        assert store.checkpoints("t", 0, 3) == []
        assert store.checkpoints("t", None, 0) == []
        assert steps(store.checkpoints("t", 2**40, 1)) == [6]

    def test_gives_the_records_of_a_range_of_steps(self, writer: Writer) -> None:
        for step in range(5):
            writer.step({"a": step, "b": step} if step % 2 else {})
        found = writer.store.records("t", 1, 3)
        assert [(record.step, record.seq) for record in found] == [(1, 1), (1, 2), (3, 3), (3, 4)]
        assert list(writer.store.records("t", 2, 2)) == []
        assert list(writer.store.records("t", 5, 2**40)) == []

    def test_chains_records_over_a_long_range(self, writer: Writer) -> None:
        for _ in range(60):
            writer.step({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5})
        found = list(writer.store.records("t", 3, 58))
        assert [record.seq for record in found] == list(range(16, 296))
        assert all(b.prev_record_hash == a.record_hash for a, b in pairwise(found))
        (before,) = [record for record in writer.store.records("t", 2, 2) if record.seq == 15]
        assert found[0].prev_record_hash == before.record_hash

    def test_finds_the_newest_snapshot_at_or_before_a_step(self, writer: Writer) -> None:
        for step in range(5):
            writer.step(snapshot=b"%d" % step if step in (1, 3) else None)
        assert [writer.store.snapshot("t", step) for step in range(5)] == [
            None,
            (1, b"1"),
            (1, b"1"),
            (3, b"3"),
            (3, b"3"),
        ]

    def test_sums_up_what_the_steps_took(self, writer: Writer) -> None:
        for node in ("", "write", "check", "write"):
            writer.step(point={"node": node, "source": "node" if node else "input"})
        totals = writer.store.totals("t", 2)
        assert totals.visits == {"write": 1, "check": 1}
        assert (totals.tokens_in, totals.tokens_out, totals.active) == (30, 15, 300)
        assert (totals.cost, totals.cost_known) == (0.75, True)

    def test_says_when_a_price_is_unknown(self, writer: Writer) -> None:
        writer.step()
        writer.step(point={"cost": None})
        assert writer.store.totals("t", 0).cost_known
        totals = writer.store.totals("t", 1)
        assert (totals.cost, totals.cost_known) == (0.25, False)

    @pytest.mark.slow
    def test_sums_up_a_long_thread_at_any_step(self, writer: Writer) -> None:
        for _ in range(560):
            writer.step({})
        fork = writer.fork(540, "f")
        for _ in range(60):
            fork.step({})
        for thread, step in (("t", 0), ("t", 511), ("t", 512), ("t", 559), ("f", 600)):
            totals = writer.store.totals(thread, step)
            assert (totals.visits.get("write", 0), totals.tokens_in) == (step, 10 * (step + 1))

    def test_knows_nothing_of_an_unknown_thread(self, store: Checkpointer) -> None:
        for name in ("none", "a\x00b", "\ud800"):
            assert store.info(name) is None
            assert store.cursor(name) is None
            assert store.lease(name) is None
            assert store.summary(name) is None
            assert store.checkpoint(name, 0) is None
            assert store.checkpoints(name, None, 5) == []
            assert list(store.records(name, 0, 5)) == []
            assert store.snapshot(name, 5) is None
            assert store.ledger(name) == []
            assert store.children(name) == []
            assert store.totals(name, 5).visits == {}
