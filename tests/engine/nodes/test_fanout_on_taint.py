"""`on_taint` of a map, a parallel and a subgraph: once for the whole step, as of a plain node."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import END, START, Channel, StateGraph
from hitl_tui.engine.log.events import BranchStarted, TaintRead
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.thread.taint_policy import TaintBlocked
from hitl_tui.stores import Checkpointer
from tests.support.flows import ledger_of
from tests.support.spec import spec

pytestmark = [spec("7"), spec("8")]

KINDS = ("plain", "map", "parallel", "subgraph")


def runner(store: Checkpointer, kind: str, policy: Any) -> GraphRunner:
    """START -> fetch (from the web) -> the step of a kind -> END."""
    made = StateGraph(
        {
            "pages": Channel([], reducer="extend"),
            "clean": Channel(""),
            "log": Channel([], reducer="append"),
        }
    ).add_node("fetch", lambda _s: {"pages": ["a", "b"]}, external="web")
    made.add_edge(START, "fetch").add_edge("fetch", "step").add_edge("step", END)
    reads: Any = {"reads": ["pages"], "writes": ["log"]}
    if kind == "plain":
        made.add_node("step", lambda s: {"log": len(s["pages"])}, on_taint=policy, **reads)
    elif kind == "map":
        made.add_map("step", over="pages", node=lambda _s, c: {"log": c.item}, on_taint=policy, **reads)
    elif kind == "parallel":
        made.add_node("free", lambda _s: {"log": "x"}, reads=["clean"], writes=["log"])
        made.add_node("reader", lambda s: {"log": len(s["pages"])}, on_taint=policy, **reads)
        made.add_parallel("step", ["free", "reader"])
    else:
        inner = StateGraph({"text": Channel([], reducer="extend"), "n": Channel(0)})
        inner.add_node("count", lambda s: {"n": len(s["text"])}).add_edge(START, "count")
        inner.add_edge("count", END)
        made.add_subgraph("step", inner, inputs={"pages": "text"}, outputs={"n": "log"}, on_taint=policy)
    return made.compile(checkpointer=store)


@pytest.mark.parametrize("kind", KINDS)
def test_warn_reports_taint_once_and_continues(store: Checkpointer, kind: str) -> None:
    it = runner(store, kind, "warn")
    events: list[Any] = []
    assert it.invoke(thread_id="t", on_event=events.append).status == "completed"
    warned = [event for event in events if isinstance(event, TaintRead)]
    assert [(event.node, [one.channel for one in event.tainted]) for event in warned] == [("step", ["pages"])]
    assert len(ledger_of(store, "t", "taint")) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_block_fails_the_step_before_anything_of_it_runs(store: Checkpointer, kind: str) -> None:
    it = runner(store, kind, "block")
    events: list[Any] = []
    with pytest.raises(TaintBlocked, match=r"node 'step' was not run: .*pages \(web"):
        it.invoke(thread_id="t", on_event=events.append)
    cursor = it.open("t").cursor
    assert (cursor.status, cursor.reason, cursor.head) == ("failed", "policy", 1)
    assert not any(isinstance(event, BranchStarted) for event in events)
    assert store.info("t/step#1") is None
    it.declassify("t", "pages", actor="ann", reason="looked at it")
    assert it.invoke(thread_id="t").status == "completed"


@pytest.mark.parametrize("kind", KINDS)
class TestApprove:
    def test_one_question_covers_the_whole_step(self, store: Checkpointer, kind: str) -> None:
        it = runner(store, kind, "approve")
        asked = it.invoke(thread_id="t").pending
        assert [(one.node, one.path, one.policy) for one in asked] == [("step", "", "on_taint")]
        assert it.get_state("t")["log"] == []
        it.answer("t", asked[0].id, "approve", step=asked[0].step, actor="ann")
        result = it.invoke(thread_id="t")
        assert (result.status, result.pending) == ("completed", ())
        assert it.verify("t", strict=True).ok

    def test_it_is_bound_to_what_the_step_would_read(self, store: Checkpointer, kind: str) -> None:
        it = runner(store, kind, "approve")
        asked = it.invoke(thread_id="t").pending[0]
        it.answer("t", asked.id, "approve", step=asked.step, actor="ann")
        it.update_state("t", {"clean": "not read"}, actor="bob")
        it.update_state("t", {"pages": ["other"]}, actor="bob")
        again = it.invoke(thread_id="t").pending
        assert [(one.node, one.policy) for one in again] == [("step", "on_taint")]
        assert again[0].id != asked.id

    def test_what_it_does_not_read_may_change(self, store: Checkpointer, kind: str) -> None:
        it = runner(store, kind, "approve")
        asked = it.invoke(thread_id="t").pending[0]
        it.answer("t", asked.id, "approve", step=asked.step, actor="ann")
        if kind != "parallel":
            it.update_state("t", {"clean": "not read"}, actor="bob")
        assert it.invoke(thread_id="t").status == "completed"

    def test_a_refusal_ends_the_thread(self, store: Checkpointer, kind: str) -> None:
        it = runner(store, kind, "approve")
        asked = it.invoke(thread_id="t").pending[0]
        it.answer("t", asked.id, "reject", step=asked.step, actor="ann")
        cursor = it.open("t").cursor
        assert (cursor.status, cursor.reason) == ("cancelled", "rejected")
        assert store.info("t/step#1") is None
