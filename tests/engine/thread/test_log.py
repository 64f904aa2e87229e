"""Update records, checkpoints and their hash chains, recomputed here from their definition."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise
from typing import Any

import msgspec
import pytest
import rfc8785

from hitl_tui import Channel, StaleWriter
from hitl_tui.engine.log.records import Commit, UpdateRecord
from hitl_tui.engine.log.taint import Lineage
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.thread.hashes import chained, ledger_hash, record_hash
from hitl_tui.stores import Checkpointer
from tests.engine.building import chain, returning
from tests.support.spec import spec

pytestmark = spec("10")

CHANNELS = {
    "messages": Channel([], reducer="append"),
    "findings": Channel(["old"], reducer="extend"),
    "recent": Channel([], reducer="last_n(2)"),
    "tags": Channel([], reducer="set_union"),
    "score": Channel(0.5, reducer="sum"),
    "plan": Channel({"a": 1}, reducer="merge"),
    "longest": Channel("", reducer=lambda old, new: max(old, new, key=len)),
    "draft": Channel(None),
    "key": Channel("", visibility="private"),
}
NODES: list[dict[str, Any]] = [
    {"messages": "one", "findings": ["a", "b"], "recent": 1, "tags": "x", "score": 1, "draft": ["v1"]},
    {
        "messages": ["two"],
        "findings": [],
        "recent": 2,
        "tags": ["x", "y"],
        "plan": {"b": [1.0]},
        "longest": "abc",
    },
    {},
    {"recent": 3, "tags": "y", "score": 0, "draft": None, "longest": "a", "key": "secret", "messages": None},
]


def item(value: Any) -> bytes:
    return sha256(rfc8785.dumps(value)).digest()


def hash_of(value: Any) -> bytes:
    """Hash of a channel's value, computed as docs/spec/values.md says."""
    if not isinstance(value, list):
        return item(value)
    digest = sha256(b"list").digest()
    for one in value:
        digest = sha256(digest + item(one)).digest()
    return digest


def state_hash_of(state: dict[str, Any]) -> bytes:
    return item({name: f"sha256:{hash_of(value).hex()}" for name, value in state.items()})


@pytest.fixture
def runner(store: Checkpointer) -> GraphRunner:
    """A thread "t": input, four nodes, and a human's edit between the second and the third."""
    made = chain(CHANNELS, *map(returning, NODES), name="review").compile(checkpointer=store)
    made.step({"messages": ["task", "more"], "score": 2}, thread_id="t")
    made.step(thread_id="t")
    made.update_state("t", {"findings": ["mine"], "draft": {"v": 2}}, actor="ann", note="better")
    made.invoke(thread_id="t")
    return made


@pytest.fixture
def log(runner: GraphRunner, store: Checkpointer) -> list[UpdateRecord]:
    return list(store.records("t", 0, 99))


def test_seq_runs_from_1_without_gaps(log: list[UpdateRecord]) -> None:
    assert [record.seq for record in log] == list(range(1, len(log) + 1))
    assert len(log) == 3 + sum(map(len, NODES)) + 2


def test_each_record_names_the_one_before_it(store: Checkpointer, log: list[UpdateRecord]) -> None:
    info = store.info("t")
    assert info is not None
    assert log[0].prev_record_hash == chained(b"", info.facts_hash)
    for before, record in pairwise(log):
        assert record.prev_record_hash == before.record_hash
    assert len({record.record_hash for record in log}) == len(log)


def test_each_record_is_sealed_by_its_hash(log: list[UpdateRecord]) -> None:
    for record in log:
        assert len(record.record_hash) == 32
        assert record_hash(record) == record.record_hash


TAMPERED: dict[str, Any] = {
    "thread_id": "other",
    "seq": 77,
    "step": 77,
    "invocation": 77,
    "node": "other",
    "path": "scan[1]",
    "attempt": 77,
    "channel": "other",
    "op": "set",
    "reducer": "other",
    "visibility": "private",
    "source": "rollback",
    "previous_hash": b"x" * 32,
    "update_hash": b"x" * 32,
    "next_hash": b"x" * 32,
    "tainted": True,
    "lineage": Lineage(1, "n2", ("web",), ("plan",)),
    "actor": "mallory",
    "made_by": "policy",
    "note": "nothing to see",
    "at": 77,
    "prev_record_hash": b"x" * 32,
    "patched": ("update",),
}


