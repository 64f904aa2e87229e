"""A step runs a node, checks and reduces its updates, commits, and decides the next node."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import Channel, HitlError, UsageError
from hitl_tui.engine.log.events import NodeStarted, StepCommitted
from hitl_tui.stores import Checkpointer
from tests.engine.building import chain, one_node, returning
from tests.support.spec import spec

pytestmark = [spec("5"), spec("6")]

ORDER = ["B", "Z", "a", "a-1", "a1", "aB", "a_1", "b"]  # by code points


def test_updates_of_one_node_are_reduced_in_channel_name_order(store: Checkpointer) -> None:
    names: list[str] = []

    def note(name: str) -> Any:
        return lambda old, new: names.append(name) or new

    channels = {name: Channel(0, reducer=note(name)) for name in reversed(ORDER)}
    update = dict.fromkeys(sorted(ORDER, key=str.lower), 1)
    chain(channels, returning(update)).compile(checkpointer=store).invoke(thread_id="t")
    assert names == ORDER
    assert [record.channel for record in store.records("t", 1, 1)] == ORDER


def test_a_step_is_emitted_with_its_updates_before_the_next_node_starts() -> None:
    seen: list[Any] = []
    channels = {"a": Channel(0, reducer="sum"), "b": Channel([], reducer="append")}
    runner = chain(channels, returning({"b": "x", "a": 2}), returning({"a": 3})).compile()
    runner.invoke({"a": 1}, on_event=seen.append)
    events = [event for event in seen if isinstance(event, (NodeStarted, StepCommitted))]
    kinds = [(type(event).__name__, getattr(event, "step", None)) for event in events]
    assert kinds == [
        ("StepCommitted", None),
        ("NodeStarted", 1),
        ("StepCommitted", None),
        ("NodeStarted", 2),
        ("StepCommitted", None),
    ]
    steps = [event for event in events if isinstance(event, StepCommitted)]
    assert [step.checkpoint.step for step in steps] == [0, 1, 2]
    lens = [(u.channel, u.reducer, u.before, u.update, u.after, u.changed) for u in steps[1].updates]
    assert lens == [("a", "sum", 1, 2, 3, True), ("b", "append", [], "x", ["x"], True)]


def test_step_0_is_the_input_and_goes_through_the_reducers(store: Checkpointer) -> None:
    channels = {"n": Channel(10, reducer="sum"), "log": Channel(["old"], reducer="append")}
    runner = chain(channels, returning(None)).compile(checkpointer=store)
    runner.invoke({"n": 5, "log": "new"}, thread_id="t")
    assert runner.get_state("t", 0) == {"n": 15, "log": ["old", "new"]}
    checkpoint = store.checkpoint("t", 0)
    assert checkpoint is not None
    assert (checkpoint.source, checkpoint.node, checkpoint.next_node) == ("input", "", "n1")


def test_a_run_without_input_has_a_step_0_too(store: Checkpointer) -> None:
    runner = chain({"n": Channel(1)}, returning(None)).compile(checkpointer=store)
    runner.invoke(thread_id="t")
    assert runner.get_state("t", 0) == {"n": 1}


@pytest.mark.parametrize(
    ("reducer", "value"), [("append", [1, [2]]), ("last_n(2)", [1, [2]]), ("extend", [1, [2]])]
)
def test_a_list_of_input_is_spliced_into_append_and_last_n(reducer: str, value: Any) -> None:
    runner = one_node({"c": Channel([], reducer=reducer)}, returning(None))
    assert runner.invoke({"c": [1, [2]]})["c"] == value


def test_a_list_of_a_node_is_not_spliced() -> None:
    assert one_node({"c": Channel([], reducer="append")}, returning({"c": [1]})).invoke()["c"] == [[1]]


def test_an_unknown_input_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="takes no input 'zap'") as caught:
        one_node({"c": Channel(1)}, returning(None)).invoke({"zap": 1})
    assert "c, goal, constraints" in caught.value.hint


def test_a_refused_input_leaves_no_step_and_the_thread_can_be_started_again(store: Checkpointer) -> None:
    runner = chain({"c": Channel(0, schema=int)}, returning(None)).compile(checkpointer=store)
    with pytest.raises(HitlError, match="channel 'c'"):
        runner.invoke({"c": "text"}, thread_id="t")
    assert store.checkpoint("t", 0) is None
    assert store.list_threads() == []
    assert runner.invoke({"c": 3}, thread_id="t")["c"] == 3


def test_a_thread_id_is_made_up_where_none_is_given(store: Checkpointer) -> None:
    runner = chain({"c": Channel(0)}, returning(None), name="review").compile(checkpointer=store)
    first, second = runner.invoke(), runner.invoke()
    assert first.thread_id != second.thread_id
    assert first.thread_id.startswith("review-")
    assert sorted(store.list_threads()) == sorted([first.thread_id, second.thread_id])


def test_threads_of_one_runner_do_not_meet(store: Checkpointer) -> None:
    runner = chain({"n": Channel(0, reducer="sum")}, returning({"n": 1})).compile(checkpointer=store)
    assert [runner.invoke({"n": 10}, thread_id="a")["n"], runner.invoke({"n": 20}, thread_id="b")["n"]] == [
        11,
        21,
    ]
    assert runner.get_state("a") == {"n": 11}


def test_the_output_is_the_value_of_the_output_channel() -> None:
    assert one_node({"output": Channel("")}, returning({"output": "x"})).invoke().output() == "x"


def test_without_an_output_channel_output_raises_with_a_hint() -> None:
    result = one_node({"c": Channel("")}, returning(None)).invoke()
    with pytest.raises(HitlError, match="no channel 'output'"):
        result.output()


def test_a_result_is_a_mapping_of_the_channels_that_refuses_changes() -> None:
    result = one_node({"c": Channel({"a": 1}), "d": Channel(2)}, returning(None)).invoke()
    assert dict(result) == {"c": {"a": 1}, "d": 2}
    assert dict(result.state) == dict(result)
    with pytest.raises(TypeError):
        result.state["c"] = 1  # type: ignore[index]
    with pytest.raises(HitlError, match="no channel 'zap'"):
        result["zap"]
