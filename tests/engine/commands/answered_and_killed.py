"""A run whose process is killed after a person's answer and before the step that it allows is saved."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from hitl_tui import END, START, Channel, GraphRunner, StateGraph, open_store
from hitl_tui.stores import Checkpointer


def runner(store: Checkpointer, payments: Path, *, hang: bool = False) -> GraphRunner:
    """A graph of one node, which asks whether to pay an amount and notes each payment in a file."""

    def pay(state: Any, config: Any) -> dict[str, Any]:
        amount = state["amount"]
        question = {"kind": "approve", "title": f"Pay {amount}?", "payload": amount, "subject": "amount"}
        answer = config.interrupt(question)
        if hang:
            print("answered", flush=True)
            threading.Event().wait()
        with payments.open("a") as file:
            file.write(f"{answer} {amount}\n")
        return {"paid": answer}

    graph = StateGraph({"amount": Channel(0), "paid": Channel("")}).add_node("pay", pay)
    return graph.add_edge(START, "pay").add_edge("pay", END).compile(checkpointer=store)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    paying = runner(open_store(str(path)), path.with_suffix(".paid"), hang=True)
    (asked,) = paying.invoke({"amount": 10}, thread_id="t").pending
    paying.answer("t", asked.id, "approve", step=asked.step, actor="ann")
    paying.invoke(thread_id="t")
