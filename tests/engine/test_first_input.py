"""What began a run is read from its channel while that holds it, and else from the log."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, ReadDenied, StateGraph
from hitl_tui.stores import Checkpointer
from tests.engine.building import one_node
from tests.support.spec import spec

pytestmark = spec("15")


def looking(reducer: str, store: Checkpointer | None, **options: Any) -> tuple[GraphRunner, list[Any]]:
    """Two nodes that each add two messages, and what each has found to have started the run."""
    found: list[Any] = []

    def node(state: Any, config: Any) -> dict[str, Any]:
        found.append(config.first_input("messages"))
        return {"messages": f"{config.invocation}.{config.iteration}"}

    graph = (
        StateGraph({"messages": Channel([], reducer=reducer), "note": Channel("")})
        .add_node("a", node)
        .add_node("b", node)
        .add_node("c", node)
        .add_edge(START, "a")
        .add_edge("a", "b")
        .add_edge("b", "c")
        .add_edge("c", END)
    )
    return graph.compile(checkpointer=store, **options), found


@pytest.mark.parametrize("reducer", ["append", "last_n(1)", "last_n(2)", "last_n(3)", "last_n(9)"])
@pytest.mark.parametrize("kept", [True, False], ids=["in a store", "without a store"])
def test_the_first_message_is_found_however_much_came_since(reducer: str, kept: bool) -> None:
    runner, found = looking(reducer, MemoryCheckpointer() if kept else None)
    runner.invoke({"messages": "task"}, thread_id="t")
    assert found == ["task"] * 3


@pytest.mark.parametrize("reducer", ["append", "last_n(2)"])
def test_of_several_messages_it_is_the_first_of_the_newest_invocation(
    store: Checkpointer, reducer: str
) -> None:
    runner, found = looking(reducer, store)
    runner.invoke({"messages": ["one", "and more"]}, thread_id="t")
    runner.invoke({"messages": ["two", "and more"]}, thread_id="t")
    assert found == ["one"] * 3 + ["two"] * 3


@pytest.mark.parametrize("reducer", ["append", "last_n(2)"])
def test_an_invocation_without_a_message_keeps_the_one_before(store: Checkpointer, reducer: str) -> None:
    runner, found = looking(reducer, store)
    runner.invoke({"messages": "one"}, thread_id="t")
    runner.invoke({"note": "again"}, thread_id="t")
    runner.invoke(thread_id="t", resume="entry")
    assert found == ["one"] * 9


def test_an_edit_of_the_message_counts_while_the_channel_holds_it(store: Checkpointer) -> None:
    runner, found = looking("append", store, interrupt_before=["b"])
    runner.invoke({"messages": ["one", "more"]}, thread_id="t")
    messages = list(runner.get_state("t")["messages"])
    runner.update_state("t", {"messages": ["edited", *messages[1:]]})
    runner.invoke(thread_id="t")
    assert found == ["one", "edited", "edited"]


def test_an_edit_of_what_is_left_of_a_bounded_channel_is_not_taken_for_the_message(
    store: Checkpointer,
) -> None:
    runner, found = looking("last_n(1)", store, interrupt_before=["b"])
    runner.invoke({"messages": "one"}, thread_id="t")
    runner.update_state("t", {"messages": ["something else"]})
    runner.invoke(thread_id="t")
    assert found == ["one"] * 3


def test_another_process_and_a_fork_find_the_same(store: Checkpointer) -> None:
    runner, found = looking("last_n(2)", store, interrupt_before=["b", "c"])
    runner.invoke({"messages": "old"}, thread_id="t")
    runner.invoke(thread_id="t")
    runner.invoke(thread_id="t")
    found.clear()
    runner.invoke({"messages": "new"}, thread_id="t")
    for thread in (runner.fork("t", runner.open("t").cursor.head, "f"), "t"):
        for _ in range(3):  # a fork asks its question once more first
            again, its = looking("last_n(2)", store, interrupt_before=["b", "c"])
            again.invoke(thread_id=thread)
            found += its
    assert found == ["new"] * 5


def test_a_message_in_between_does_not_become_it(store: Checkpointer) -> None:
    runner, found = looking("last_n(2)", store, interrupt_before=["b"])
    runner.invoke({"messages": "task"}, thread_id="t")
    runner.invoke({"messages": "by the way"}, thread_id="t")
    assert found == ["task"] * 3


def test_without_messages_there_is_no_first_input() -> None:
    runner, found = looking("append", MemoryCheckpointer())
    runner.invoke({"note": "x"}, thread_id="t")
    assert found == [None] * 3


def test_it_is_within_the_reads_of_the_node() -> None:
    def node(_state: Any, config: Any) -> None:
        with pytest.raises(ReadDenied):
            config.first_input("secret")

    one_node({"secret": Channel(""), "open": Channel("")}, node, reads=["open"]).invoke({"open": "x"})
