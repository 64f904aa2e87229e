"""Anything people may do in any order with a map, a parallel and a subgraph: every log stays whole."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from hitl_tui import (
    END,
    START,
    AnswerRefused,
    Channel,
    Gate,
    GateChoice,
    GraphRunner,
    HitlError,
    NodeFailed,
    StateGraph,
)
from hitl_tui.engine.log.records import Limits
from hitl_tui.stores import Checkpointer
from tests.support.any_order import AnyOrder, run_in_any_order
from tests.support.flows import check_log
from tests.support.spec import spec

pytestmark = [spec("7"), spec("10")]

CHANNELS = {
    "items": Channel([1, 2, 3], reducer="overwrite"),
    "found": Channel([], reducer="extend"),
    "total": Channel(0, reducer="sum"),
    "last": Channel(None, reducer="overwrite"),
    "answers": Channel([], reducer="append"),
    "round": Channel(0, reducer="sum"),
}
ITEMS = st.lists(st.integers(0, 3), max_size=4)


class Family(AnyOrder):
    """Runs, edits, answers, forks, failures and crashes of threads whose nodes hold others."""

    @initialize(memory=st.booleans())
    def begin(self, memory: bool) -> None:
        self.open_new(memory)
        self.runner = self.graph()
        self.runner.invoke({}, thread_id="t")

    def graph(self) -> GraphRunner:
        """A round: a map that may ask or fail, a parallel, and a graph with a gate inside."""

        async def scan(state: Any, config: Any) -> dict[str, Any]:
            if config.item == 3:
                config.taint("web")
            if self.broken and config.item == 2:
                raise ValueError("broken")
            more = config.interrupt("how many?") if config.item == 0 else config.item
            return {"found": [more], "total": config.item, "last": config.item}

        def draft(state: Any) -> dict[str, Any]:
            if self.broken:
                raise ValueError("broken")
            return {"draft": f"of {len(state['given'])}"}

        choices = [GateChoice("ok", "ok"), GateChoice("redo", "redo", values={"draft": "redone"})]
        inner = (
            StateGraph({"given": Channel([], reducer="extend"), "draft": Channel("")}, name="inner")
            .add_node("draft", draft)
            .add_edge(START, "draft")
            .add_edge("draft", END)
            .compile(checkpointer=self.store, interrupt_after=[Gate("draft", title="good?", choices=choices)])
        )
        return (
            StateGraph(CHANNELS)
            .add_map("scan", over="items", node=scan)
            .add_node("left", lambda state: {"total": 1, "last": "left"})
            .add_node("right", lambda state: {"found": [len(state["found"])], "last": "right"})
            .add_parallel("both", ["left", "right"])
            .add_subgraph("team", inner, inputs={"found": "given"}, outputs={"draft": "answers"})
            .add_node("close", lambda state: {"round": 1})
            .add_edge(START, "scan")
            .add_edge("scan", "both")
            .add_conditional_edge("both", lambda s: "team", ["team", "close"])
            .add_edge("team", "close")
            .add_conditional_edge("close", lambda s: s["round"] < 3, {"true": "scan", "false": END})
            .compile(checkpointer=self.store, limits=Limits(max_iterations=200))
        )

    def reopened(self) -> GraphRunner:
        return self.graph()

    def everyone(self) -> list[str]:
        """The threads, and those of the graphs inside them that have started."""
        return list(self.store.list_threads())

    @rule(pick=st.integers(0, 9), once=st.booleans())
    def run(self, pick: int, once: bool) -> None:
        thread = self.threads[pick % len(self.threads)]
        with suppress(NodeFailed):
            if once:
                self.runner.step(thread_id=thread)
            else:
                self.runner.invoke(thread_id=thread)

    @rule(pick=st.integers(0, 9), items=ITEMS, as_node=st.sampled_from([None, "scan", "team", "close"]))
    def edit(self, pick: int, items: list[int], as_node: str | None) -> None:
        thread = self.threads[pick % len(self.threads)]
        head = self.runner.open(thread).cursor.head
        self.runner.update_state(thread, {"items": items}, expected_step=head, as_node=as_node, actor="ann")

    @rule(pick=st.integers(0, 99), choice=st.sampled_from(["ok", "redo"]), number=st.integers(0, 9))
    def answer(self, pick: int, choice: str, number: int) -> None:
        """An answer through whichever thread of the family asks."""
        asking = [thread for thread in self.everyone() if self.runner.open(thread).cursor.pending]
        if not asking:
            return
        thread = asking[pick % len(asking)]
        pending = self.runner.open(thread).cursor.pending
        request = pending[pick % len(pending)]
        value: Any = choice if request.choices else number
        with suppress(AnswerRefused):
            self.runner.answer(thread, request.id, value, step=request.step, actor="ann")

    @rule(pick=st.integers(0, 9), back=st.integers(0, 9), changed=st.booleans())
    def fork(self, pick: int, back: int, changed: bool) -> None:
        if len(self.threads) >= 4:
            return
        parent = self.threads[pick % len(self.threads)]
        step = max(0, self.runner.open(parent).cursor.head - back)
        child = f"t{len(self.threads)}"
        self.runner.fork(parent, step, child, changes={"items": [1]} if changed else None, actor="ann")
        self.threads.append(child)
        if not changed:
            assert self.runner.get_state(child) == self.runner.get_state(parent, step)

    @rule(pick=st.integers(0, 9))
    def cancel(self, pick: int) -> None:
        with suppress(HitlError):
            self.runner.cancel(self.threads[pick % len(self.threads)])

    @rule(pick=st.integers(0, 9))
    def declassify(self, pick: int) -> None:
        thread = self.threads[pick % len(self.threads)]
        for channel in tuple(self.runner.open(thread).state.taint)[:1]:
            self.runner.declassify(thread, channel, actor="ann", reason="read it")


@pytest.mark.slow
def test_any_order(tmp_path: Path) -> None:
    run_in_any_order(Family, tmp_path, examples=20, steps=15)


@pytest.mark.slow
def test_a_fork_at_any_step_reaches_the_parents_state_hash(store: Checkpointer) -> None:
    """A map, a parallel and a graph inside, twice round; nobody is asked."""
    inner = (
        StateGraph({"given": Channel([], reducer="extend"), "sum": Channel(0)}, name="inner")
        .add_node("add", lambda state: {"sum": sum(state["given"])})
        .add_edge(START, "add")
        .add_edge("add", END)
    )
    runner = (
        StateGraph(CHANNELS)
        .add_map("scan", over="items", node=lambda state, config: {"found": [config.item], "total": 1})
        .add_node("left", lambda state: {"last": "left"})
        .add_node("right", lambda state: {"last": "right", "round": 1})
        .add_parallel("both", ["left", "right"])
        .add_subgraph("team", inner, inputs={"found": "given"}, outputs={"sum": "answers"})
        .add_edge(START, "scan")
        .add_edge("scan", "both")
        .add_edge("both", "team")
        .add_conditional_edge("team", lambda s: s["round"] < 2, {"true": "scan", "false": END})
        .compile(checkpointer=store)
    )
    runner.invoke({}, thread_id="t")
    points = list(runner.history("t"))
    for point in points:
        runner.fork("t", point.step, f"f{point.step}")
        runner.invoke(thread_id=f"f{point.step}")
        (newest,) = runner.history(f"f{point.step}", limit=1)
        assert newest.state_hash == points[0].state_hash
        check_log(runner, f"f{point.step}")
        assert runner.verify(f"f{point.step}", strict=True).ok
