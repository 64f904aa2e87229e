"""The golden trace of docs/spec/log.md, in every store."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hitl_tui import END, START, Channel, StateGraph
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.state.canonical import channel_hash, state_hash
from hitl_tui.engine.thread.rebuild import state_at
from hitl_tui.stores import Checkpointer
from tests.support.spec import spec

pytestmark = spec("12")

FOUR = {
    "messages": Channel([], reducer="append"),
    "findings": Channel([], reducer="extend"),
    "score": Channel(0, reducer="sum"),
    "plan": Channel(None, reducer="overwrite"),
}
FINAL = {
    "findings": [{"path": "a"}, {"path": "c"}],
    "messages": ["done"],
    "plan": {"go": True},
    "score": 0.75,
}


@pytest.fixture
def run(store: Checkpointer) -> GraphRunner:
    """The golden thread "t", run: item 2 ends first, then item 0; item 1 fails."""
    last_has_ended = asyncio.Event()

    async def scan(_state: Any, config: Any) -> dict[str, Any]:
        if config.index == 1:
            raise ValueError("item 1 can't be read")
        if config.index == 2:
            last_has_ended.set()
            return {"score": 0.25, "findings": [{"path": "c"}]}
        await last_has_ended.wait()
        return {"score": 0.5, "findings": [{"path": "a"}]}

    runner = (
        StateGraph({**FOUR, "items": Channel(["a", "b", "c"], reducer="overwrite")})
        .add_map("scan", over="items", node=scan)
        .add_node("summarize", lambda _state: {"plan": {"go": True}, "messages": "done"})
        .add_edge(START, "scan")
        .add_edge("scan", "summarize")
        .add_edge("summarize", END)
        .compile(checkpointer=store)
    )
    assert runner.invoke(thread_id="t").status == "completed"
    return runner


def of_the_four(state: dict[str, Any]) -> str:
    return state_hash({name: channel_hash(state[name]) for name in FOUR}).hex()[:16]


def test_writes_six_records_in_the_golden_order(run: GraphRunner, store: Checkpointer) -> None:
    records = [(one.path or one.node, one.channel, one.source) for one in store.records("t", 0, 9)]
    assert records == [
        ("scan[0]", "findings", "map"),
        ("scan[0]", "score", "map"),
        ("scan[2]", "findings", "map"),
        ("scan[2]", "score", "map"),
        ("summarize", "messages", "node"),
        ("summarize", "plan", "node"),
    ]


def test_ends_in_the_golden_state(run: GraphRunner) -> None:
    state = run.get_state("t")
    assert {name: state[name] for name in FOUR} == FINAL


def test_has_the_golden_hashes_before_and_after(run: GraphRunner) -> None:
    assert of_the_four(run.get_state("t", 0)) == "c0aea53b1eabd2b9"
    assert of_the_four(run.get_state("t")) == "3057b3eb580458d1"


def test_is_rebuilt_from_the_log_alone(run: GraphRunner, store: Checkpointer) -> None:
    assert {name: state_at(store, "t", 2)[name] for name in FOUR} == FINAL
    assert run.get_state("t", 1)["score"] == 0.75


@pytest.mark.parametrize("strict", [False, True], ids=["verify", "verify --strict"])
def test_passes(run: GraphRunner, strict: bool) -> None:
    report = run.verify("t", strict=strict)
    assert report.mismatches == ()
    assert report.records == 6


def test_the_failed_branch_is_on_the_checkpoint(run: GraphRunner) -> None:
    branches = run.history("t")[1].branches
    assert [(one.path, one.status) for one in branches] == [
        ("scan[0]", "ok"),
        ("scan[1]", "failed"),
        ("scan[2]", "ok"),
    ]
    assert branches[1].error is not None
    assert "item 1 can't be read" in branches[1].error.message