@pytest.mark.parametrize("field", TAMPERED)
def test_a_changed_field_breaks_the_seal(field: str, log: list[UpdateRecord]) -> None:
    changed = msgspec.structs.replace(log[1], **{field: TAMPERED[field]})
    assert changed != log[1]
    assert record_hash(changed) != log[1].record_hash


def test_the_seal_covers_every_field_that_is_not_hashed_itself() -> None:
    hashed = {"update", "result", "record_hash"}
    assert set(UpdateRecord.__struct_fields__) - hashed == set(TAMPERED)


def test_the_hashes_of_each_channel_chain_from_its_default(log: list[UpdateRecord]) -> None:
    current = {name: hash_of(channel.default) for name, channel in CHANNELS.items()}
    for record in log:
        assert record.previous_hash == current[record.channel], record
        current[record.channel] = record.next_hash


def test_update_hash_and_next_hash_are_of_the_update_and_of_the_value_it_made(
    log: list[UpdateRecord], runner: GraphRunner
) -> None:
    last_of_step = {(record.step, record.channel): record for record in log}
    for record in log:
        assert record.update_hash == item(record.update)
    for (step, channel), record in last_of_step.items():
        assert record.next_hash == hash_of(runner.get_state("t", step)[channel])


def test_the_state_hash_of_each_checkpoint_is_of_the_state_at_that_step(
    runner: GraphRunner,
) -> None:
    for checkpoint in runner.history("t"):
        assert checkpoint.state_hash == state_hash_of(runner.get_state("t", checkpoint.step))


def test_no_ops_are_recorded(log: list[UpdateRecord]) -> None:
    same = {(record.step, record.channel) for record in log if record.previous_hash == record.next_hash}
    assert same == {(2, "findings"), (5, "tags"), (5, "score"), (5, "longest")}


def test_fields_of_a_node_s_record(log: list[UpdateRecord]) -> None:
    record = next(record for record in log if record.step == 1 and record.channel == "findings")
    assert (record.thread_id, record.invocation, record.node, record.path, record.attempt) == (
        "t",
        1,
        "n1",
        "",
        1,
    )
    assert (record.op, record.reducer, record.visibility, record.source) == (
        "reduce",
        "extend",
        "public",
        "node",
    )
    assert (record.update, record.tainted, record.actor, record.note) == (["a", "b"], False, None, None)
    assert record.at > 1_700_000_000_000_000


def test_fields_of_an_input_s_record(log: list[UpdateRecord]) -> None:
    inputs = [record for record in log if record.step == 0]
    assert [(r.channel, r.update, r.op, r.source, r.node) for r in inputs] == [
        ("messages", "task", "reduce", "input", ""),
        ("messages", "more", "reduce", "input", ""),
        ("score", 2, "reduce", "input", ""),
    ]


def test_fields_of_a_human_s_record(log: list[UpdateRecord]) -> None:
    edits = [record for record in log if record.source == "human"]
    assert [(r.step, r.channel, r.op, r.update) for r in edits] == [
        (3, "draft", "set", {"v": 2}),
        (3, "findings", "set", ["mine"]),
    ]
    assert {(record.actor, record.note, record.node) for record in edits} == {("ann", "better", "")}


def test_a_private_record_says_so(log: list[UpdateRecord]) -> None:
    assert [record.channel for record in log if record.visibility == "private"] == ["key"]


def test_the_result_is_stored_for_custom_reducers_only(log: list[UpdateRecord]) -> None:
    results = {(r.step, r.channel): r.result for r in log if r.result is not msgspec.UNSET}
    assert results == {(2, "longest"): "abc", (5, "longest"): "abc"}


