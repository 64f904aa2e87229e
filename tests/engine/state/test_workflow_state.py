"""A state without a graph, with the reducers, checks and errors of a run."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    Channel,
    GraphInvalid,
    MemoryCheckpointer,
    NodeFailed,
    ReducerError,
    SchemaMismatch,
    StateGraph,
    UndeclaredChannel,
    UsageError,
    ValueRejected,
    WorkflowState,
)


def state() -> WorkflowState:
    return WorkflowState(
        {
            "messages": Channel([], reducer="append"),
            "status": Channel("pending", schema=str),
            "total": Channel(0, reducer="sum"),
            "secret": Channel("hush", visibility="private"),
        }
    )


def test_the_first_example_of_the_specification_runs() -> None:
    ws = state()
    ws.update({"messages": "hello", "status": "running"})
    snap = ws.snapshot()
    ws.update({"messages": "world"})
    assert ws.get("messages") == ["hello", "world"]
    ws.restore(snap)
    assert ws.get("messages") == ["hello"]
    assert ws["status"] == "running"
    assert list(ws.keys()) == ["messages", "status", "total", "secret"]


def test_a_set_goes_by_the_reducer() -> None:
    ws = state()
    ws.set({"messages": ["a", "b"], "total": 7})
    ws.update({"total": 1})
    assert (ws["messages"], ws["total"]) == (["a", "b"], 8)


@pytest.mark.parametrize(
    ("verb", "values", "error"),
    [
        ("update", {"total": 1, "nothing": 1}, UndeclaredChannel),
        ("update", {"messages": "x", "status": 3}, SchemaMismatch),
        ("update", {"messages": "x", "total": "many"}, ReducerError),
        ("update", {"messages": "x", "status": object()}, ValueRejected),
        ("update", {"goal": "x"}, UndeclaredChannel),
        ("set", {"messages": [], "status": 3}, SchemaMismatch),
        ("set", {"messages": [], "nothing": 3}, UndeclaredChannel),
        ("restore", {"messages": [], "nothing": 3}, UndeclaredChannel),
        ("restore", {"messages": [], "status": 3}, SchemaMismatch),
        ("update", ["messages"], UsageError),
    ],
)
def test_it_is_all_or_nothing(verb: str, values: Any, error: type[Exception]) -> None:
    ws = state()
    ws.update({"messages": "first", "total": 2})
    before = dict(ws)
    with pytest.raises(error):
        getattr(ws, verb)(values)
    assert dict(ws) == before


def test_an_invalid_channel_is_reported_as_in_a_graph() -> None:
    with pytest.raises(GraphInvalid, match="channel name '1st'"):
        WorkflowState({"1st": Channel(0)})


def test_a_snapshot_stays_as_it_was_and_can_not_be_changed() -> None:
    ws = state()
    snap = ws.snapshot()
    ws.update({"messages": "later", "total": 1})
    assert (snap["messages"], snap["total"]) == ([], 0)
    with pytest.raises(TypeError):
        snap["total"] = 3  # type: ignore[index]
    with pytest.raises(TypeError):
        ws["messages"].append("by hand")
    assert ws["messages"] == ["later"]


def test_what_a_snapshot_does_not_name_is_as_in_the_beginning() -> None:
    ws = state()
    ws.update({"messages": "hello", "total": 3})
    ws.restore({"total": 9})
    assert (ws["messages"], ws["total"]) == ([], 9)


def test_a_checkpoint_of_a_run_restores_it() -> None:
    store = MemoryCheckpointer()
    channels = {"n": Channel(0, reducer="sum"), "log": Channel([], reducer="append")}
    graph = StateGraph(channels).add_node("a", lambda s: {"n": 2, "log": "ran"})
    graph.add_edge(START, "a").add_edge("a", END).compile(checkpointer=store).invoke({"n": 1}, thread_id="t")
    ws = WorkflowState(channels)
    loaded = store.load_latest("t")
    assert loaded
    ws.restore(loaded[1])
    assert dict(ws) == {"n": 3, "log": ["ran"]}


def test_a_node_can_be_called_with_it() -> None:
    def node(state: WorkflowState) -> dict[str, Any]:
        assert isinstance(state, WorkflowState)
        return {"total": len(state["status"])}

    ws = state()
    ws.update(node(ws))
    assert ws["total"] == len("pending")


@pytest.mark.parametrize("verb", ["update", "set", "restore"])
def test_what_a_node_gets_can_be_read_only(verb: str) -> None:
    def node(state: WorkflowState) -> None:
        assert isinstance(state, WorkflowState)
        assert state.snapshot() == {"n": 0}
        getattr(state, verb)({"n": 1})

    graph = StateGraph({"n": Channel(0)}).add_node("a", node).add_edge(START, "a").add_edge("a", END)
    with pytest.raises(NodeFailed, match="read-only inside a node: return the updates"):
        graph.compile().invoke()


def test_an_item_is_not_assigned() -> None:
    ws: Any = state()
    with pytest.raises(TypeError, match=r"state\.update"):
        ws["status"] = "x"


def test_printing_it_shows_its_channels() -> None:
    ws = state()
    ws.update({"messages": "a\x1b[2Jb"})
    assert str(ws).splitlines() == [
        "WorkflowState with 4 channels",
        r'  messages  list of 1: ["a\u001b[2Jb"]',
        '  status    "pending"',
        "  total     0",
        "  secret    [private]",
    ]


def test_printing_is_bounded() -> None:
    ws = WorkflowState({f"c{n}": Channel("") for n in range(60)} | {"many": Channel([], reducer="overwrite")})
    ws.update({"c0": "x\u202e" * 10_000, "many": list(range(50_000))})
    lines = str(ws).splitlines()
    assert lines[-1] == "  … and 21 more"
    assert all(len(line) < 130 and line.isprintable() for line in lines)
