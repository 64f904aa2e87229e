"""The context of an invocation: read by nodes and routes, kept in the log, the same wherever it goes on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    Channel,
    GraphInvalid,
    GraphRunner,
    HitlError,
    NodeConfig,
    NodeFailed,
    SQLiteCheckpointer,
    StateGraph,
    UsageError,
    ValueRejected,
)
from hitl_tui.engine.log.events import Event
from hitl_tui.stores import Checkpointer, FileCheckpointer, MemoryCheckpointer
from hitl_tui.stores.transfer import export_thread, import_thread
from tests.support.flows import ledger_of
from tests.support.spec import spec

pytestmark = spec("5")


def runner(store: Checkpointer | None, node: Callable[..., Any] | None = None, **options: Any) -> GraphRunner:
    """A node that collects who the run is for, and a route that goes by the context."""

    def collect(state: Any, config: NodeConfig) -> dict[str, Any]:
        return {"seen": config.context.get("tenant", "nobody")}

    def way(state: Any, config: Any) -> str:
        return "again" if len(state["seen"]) < config.context.get("rounds", 1) else "done"

    graph = StateGraph({"seen": Channel([], reducer="append")}).add_node("a", node or collect)
    graph.add_edge(START, "a").add_conditional_edge("a", way, {"again": "a", "done": END})
    return graph.compile(checkpointer=store, **options)


CONTEXT = {"tenant": "acme", "rounds": 3}


@pytest.mark.parametrize("kept", [True, False])
def test_nodes_and_routes_read_it(kept: bool) -> None:
    result = runner(MemoryCheckpointer() if kept else None).invoke(thread_id="t", context=CONTEXT)
    assert result["seen"] == ["acme"] * 3


async def test_every_way_to_run_takes_it(store: Checkpointer) -> None:
    flow = runner(store)
    assert (await flow.ainvoke(thread_id="a", context=CONTEXT))["seen"] == ["acme"] * 3
    assert [step.step async for step in flow.astream(thread_id="b", context=CONTEXT)] == [1, 2, 3]


def test_stepping_and_resuming_keep_the_context(store: Checkpointer) -> None:
    flow = runner(store)
    flow.step(thread_id="t", context=CONTEXT)
    assert list(runner(store).step(thread_id="t")["seen"]) == ["acme", "acme"]
    assert list(runner(store).invoke(thread_id="t")["seen"]) == ["acme"] * 3
    assert [step.step for step in flow.stream(thread_id="s", context=CONTEXT)] == [1, 2, 3]


def test_a_graph_without_a_second_parameter_in_its_route_stays_as_it_is(store: Checkpointer) -> None:
    graph = StateGraph({"n": Channel(0)}).add_node("a", lambda s: {"n": 1}).add_edge(START, "a")
    graph.add_conditional_edge("a", lambda s, word="x": word, {"x": END})
    assert graph.compile(checkpointer=store).invoke(context=CONTEXT).status == "completed"


def test_it_is_read_only_all_the_way_down(store: Checkpointer) -> None:
    def node(state: Any, config: NodeConfig) -> None:
        with pytest.raises(TypeError):
            config.context["tenant"] = "other"  # type: ignore[index]
        config.context["list"][0]["x"] = 1

    with pytest.raises(NodeFailed, match="read-only"):
        runner(store, node).invoke(context={"tenant": "a", "list": [{"x": 0}]})


def test_what_the_caller_changes_afterwards_changes_nothing(store: Checkpointer) -> None:
    given: dict[str, Any] = {"tenant": "acme", "rounds": 2}
    flow = runner(store)
    flow.step(thread_id="t", context=given)
    given["tenant"] = "other"
    assert list(flow.invoke(thread_id="t")["seen"]) == ["acme", "acme"]


@pytest.mark.parametrize(
    ("context", "error", "words"),
    [
        (["tenant"], UsageError, "start: context is a list"),
        ({1: "x"}, UsageError, "start: context, the name 1 is a whole number"),
        ({"db": object()}, ValueRejected, "the context's 'db'"),
        ({"a": {"b": {1}}}, ValueRejected, "the context's 'a'"),
        ({"a": float("nan")}, ValueRejected, "the context's 'a'"),
        ({"a": ["x" * 1000] * 20}, HitlError, "may take|over the limit"),
    ],
)
def test_an_invalid_context_is_refused_before_anything_is_written(
    store: Checkpointer, context: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        runner(store).invoke(thread_id="t", context=context)
    assert store.list_threads() == []


def test_an_invocation_keeps_its_context(store: Checkpointer) -> None:
    flow = runner(store)
    flow.step(thread_id="t", context=CONTEXT)
    for given in ({"inputs": None}, {"inputs": {"seen": "mine"}}):
        with pytest.raises(UsageError, match=r"another one was given \(rounds\)"):
            flow.invoke(**given, thread_id="t", context={"tenant": "acme", "rounds": 4})  # type: ignore[arg-type]
    assert list(flow.invoke(thread_id="t", context=dict(CONTEXT))["seen"]) == ["acme"] * 3
    # Completed, and asked again without input: nothing runs, and the same context is no other.
    assert flow.invoke(thread_id="t", context=CONTEXT).step == 3


def test_the_next_invocation_has_its_own_and_none_has_none(store: Checkpointer) -> None:
    flow = runner(store)
    flow.invoke(thread_id="t", context={"tenant": "acme"})
    flow.invoke({"seen": "again"}, thread_id="t", context={"tenant": "other"})
    result = flow.invoke({"seen": "again"}, thread_id="t")
    assert result["seen"] == ["acme", "again", "other", "again", "nobody"]
    assert [entry.data for entry in ledger_of(store, "t", "input")] == [
        {"context": {"tenant": "acme"}}, {"context": {"tenant": "other"}}, {"context": {}},
    ]  # fmt: skip


def test_from_the_entry_it_is_another_invocation_with_another_context(store: Checkpointer) -> None:
    flow = runner(store)
    flow.step(thread_id="t", context=CONTEXT)
    result = flow.invoke(thread_id="t", resume="entry", context={"tenant": "b"})
    assert list(result["seen"]) == ["acme", "b"]


def test_a_fork_has_the_context_of_its_step(store: Checkpointer) -> None:
    flow = runner(store)
    flow.invoke(thread_id="t", context={"tenant": "acme", "rounds": 2})
    flow.invoke({"seen": "x"}, thread_id="t", context={"tenant": "other"})
    flow.fork("t", 1, "f")
    assert list(flow.invoke(thread_id="f")["seen"]) == ["acme", "acme"]
    assert flow.verify("f", strict=True).ok


def test_a_replay_asks_routes_with_it(store: Checkpointer) -> None:
    flow = runner(store)
    flow.invoke(thread_id="t", context=CONTEXT)
    flow.invoke({"seen": "x"}, thread_id="t", context={"rounds": 6, "tenant": "b"})
    assert flow.replay("t").ok


def test_the_context_is_covered_by_the_hash_chain(store: Checkpointer) -> None:
    flow = runner(store)
    flow.invoke(thread_id="t", context=CONTEXT)
    assert flow.verify("t", strict=True).ok
    entry = store.ledger("t")[0]
    assert entry.data == {"context": CONTEXT}
    if isinstance(store, SQLiteCheckpointer):
        with closing(sqlite3.connect(store.path)) as file, file:
            changed = file.execute("update ledger set data = replace(data, 'acme', 'evil')").rowcount
        assert changed == 1
        assert not flow.verify("t").ok


def test_subgraphs_have_the_context(store: Checkpointer) -> None:
    inner = StateGraph({"who": Channel("")})
    inner.add_node("look", lambda s, config: {"who": config.context["tenant"]})
    inner.add_edge(START, "look").add_edge("look", END)
    outer = StateGraph({"who": Channel("")}).add_subgraph("in", inner, inputs={}, outputs={"who": "who"})
    flow = (
        outer.add_edge(START, "in")
        .add_edge("in", END)
        .compile(checkpointer=store, private_context=["tenant"])
    )
    assert flow.invoke(thread_id="t", context={"tenant": "acme"})["who"] == "acme"
    assert ledger_of(store, "t/in#1", "input")[0].data["private"] == ["tenant"]
    assert flow.verify("t").ok


def test_branches_have_the_context(store: Checkpointer) -> None:
    graph = StateGraph({"items": Channel([1, 2], reducer="overwrite"), "seen": Channel([], reducer="append")})
    graph.add_map("m", over="items", node=lambda s, c: {"seen": f"{c.context['tenant']}{c.item}"})
    flow = graph.add_edge(START, "m").add_edge("m", END).compile(checkpointer=store)
    assert list(flow.invoke(context={"tenant": "a"})["seen"]) == ["a1", "a2"]


PRIVATE = {"tenant": "acme", "mail": "ann@box", "rounds": 1}


def test_private_values_stay_out_of_streams_and_exports(store: Checkpointer) -> None:
    flow = runner(store, private_context=["mail"])
    events: list[Event] = []
    flow.invoke(thread_id="t", context=PRIVATE, on_event=events.append)
    assert "ann@box" not in repr(events)
    assert flow.run_info("t").context == {"tenant": "acme", "mail": "[private]", "rounds": 1}
    lines = list(export_thread(store, "t"))
    assert not [line for line in lines if b"ann@box" in line]
    assert json.loads(lines[0])["left_out"] == ["context.mail"]
    with pytest.raises(UsageError, match=r"context\.mail"):
        import_thread(MemoryCheckpointer(), lines)


def test_a_thread_exported_with_its_private_context_continues_elsewhere(store: Checkpointer) -> None:
    flow = runner(store, lambda s, c: {"seen": c.context["mail"]}, private_context=["mail"])
    flow.step(thread_id="t", context={**PRIVATE, "rounds": 2})
    other = MemoryCheckpointer()
    import_thread(other, export_thread(store, "t", private=True))
    moved = flow.with_store(other)
    assert list(moved.invoke(thread_id="t")["seen"]) == ["ann@box"] * 2
    assert moved.verify("t", strict=True).ok


def test_the_hash_of_an_entry_does_not_tell_a_private_value() -> None:
    hashes = set()
    for store in (MemoryCheckpointer(), MemoryCheckpointer()):
        runner(store, private_context=["mail"]).invoke(thread_id="t", context=PRIVATE)
        hashes.add(store.ledger("t")[0].data["salt"])
    assert len(hashes) == 2


def test_errors_do_not_quote_a_private_value(store: Checkpointer) -> None:
    with pytest.raises(ValueRejected) as error:
        runner(store, private_context=["mail"]).invoke(context={"mail": {"ann@box": object()}})
    assert "ann@box" not in str(error.value)


def test_private_context_is_a_list_of_names() -> None:
    with pytest.raises(GraphInvalid, match="private_context is 'mail'"):
        runner(None, private_context="mail")


def test_a_store_of_files_keeps_the_context(tmp_path: Any) -> None:
    flow = runner(FileCheckpointer(tmp_path))
    flow.step(thread_id="t", context=CONTEXT)
    assert list(runner(FileCheckpointer(tmp_path)).invoke(thread_id="t")["seen"]) == ["acme"] * 3
    assert flow.verify("t", strict=True).ok
