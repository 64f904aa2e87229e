"""Parallel: named nodes at once."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from hitl_tui import END, START, GraphInvalid, NodeFailed, StateGraph, quorum
from hitl_tui.stores import Checkpointer
from tests.engine.nodes.graphs import CHANNELS, grouped, outcomes, statuses
from tests.support.spec import spec

pytestmark = spec("7")


def writes(**updates: Any) -> Any:
    return lambda _state: updates


def fails(_state: Any) -> None:
    raise ValueError("no")


def test_members_commit_by_their_place_in_the_list_then_by_channel(store: Checkpointer) -> None:
    runner = grouped(store, b=writes(total=1, log="b"), a=writes(log="a"))
    assert runner.invoke(thread_id="t")["log"] == ["b", "a"]
    records = [(one.path, one.node, one.source, one.channel) for one in store.records("t", 1, 1)]
    assert records == [
        ("group/b", "group", "map", "log"),
        ("group/b", "group", "map", "total"),
        ("group/a", "group", "map", "log"),
    ]
    assert runner.verify("t", strict=True).ok


def test_members_run_at_once() -> None:
    both = threading.Barrier(2, timeout=20)
    grouped(a=lambda _s: both.wait() and None, b=lambda _s: both.wait() and None).invoke()
    assert not both.broken


async def test_async_members_run_in_parallel_and_commit_in_list_order(
    store: Checkpointer,
) -> None:
    b_has_ended = asyncio.Event()

    async def a(_state: Any) -> dict[str, Any]:
        async with asyncio.timeout(20):
            await b_has_ended.wait()
        return {"log": "a", "last": "a"}

    async def b(_state: Any) -> dict[str, Any]:
        b_has_ended.set()
        return {"log": "b", "last": "b"}

    result = await grouped(store, a=a, b=b).ainvoke(thread_id="t")
    assert (result["log"], result["last"]) == (["a", "b"], "b")


def test_members_do_not_see_what_their_siblings_write() -> None:
    def look(state: Any) -> dict[str, Any]:
        return {"log": state["total"], "total": 1}

    assert grouped(group={"max_concurrent": 1}, a=look, b=look).invoke()["log"] == [0, 0]


def test_of_two_siblings_on_one_overwrite_channel_the_later_place_wins_flagged(store: Checkpointer) -> None:
    runner = grouped(store, a=writes(last="a"), b=writes(last="b"))
    assert runner.invoke(thread_id="t")["last"] == "b"
    assert [(one.path, one.overridden) for one in outcomes(runner)] == [
        ("group/a", ("last",)),
        ("group/b", ()),
    ]


@pytest.mark.parametrize(
    ("join", "expected"),
    [
        ("all", {"group/a": "failed", "group/b": "ok", "group/c": "ok"}),
        ("first", {"group/a": "failed", "group/b": "ok", "group/c": "unneeded"}),
        (quorum(2), {"group/a": "failed", "group/b": "ok", "group/c": "ok"}),
    ],
    ids=str,
)
def test_joins_count_successes(store: Checkpointer, join: Any, expected: dict[str, str]) -> None:
    group = {"join": join, "max_concurrent": 1}
    runner = grouped(store, group=group, a=fails, b=writes(log="b"), c=writes(log="c"))
    runner.invoke(thread_id="t")
    assert statuses(runner) == expected


def test_a_quorum_that_is_out_of_reach_fails_the_node() -> None:
    with pytest.raises(NodeFailed, match=r"quorum\(2\) of 2 branches can't be reached: 1 failed"):
        grouped(group={"join": quorum(2)}, a=fails, b=writes(log="b")).invoke()


def graph() -> StateGraph:
    return StateGraph(CHANNELS).add_node("a", writes()).add_node("b", writes())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda g: g.add_parallel("p", ["a", "x"]), "unknown node 'x'"),
        (lambda g: g.add_parallel("p", ["a", "a"]), "names 'a' twice"),
        (lambda g: g.add_parallel("p", []), "it has no nodes"),
        (lambda g: g.add_parallel("p", "a"), "a list of names"),
        (lambda g: g.add_parallel("p", ["a", "b"], join=quorum(3)), r"quorum\(3\) of 2 nodes"),
        (lambda g: g.add_parallel("p", ["a", "b"], join="some"), "join is 'some'"),
        (lambda g: g.add_parallel("p", ["a"], on_error="ignore"), "on_error is 'ignore'"),
        (
            lambda g: g.add_parallel("p", ["a", "b"]).add_edge("a", END),
            "'a' is in the parallel 'p' and has an",
        ),
        (lambda g: g.add_parallel("p", ["a", "b"]).add_parallel("q", ["b"]), "in the parallels 'p' and 'q'"),
        (lambda g: g.add_parallel("p", ["a"]).add_parallel("q", ["p"]), "'p' is a parallel itself"),
        (lambda g: g.add_map("m", over="items", node=fails).add_parallel("p", ["m"]), "'m' is a map itself"),
        (lambda g: g.add_map("p", over="nothing", node=fails), "there is no channel 'nothing'"),
        (lambda g: g.add_map("p", over="items", node=fails, max_concurrent=0), "max_concurrent is 0"),
        (lambda g: g.add_map("p", over="items", node=fails, join=2), "join is 2"),
        (lambda g: g.add_map("p", over="", node=fails), "over is ''"),
        (lambda g: g.add_map("p", over="items", node="fn"), "is text"),
    ],
)
def test_building_refuses(build: Any, message: str) -> None:
    with pytest.raises(GraphInvalid, match=message):
        build(graph()).add_edge(START, "p").add_edge("p", END).compile()


@pytest.mark.parametrize("n", [0, -1, True, "2", 1.5])
def test_a_quorum_is_a_whole_number_of_at_least_1(n: Any) -> None:
    with pytest.raises(GraphInvalid, match="whole number of at least 1"):
        quorum(n)


def test_a_graph_lists_the_members_of_its_nodes() -> None:
    info = (
        graph()
        .add_parallel("p", ["a", "b"], join=quorum(2))
        .add_map("m", over="plan.steps", node=fails, reads=["log"], writes=[])
        .add_edge(START, "p")
        .add_edge("p", "m")
        .add_edge("m", END)
        .compile()
        .graph.info
    )
    group, scan = info.nodes
    assert (group.kind, group.join, [one.name for one in group.members]) == (
        "parallel",
        "quorum(2)",
        ["a", "b"],
    )
    assert (scan.kind, scan.over, scan.join, scan.reads) == (
        "map",
        "plan.steps",
        "all",
        ("log", "plan.steps"),
    )
