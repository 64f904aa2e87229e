"""A thread is run on with another graph than before: logged, and refused where its place is gone."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import END, START, Channel, Gate, GateChoice, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.engine.audit.verify import verify
from hitl_tui.engine.commands import Answer, execute
from hitl_tui.engine.graph.description import GraphInfo
from hitl_tui.engine.thread.logged import logged_digest
from hitl_tui.engine.thread.rebuild import state_at
from hitl_tui.errors import GraphDiffers
from tests.support.spec import spec

pytestmark = spec("10")


def of_nodes(store: MemoryCheckpointer, *names: str, more: int | None = None) -> GraphRunner:
    """Nodes in a row, each of which counts; a run stops after the first one."""
    channels = {"n": Channel(0, reducer="sum")} | ({"more": Channel(more)} if more is not None else {})
    graph = StateGraph(channels)
    for before, name in zip((START, *names), names, strict=False):
        graph.add_node(name, lambda state: {"n": 1}).add_edge(before, name)
    graph.add_edge(names[-1], END)
    return graph.compile(checkpointer=store, interrupt_after=[names[0]])


def data_of(store: MemoryCheckpointer, kind: str, thread: str = "t") -> list[dict[str, Any]]:
    return [one.data for one in store.ledger(thread) if one.kind == kind]


def test_the_log_has_the_digest_of_each_graph_that_ran_once() -> None:
    store = MemoryCheckpointer()
    first = of_nodes(store, "a", "b", "c")
    first.invoke(thread_id="t")
    second = of_nodes(store, "a", "b", "c", more=1)
    second.step(thread_id="t")
    second.step(thread_id="t")
    assert data_of(store, "graph") == [{"was": first.graph.digest, "is": second.graph.digest}]
    info, cursor = store.info("t"), store.cursor("t")
    assert info is not None
    assert cursor is not None
    assert logged_digest(info, cursor) == second.graph.digest
    for runner in (first, second):
        kept = store.graph(runner.graph.digest)
        assert kept is not None
        assert GraphInfo.of(kept) == runner.graph.info


def test_a_state_with_other_channels_is_in_the_log_whole_from_that_step_on() -> None:
    store = MemoryCheckpointer()
    of_nodes(store, "a", "b", "c", "d").invoke(thread_id="t")
    of_nodes(store, "a", "b", "c", "d", more=1).step(thread_id="t")
    of_nodes(store, "a", "b", "c", "d").step(thread_id="t")
    states = [dict(state_at(store, "t", step)) for step in range(4)]
    assert states == [{"n": 0}, {"n": 1}, {"n": 2, "more": 1}, {"n": 3}]
    assert data_of(store, "channels") == [{"new": ["more"], "gone": []}, {"new": [], "gone": ["more"]}]


def test_verify_follows_a_graph_that_got_a_channel_and_lost_it_again() -> None:
    store = MemoryCheckpointer()
    of_nodes(store, "a", "b", "c", "d").invoke(thread_id="t")
    grown = of_nodes(store, "a", "b", "c", "d", more=1)
    grown.step(thread_id="t")
    grown.update_state("t", {"more": 5})
    assert verify(store, "t").ok
    assert grown.verify("t", strict=True).ok
    shrunk = of_nodes(store, "a", "b", "c", "d")
    shrunk.invoke(thread_id="t")
    assert verify(store, "t").ok
    assert shrunk.verify("t", strict=True).ok
    assert grown.verify("t", strict=True).ok


def test_a_channel_that_was_renamed_after_nodes_wrote_it_is_no_finding() -> None:
    store = MemoryCheckpointer()
    of_nodes(store, "a", "b").invoke(thread_id="t")
    graph = StateGraph({"number": Channel(0, reducer="sum")})
    graph.add_node("a", lambda state: {"number": 1}).add_node("b", lambda state: {"number": 1})
    renamed = graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", END).compile(checkpointer=store)
    renamed.invoke(thread_id="t")
    assert renamed.verify("t", strict=True).mismatches == ()


def test_another_default_of_a_channel_that_came_later_changes_no_past() -> None:
    store = MemoryCheckpointer()
    of_nodes(store, "a", "b", "c").invoke(thread_id="t")
    of_nodes(store, "a", "b", "c", more=1).step(thread_id="t")
    later = of_nodes(store, "a", "b", "c", more=2)
    assert later.invoke(thread_id="t")["more"] == 1
    assert verify(store, "t").ok


def test_the_same_graph_again_is_no_change() -> None:
    store = MemoryCheckpointer()
    of_nodes(store, "a", "b").invoke(thread_id="t")
    of_nodes(store, "a", "b").invoke(thread_id="t")
    assert data_of(store, "graph") + data_of(store, "channels") == []


@pytest.mark.parametrize("changes", [None, {"n": 7}], ids=["as it is", "with an edit"])
def test_a_fork_at_a_step_before_its_graph_got_a_channel(changes: dict[str, int] | None) -> None:
    store = MemoryCheckpointer()
    of_nodes(store, "a", "b", "c").invoke(thread_id="t")
    grown = of_nodes(store, "a", "b", "c", more=1)
    grown.invoke(thread_id="t")
    grown.fork("t", 1, "u", changes=changes)
    assert dict(grown.invoke(thread_id="u").state) == {"n": 9 if changes else 3, "more": 1}
    assert data_of(store, "graph", "u") == [], "it began with this graph"
    assert verify(store, "u").ok
    assert grown.verify("u", strict=True).ok


@pytest.mark.parametrize("left", ["before a node", "at a route"])
def test_a_graph_without_the_threads_current_node_is_refused(
    left: str,
) -> None:
    store = MemoryCheckpointer()
    of_nodes(store, "a", "b").invoke(thread_id="t")
    if left == "before a node":
        of_nodes(store, "a", "b").update_state("t", {"n": 5}, as_node="a")
    version = store.cursor("t")
    other = of_nodes(store, "x", "y")
    for continue_thread in (other.invoke, other.step):
        with pytest.raises(GraphDiffers, match=r"is at node '[ab]', which the graph 'graph' does not have"):
            continue_thread(thread_id="t")
    assert store.cursor("t") == version


def test_an_edit_as_a_node_of_the_new_graph_lets_the_thread_continue() -> None:
    store = MemoryCheckpointer()
    of_nodes(store, "a", "b").invoke(thread_id="t")
    other = of_nodes(store, "x", "y")
    other.update_state("t", {"n": 5}, as_node="x")
    assert other.invoke(thread_id="t")["n"] == 6
    assert len(data_of(store, "graph")) == 1


@pytest.mark.parametrize("change", ["a new channel", "a channel that is gone"])
def test_a_question_that_waits_while_the_graph_changes_its_channels_can_be_answered(change: str) -> None:
    store = MemoryCheckpointer()

    def with_gate(more: bool) -> GraphRunner:
        channels = {"n": Channel(0)} | ({"more": Channel("")} if more else {})
        gate = Gate("a", "Good?", [GateChoice("yes", "Yes", values={"n": 5}), GateChoice("no", "No")])
        graph = StateGraph(channels).add_node("a", lambda state: {"n": 1})
        return graph.add_edge(START, "a").add_edge("a", END).compile(checkpointer=store, interrupt_after=gate)

    request = with_gate(change != "a new channel").invoke(thread_id="t").pending[0]
    point = store.checkpoint("t", 1)
    assert point is not None
    session = with_gate(change == "a new channel").open("t")
    with session.writing():
        execute(session, Answer(request.id, "yes", 1, "ann", seen=point.state_hash))
    assert session.cursor.status == "completed"
    assert session.state.values["n"] == 5
    assert [one.kind for one in store.ledger("t") if one.kind in ("answer", "refused")] == ["answer"]
    assert with_gate(change == "a new channel").verify("t", strict=True).ok