class TestCheckpoints:
    def test_one_for_each_step_from_0(self, runner: GraphRunner) -> None:
        points = runner.history("t")[::-1]
        assert [point.step for point in points] == [0, 1, 2, 3, 4, 5]
        assert [(point.source, point.node) for point in points] == [
            ("input", ""),
            ("node", "n1"),
            ("node", "n2"),
            ("human", ""),
            ("node", "n3"),
            ("node", "n4"),
        ]

    def test_names_its_parent(self, runner: GraphRunner) -> None:
        points = runner.history("t")[::-1]
        parents = [(point.parent_thread, point.parent_step) for point in points]
        assert parents == [(None, -1), *(("t", step) for step in range(5))]

    def test_names_the_next_node(self, runner: GraphRunner) -> None:
        assert [point.next_node for point in runner.history("t")[::-1]] == [
            "n1",
            "n2",
            "n3",
            "n3",
            "n4",
            "END",
        ]

    def test_counts_iterations(self, runner: GraphRunner) -> None:
        assert [point.iteration for point in runner.history("t")[::-1]] == [0, 1, 2, 2, 3, 4]

    def test_has_the_status_after_it(self, runner: GraphRunner) -> None:
        points = runner.history("t")[::-1]
        assert (points[1].status, points[-1].status, points[-1].reason) == ("running", "completed", "end")

    def test_ranges_over_its_records(self, runner: GraphRunner, log: list[UpdateRecord]) -> None:
        for point in runner.history("t"):
            seqs = [record.seq for record in log if record.step == point.step]
            assert list(range(point.first_seq, point.last_seq + 1)) == seqs

    def test_has_a_duration_and_a_time(self, runner: GraphRunner) -> None:
        points = runner.history("t")[::-1]
        assert all(point.duration >= 0 for point in points)
        assert all(before.at <= after.at for before, after in pairwise(points))

    def test_of_a_human_s_edit_names_the_actor_and_the_note(self, runner: GraphRunner) -> None:
        point = runner.history("t")[2]
        assert (point.step, point.actor, point.note) == (3, "ann", "better")

    def test_history_is_newest_first_and_can_be_paged(self, runner: GraphRunner) -> None:
        assert [point.step for point in runner.history("t", limit=2)] == [5, 4]
        assert [point.step for point in runner.history("t", before=4, limit=2)] == [3, 2]


def test_the_decision_ledger_is_a_chain_of_its_own(runner: GraphRunner, store: Checkpointer) -> None:
    runner.fork("t", 5, "f")
    runner.update_state("t", {"draft": 1}, actor="bob")
    entries = store.ledger("t")
    assert [entry.n for entry in entries] == list(range(1, len(entries) + 1))
    for before, entry in pairwise(entries):
        assert entry.prev_hash == before.hash
    assert all(ledger_hash(entry) == entry.hash for entry in entries)
    edits = [(entry.actor, entry.note, entry.step) for entry in entries if entry.kind == "update_state"]
    assert edits == [("ann", "better", 3), ("bob", None, 6)]


def everything(store: Checkpointer) -> tuple[Any, ...]:
    return (
        list(store.records("t", 0, 99)),
        store.checkpoints("t", None, 99),
        store.cursor("t"),
        store.snapshot("t", 99),
        store.ledger("t"),
    )


class TestStaleWriter:
    """A writer whose expected head is stale gets `StaleWriter` and nothing of it is stored."""

    def test_of_a_commit(self, runner: GraphRunner, store: Checkpointer) -> None:
        session = runner.open("t")
        before = everything(store)
        with session.writing():
            old = session.cursor
            lease = session._lease
            assert lease is not None
            stale = Commit(
                cursor=msgspec.structs.replace(old, head=9, status="running"),
                expected_version=old.version - 1,
                lease_token=lease.token,
                records=before[0][-1:],
                checkpoint=msgspec.structs.replace(before[1][0], step=9),
                snapshot=b"snapshot",
                ledger=tuple(before[4][-1:]),
            )
            with pytest.raises(StaleWriter, match="nothing is stored"):
                store.commit("t", stale)
        assert everything(store) == before

    def test_of_an_edit_on_an_older_step(self, runner: GraphRunner, store: Checkpointer) -> None:
        before = everything(store)
        with pytest.raises(StaleWriter, match=r"at step 5.*made on 4"):
            runner.update_state("t", {"draft": "late"}, expected_step=4)
        assert everything(store) == before

    def test_an_edit_on_the_head_goes_through(self, runner: GraphRunner) -> None:
        assert runner.update_state("t", {"draft": "now"}, expected_step=5) == 6

    def test_a_session_that_fell_behind_loads_what_others_wrote_before_it_writes(
        self, runner: GraphRunner
    ) -> None:
        behind = runner.open("t")
        runner.update_state("t", {"draft": "theirs"})
        with behind.writing():
            assert behind.cursor.head == 6
            assert behind.state.values["draft"] == "theirs"
