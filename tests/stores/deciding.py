"""A process that runs steps and decides, and says what it was told is stored: `deciding.py STORE DURABILITY`.

It ends as if it were killed, with nothing closed.
"""

from __future__ import annotations

import os
import sys
from typing import Any, cast

from hitl_tui import END, START, Channel, Gate, GateChoice, GraphRunner, StateGraph, open_store
from hitl_tui.engine.log.store import Durability


def review() -> StateGraph:
    """Three steps, a gate, three steps, and so on."""
    graph = StateGraph({"n": Channel(0), "said": Channel("")})
    for name in ("one", "two", "three"):
        graph.add_node(name, lambda state, config: {"n": state["n"] + 1})
    graph.add_edge(START, "one").add_edge("one", "two").add_edge("two", "three")
    return graph.add_conditional_edge(
        "three", lambda state: "on" if state["n"] < 9 else "out", {"on": "one", "out": END}
    )


def runner_on(store: Any) -> GraphRunner:
    """The graph with its gate, over a store."""
    gate = Gate("three", title="go on?", choices=(GateChoice("yes", "yes", values={"said": "yes"}),))
    return review().compile(checkpointer=store, interrupt_after=[gate])


def main() -> None:
    """Decide three times, and edit once."""
    place, durability = sys.argv[1:]
    runner = runner_on(open_store(place, cast(Durability, durability)))
    result = runner.invoke({"n": 0}, thread_id="t")
    for number in range(1, 4):
        request = result.pending[0]
        runner.answer(
            "t", request.id, {"choice": "yes"}, step=request.step, actor="ann", note=f"answer {number}"
        )
        print(f"answer {number}", flush=True)
        if number < 3:
            result = runner.invoke(thread_id="t")
            print(f"step {result.step}", flush=True)
    runner.update_state("t", {"said": "edited"}, actor="ben", note="edit 1")
    print("edit 1", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
