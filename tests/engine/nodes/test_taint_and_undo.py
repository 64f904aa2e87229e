"""Across maps and subgraphs: taint goes in and comes out, and what branches did can be undone."""

from __future__ import annotations

from typing import Any

from hitl_tui import END, START, Channel, GraphRunner, NodeResult, StateGraph
from hitl_tui.stores import Checkpointer
from tests.engine.nodes.graphs import CHANNELS, mapped
from tests.support.spec import spec

pytestmark = [spec("8"), spec("13")]


def tainted(runner: Any, thread: str = "t") -> set[str]:
    return set(runner.open(thread).state.taint)


def test_the_items_of_a_tainted_channel_taint_what_the_branches_write(store: Checkpointer) -> None:
    runner = (
        StateGraph(CHANNELS)
        .add_node("fetch", lambda _s: {"items": ["a", "b"]}, external="web")
        .add_map("scan", over="items", node=lambda _s, c: {"log": c.item})
        .add_edge(START, "fetch")
        .add_edge("fetch", "scan")
        .add_edge("scan", END)
        .compile(checkpointer=store)
    )
    runner.invoke(thread_id="t")
    assert tainted(runner) == {"items", "log"}
    assert runner.verify("t", strict=True).ok


def test_one_branch_that_brings_something_in_taints_its_channel(store: Checkpointer) -> None:
    def node(_state: Any, config: Any) -> dict[str, Any]:
        if config.index == 0:
            config.taint("mail")
            return {"log": "x"}
        return {"total": 1}

    runner = mapped(node, store)
    runner.invoke({"items": [0, 1]}, thread_id="t")
    assert tainted(runner) == {"log"}
    assert runner.verify("t", strict=True).ok


def test_taint_goes_into_a_subgraph_and_comes_out_of_it(store: Checkpointer) -> None:
    inner = (
        StateGraph({"page": Channel(""), "short": Channel(""), "other": Channel("")})
        .add_node("cut", lambda s: {"short": s["page"][:1]}, reads=["page"], writes=["short"])
        .add_node("free", lambda _s: {"other": "own"}, reads=[], writes=["other"])
        .add_edge(START, "cut")
        .add_edge("cut", "free")
        .add_edge("free", END)
    )
    runner = (
        StateGraph({"text": Channel(""), "short": Channel(""), "other": Channel("")})
        .add_node("fetch", lambda _s: {"text": "page"}, external="web")
        .add_subgraph("team", inner, inputs={"text": "page"}, outputs={"short": "short", "other": "other"})
        .add_edge(START, "fetch")
        .add_edge("fetch", "team")
        .add_edge("team", END)
        .compile(checkpointer=store)
    )
    runner.invoke(thread_id="t")
    assert tainted(runner, "t/team#1") == {"page", "short"}
    assert tainted(runner) == {"text", "short"}
    for thread in ("t", "t/team#1"):
        assert runner.verify(thread, strict=True).mismatches == ()


def test_what_branches_did_is_undone_last_in_first_out(store: Checkpointer) -> None:
    undone: list[int] = []

    def book(_state: Any, config: Any) -> NodeResult:
        return NodeResult({"log": config.item}, compensation=("cancel", {"place": config.index}))

    def cancel(_state: Any, _config: Any, args: Any) -> None:
        undone.append(args["place"])

    runner = (
        StateGraph(CHANNELS)
        .add_map("book", over="items", node=book)
        .add_compensation("cancel", cancel)
        .add_edge(START, "book")
        .add_edge("book", END)
        .compile(checkpointer=store)
    )
    runner.invoke({"items": ["a", "b", "c"]}, thread_id="t")
    assert [one.path for one in runner.history("t")[0].compensations] == ["book[0]", "book[1]", "book[2]"]
    runner.rollback("t")
    assert undone == [2, 1, 0]


def test_a_member_of_a_parallel_that_reads_what_is_tainted_taints_what_it_writes(store: Checkpointer) -> None:
    runner = (
        StateGraph(CHANNELS)
        .add_node("fetch", lambda _s: {"items": ["a"]}, external="web")
        .add_node("reads", lambda s: {"log": s["items"][0]})
        .add_node("does_not", lambda _s: {"total": 1})
        .add_parallel("both", ["reads", "does_not"])
        .add_edge(START, "fetch")
        .add_edge("fetch", "both")
        .add_edge("both", END)
        .compile(checkpointer=store)
    )
    runner.invoke(thread_id="t")
    assert tainted(runner) == {"items", "log"}
    assert runner.verify("t", strict=True).ok


def careful(store: Checkpointer, **send: Any) -> GraphRunner:
    """A page from the web goes into a graph whose node `send` has a policy of taint."""
    inner = (
        StateGraph({"page": Channel(""), "sent": Channel("")}, name="inner")
        .add_node("look", lambda _s: {}, reads=[], writes=[])
        .add_node("send", lambda s: {"sent": s["page"]}, reads=["page"], **send)
        .add_edge(START, "look")
        .add_edge("look", "send")
        .add_edge("send", END)
        .compile(checkpointer=store, interrupt_after=["look"])
    )
    return (
        StateGraph({"text": Channel(""), "out": Channel("")})
        .add_node("fetch", lambda _s: {"text": "page"}, external="web")
        .add_subgraph("team", inner, inputs={"text": "page"}, outputs={"sent": "out"})
        .add_edge(START, "fetch")
        .add_edge("fetch", "team")
        .add_edge("team", END)
        .compile(checkpointer=store)
    )


def test_what_is_declassified_inside_a_subgraph_comes_out_clean(store: Checkpointer) -> None:
    runner = careful(store)
    runner.invoke(thread_id="t")
    runner.declassify("t/team#1", "page", actor="ann", reason="read it")
    result = runner.invoke(thread_id="t")
    assert (result.status, result["out"]) == ("completed", "page")
    assert tainted(runner) == {"text"}
    for thread in ("t", "t/team#1"):
        assert runner.verify(thread, strict=True).mismatches == ()


def test_a_policy_of_taint_inside_a_subgraph_asks_on_the_parent(store: Checkpointer) -> None:
    runner = careful(store, on_taint="approve")
    runner.invoke(thread_id="t")
    asked = runner.invoke(thread_id="t")
    (request,) = asked.pending
    assert (asked.status, request.path) == ("waiting", "team/send")
    runner.answer("t", request.id, "approve", step=request.step, actor="ann")
    assert runner.invoke(thread_id="t")["out"] == "page"
    assert tainted(runner) == {"text", "out"}


def test_a_refusal_inside_a_subgraph_fails_its_node(store: Checkpointer) -> None:
    runner = careful(store, on_taint="approve")
    runner.invoke(thread_id="t")
    (request,) = runner.invoke(thread_id="t").pending
    runner.answer("t", request.id, "reject", step=request.step, actor="ann")
    error = runner.open("t").cursor.error
    assert error is not None
    assert error.message == "node 'team': its thread 't/team#1' was cancelled (rejected)"
    assert runner.run_info("t").status == "failed"
    assert runner.get_state("t")["out"] == ""
    (again,) = runner.invoke(thread_id="t").pending
    assert again.thread == "t/team#2"
