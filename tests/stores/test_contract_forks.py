"""What every store must do with forks: threads that share the log of another one up to a step."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hitl_tui.engine.log.records import Cursor, Effect
from hitl_tui.engine.thread.hashes import chained
from hitl_tui.errors import UnknownThread
from hitl_tui.stores import Checkpointer
from tests.stores.log_writer import Writer, digest, entry, info
from tests.support.spec import spec

pytestmark = spec("11")

GENERATIONS = 60
"""How many forks of forks the store reads through."""


def steps(points: list[Any]) -> list[int]:
    return [point.step for point in points]


class TestFork:
    def test_shares_the_log_of_its_parent_up_to_the_fork(self, writer: Writer) -> None:
        for step in range(4):
            writer.step({"messages": step}, snapshot=b"%d" % step)
        fork = writer.fork(1, "f")
        store = writer.store
        assert steps(store.checkpoints("f", None, 9)) == [1, 0]
        assert list(store.records("f", 0, 9)) == list(store.records("t", 0, 1))
        assert store.snapshot("f", 3) == (1, b"1")
        assert store.checkpoint("f", 2) is None

        own = fork.step({"messages": "mine"})
        assert own.records[0].seq == 3
        assert [record.update for record in store.records("f", 0, 9)] == [0, 1, "mine"]
        assert [record.thread_id for record in store.records("f", 1, 2)] == ["t", "f"]
        assert store.checkpoint("f", 2) == own.checkpoint
        assert [record.update for record in store.records("t", 0, 9)] == [0, 1, 2, 3]

    def test_chains_its_first_record_to_its_parents_last_shared_one(self, writer: Writer) -> None:
        shared = writer.step({"a": 1, "b": 2})
        writer.step()
        own = writer.fork(0, "f").step({"a": 3})
        assert list(writer.store.records("f", 1, 1)) == list(own.records)
        assert own.records[0].prev_record_hash == chained(
            shared.records[-1].record_hash, digest("facts", "f")
        )

    def test_effects_of_records_equal_the_records(self, writer: Writer) -> None:
        writer.step({"a": 1, "b": None})
        changes: list[dict[str, Any]] = [
            {"op": "set"},
            {"result": None},
            {"result": [1], "reducer": "m:best"},
        ]
        records = tuple(writer.record("a", "x", seq, **facts) for seq, facts in enumerate(changes))
        commit = msgspec.structs.replace(writer.commit_of({"a": 1, "b": 2, "c": 3}), records=records)
        writer.store.commit("t", commit)
        writer.fork(1, "f").step({"c": {"deep": []}})
        for first, last in ((0, 2), (1, 1), (2, 9), (3, 3)):
            found = list(writer.store.effects("f", first, last))
            assert found == [Effect.of(record) for record in writer.store.records("f", first, last)]
        assert len(list(writer.store.effects("f", 0, 2))) == 6

    def test_pages_checkpoints_across_the_seam(self, writer: Writer) -> None:
        for _ in range(4):
            writer.step()
        fork = writer.fork(2, "f")
        fork.step()
        fork.step()
        found = writer.store.checkpoints("f", None, 4)
        assert [(point.thread_id, point.step) for point in found] == [("f", 4), ("f", 3), ("t", 2), ("t", 1)]
        assert steps(writer.store.checkpoints("f", 3, 2)) == [2, 1]

    def test_can_be_forked_at_a_step_it_shares(self, writer: Writer) -> None:
        for step in range(4):
            writer.step({"messages": step})
        fork = writer.fork(3, "f")
        fork.step({"messages": "f"})
        second = fork.fork(1, "g")
        second.step({"messages": "g"})
        assert [record.update for record in writer.store.records("g", 0, 9)] == [0, 1, "g"]
        assert steps(writer.store.checkpoints("g", None, 9)) == [2, 1, 0]

    def test_reads_through_many_generations(self, writer: Writer) -> None:
        writer.step({"messages": 0})
        for generation in range(1, GENERATIONS):
            writer = writer.fork(generation - 1, f"f{generation}")
            writer.step({"messages": generation})
        found = writer.store.records(f"f{GENERATIONS - 1}", 0, 999)
        assert [record.update for record in found] == list(range(GENERATIONS))

    def test_shares_the_decisions_made_before_it(self, writer: Writer) -> None:
        for _ in range(3):
            writer.step(ledger=(entry(writer.cursor),))
        fork = writer.fork(1, "f")
        fork.step(ledger=(entry(fork.cursor, note="mine"),))
        parents = writer.store.ledger("t")
        found = writer.store.ledger("f")
        assert found[:2] == parents[:2]
        assert [(made.thread_id, made.n, made.note) for made in found[2:]] == [("f", 3, "mine")]
        assert found[2].prev_hash == chained(parents[1].hash, digest("facts", "f"))
        assert len(parents) == 3

    def test_is_listed_among_the_children_of_its_parent(self, writer: Writer) -> None:
        writer.step()
        writer.fork(0, "b")
        writer.fork(0, "a")
        assert [child.thread_id for child in writer.store.children("t")] == ["b", "a"]
        assert writer.store.children("a") == []
        found = writer.store.info("a")
        assert found is not None
        assert (found.parent, found.fork_step, found.fork_seq) == ("t", 0, 1)

    def test_needs_a_parent_that_exists(self, store: Checkpointer) -> None:
        with pytest.raises(UnknownThread):
            store.create_thread(info("f", parent="none", fork_step=0), Cursor("f"))
        assert store.info("f") is None
