"""Saving a state without a graph, on any store: save, load_latest, load_step, list_threads."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import END, START, Channel, StateGraph
from hitl_tui.engine.audit.verify import verify
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.state.canonical import channel_hash, state_hash
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import StaleWriter, ThreadBusy, UsageError, ValueRejected
from hitl_tui.stores import Checkpointer
from tests.stores.log_writer import Writer
from tests.support.spec import spec

pytestmark = spec("10")


def set_channels(store: Checkpointer, step: int) -> list[tuple[str, str, Any]]:
    return [(record.op, record.channel, record.update) for record in store.records("t", step, step)]


def test_what_is_saved_is_loaded(store: Checkpointer) -> None:
    store.save("t", 1, {"draft": "a", "notes": [1, {"x": None}]})
    store.save("t", 2, {"draft": "b", "notes": [1, {"x": None}]})
    assert store.load_latest("t") == (2, {"draft": "b", "notes": [1, {"x": None}]})
    assert store.load_step("t", 1) == {"draft": "a", "notes": [1, {"x": None}]}
    assert store.load_step("t", 0) == {}
    assert store.list_threads() == ["t"]


def test_nothing_is_loaded_where_nothing_was_saved(store: Checkpointer) -> None:
    assert store.load_latest("t") is None
    assert store.load_step("t", 0) is None
    Writer(store)
    assert store.load_latest("t") is None
    store.save("u", 0, {})
    assert store.load_step("u", 1) is None
    assert store.load_step("u", -1) is None


def test_only_what_differs_is_written(store: Checkpointer) -> None:
    store.save("t", 0, {"a": 1, "b": None, "c": [1]})
    store.save("t", 1, {"a": 1.0, "b": None, "c": [1, 2]})
    assert set_channels(store, 0) == [("set", "a", 1), ("set", "b", None), ("set", "c", [1])]
    assert set_channels(store, 1) == [("set", "c", [1, 2])]


def test_the_chains_of_the_log_hold(store: Checkpointer) -> None:
    store.save("t", 0, {"a": 1, "b": [1]})
    store.save("t", 1, {"a": 2, "b": [1]})
    first, second, third = store.records("t", 0, 9)
    assert (third.previous_hash, third.next_hash) == (first.next_hash, channel_hash(2))
    assert [second.prev_record_hash, third.prev_record_hash] == [first.record_hash, second.record_hash]
    point = store.checkpoint("t", 1)
    assert point is not None
    assert point.state_hash == state_hash({"a": channel_hash(2), "b": channel_hash([1])})
    assert (point.parent_thread, point.parent_step) == ("t", 0)


def test_a_channel_left_out_keeps_its_value(store: Checkpointer) -> None:
    store.save("t", 0, {"a": 1, "b": 2})
    store.save("t", 1, {"b": 3})
    assert store.load_latest("t") == (1, {"a": 1, "b": 3})


def test_a_step_is_saved_once(store: Checkpointer) -> None:
    store.save("t", 0, {"a": 1})
    store.save("t", 1, {"a": 2})
    store.save("t", 0, {"a": 1})
    with pytest.raises(StaleWriter, match="a step 0 already"):
        store.save("t", 0, {"a": 5})
    assert store.load_latest("t") == (1, {"a": 2})


@pytest.mark.parametrize("step", [2, 7])
def test_a_gap_is_refused(store: Checkpointer, step: int) -> None:
    with pytest.raises(UsageError, match="does not follow"):
        store.save("t", step, {})
    assert store.info("t") is None


def test_a_value_that_is_not_json_is_refused(store: Checkpointer) -> None:
    store.save("t", 0, {"a": 1})
    with pytest.raises(ValueRejected):
        store.save("t", 1, {"a": object()})
    assert store.load_latest("t") == (0, {"a": 1})
    store.save("t", 1, {"a": 2})
    with pytest.raises(ValueRejected):
        store.save("new", 0, {"a": object()})
    assert store.info("new") is None


def test_a_thread_that_is_held_or_running_is_refused(store: Checkpointer) -> None:
    writer = Writer(store)
    writer.step({"a": 1}, status="waiting")
    with pytest.raises(ThreadBusy, match="already running in this process"):
        store.save("t", 1, {"a": [2]})
    writer.step({"a": 2}, status="running")
    store.release("t", writer.lease.token)
    with pytest.raises(ThreadBusy, match="middle of a run"):
        store.save("t", 2, {"a": [3]})


def with_secret(store: Checkpointer) -> GraphRunner:
    channels = {"secret": Channel("", visibility="private"), "open": Channel(0)}
    graph = StateGraph(channels).add_node("work", lambda state, config: {"secret": "x"})
    return graph.add_edge(START, "work").add_edge("work", END).compile(checkpointer=store)


def visibilities(store: Checkpointer, step: int) -> dict[str, str]:
    return {record.channel: record.visibility for record in store.records("t", step, step)}


def test_a_private_channel_stays_private(store: Checkpointer) -> None:
    head = with_secret(store).invoke({}, thread_id="t").step
    store.save("t", head + 1, {"secret": "y", "open": 1})
    assert visibilities(store, head + 1) == {"secret": "private", "open": "public"}


def test_a_saved_thread_continued_by_a_graph_keeps_that_graph_and_its_secrets(
    store: Checkpointer,
) -> None:
    store.save("t", 0, {"secret": "", "open": 0})
    runner = with_secret(store)
    runner.update_state("t", {"secret": "edited"})
    assert runner.run_info("t").graph_digest == ""
    head = runner.invoke({"open": 2}, thread_id="t").step
    store.save("t", head + 1, {"secret": "y"})
    assert visibilities(store, 1) == visibilities(store, head + 1) == {"secret": "private"}
    session = Session.recorded(store, "t")
    assert session.graph.digest == runner.graph.digest
    assert session.graph.channels["secret"].visibility == "private"
    entries = [entry.data for entry in store.ledger("t") if entry.kind == "graph"]
    assert entries == [{"was": "", "is": runner.graph.digest}]
    assert verify(store, "t").ok


def test_looking_at_a_saved_thread_reads_no_record_before_its_snapshot(store: Checkpointer) -> None:
    for step in range(5):
        store.save("t", step, {"a": f"{step}" * 20_000, "n": step})  # each is worth a snapshot
    read: list[Any] = []
    for name in ("records", "effects"):
        method = getattr(store, name)
        setattr(store, name, lambda *at, method=method: (read.append(at), method(*at))[1])
    assert Session.recorded(store, "t").state.values["n"] == 4
    assert all(first >= 4 for _, first, *_ in read), read


def test_a_long_thread_is_saved_in_proportion(store: Checkpointer) -> None:
    for step in range(60):
        store.save("t", step, {"big": "x" * 2000, "n": step})
    assert [len(set_channels(store, step)) for step in (0, 1, 59)] == [2, 1, 1]
    assert store.load_step("t", 42) == {"big": "x" * 2000, "n": 42}


def test_a_fork_is_saved_on_its_own(store: Checkpointer) -> None:
    store.save("t", 0, {"a": 1})
    store.save("t", 1, {"a": 2})
    writer = object.__new__(Writer)
    writer.store, writer.thread_id = store, "t"
    fork = writer.fork(0, "f")
    store.release("f", fork.lease.token)
    store.save("f", 1, {"a": 3})
    assert store.load_latest("f") == (1, {"a": 3})
    assert store.load_latest("t") == (1, {"a": 2})
    point = store.checkpoint("f", 1)
    assert point is not None
    assert (point.parent_thread, point.parent_step) == ("t", 0)
