"""`verify --strict` on forks: what the parent asked needs no answer in the fork, which asks it anew."""

from __future__ import annotations

from typing import Any

from hitl_tui import END, START, Channel, MemoryCheckpointer, StateGraph


def pay(state: Any, config: Any) -> dict[str, Any]:
    return {"out": config.interrupt(f"pay {state['amount']}?")}


def test_a_question_before_the_fork_needs_no_answer_in_it() -> None:
    graph = StateGraph({"out": Channel(""), "amount": Channel(0)})
    graph.add_node("draft", lambda state: {}).add_node("pay", pay)
    graph.add_edge(START, "draft").add_edge("draft", "pay").add_edge("pay", END)
    runner = graph.compile(checkpointer=MemoryCheckpointer())
    runner.invoke(thread_id="t")
    runner.update_state("t", {"amount": 1}, actor="eve")
    runner.fork("t", runner.open("t").cursor.head, "fork")
    runner.update_state("fork", {"amount": 0}, actor="eve")
    runner.invoke(thread_id="fork")
    (asked,) = runner.open("fork").cursor.pending
    runner.answer("fork", asked.id, "yes", step=asked.step, actor="ann")
    assert runner.invoke(thread_id="fork").status == "completed"
    assert runner.verify("fork", strict=True).ok
