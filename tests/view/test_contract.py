"""The contract of a node in words: what it may read and write, its policies, and what it did."""

from __future__ import annotations

from typing import Any

from hitl_tui import END, START, Channel, MemoryCheckpointer, RetryPolicy, StateGraph
from hitl_tui.view.spans import plain_text
from hitl_tui.view.taint import contract_lines
from tests.support.spec import spec

pytestmark = [spec("6"), spec("8")]


def test_it_says_what_a_node_may_and_what_it_did_in_its_step() -> None:
    def node(state: Any) -> dict[str, Any]:
        return {"out": state["plan.steps"], "log": "done"}

    options: dict[str, Any] = {"external": "web", "on_taint": "warn", "retry": RetryPolicy(3), "timeout": 2}
    channels = {"page": Channel(""), "plan": Channel({"steps": 1}), "out": Channel(0), "log": Channel("")}
    graph = StateGraph(channels)
    graph.add_node("n", node, reads=["page", "plan.steps"], writes=["log", "out", "page"], **options)
    runner = graph.add_edge(START, "n").add_edge("n", END).compile(checkpointer=MemoryCheckpointer())
    runner.invoke(thread_id="t", on_event=lambda _event: None)
    info = runner.graph.info.node("n")
    assert info is not None
    may = [
        "may read        page, plan.steps",
        "may write       log, out, page",
        "brings in       web",
        "on taint        warn: it runs, and the ledger says so",
        "tried           up to 3 times",
        "may take        2 s",
    ]
    assert [plain_text(line) for line in contract_lines(info, None, ())] == may
    (point,) = runner.history("t", limit=1)
    did = ["", "step 1: read    plan.steps", "step 1: wrote   log, out"]
    assert [plain_text(line) for line in contract_lines(info, point, runner.updates("t", 1))] == may + did
