"""A graph that goes round until its process is killed: a node, a map and a graph inside."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hitl_tui import END, START, Channel, GraphRunner, Limits, SQLiteCheckpointer, StateGraph
from hitl_tui.engine.log.events import Event, RunStarted
from hitl_tui.stores import Checkpointer

KEYS = Channel([], reducer="append")


def calls(store_path: Path) -> Path:
    """Where nodes write down that they ran, out of reach of any transaction."""
    return store_path.with_suffix(".calls")


def runner(store: Checkpointer, store_path: Path) -> GraphRunner:
    """Each node notes the key of its step, in a file before and in its channel with the commit."""

    def note(_state: Any, config: Any) -> dict[str, Any]:
        with calls(store_path).open("a") as file:
            file.write(f"{config.idempotency_key}\n")
        return {"keys": config.idempotency_key}

    inner = (
        StateGraph({"keys": KEYS}, name="inner")
        .add_node("first", note)
        .add_node("second", note)
        .add_edge(START, "first")
        .add_edge("first", "second")
        .add_edge("second", END)
    )
    return (
        StateGraph({"keys": KEYS, "items": Channel([1, 2], reducer="overwrite"), "inside": KEYS})
        .add_node("one", note)
        .add_map("each", over="items", node=note)
        .add_subgraph("team", inner, inputs={}, outputs={"keys": "inside"})
        .add_edge(START, "one")
        .add_edge("one", "each")
        .add_edge("each", "team")
        .add_conditional_edge("team", lambda _state: "on", {"on": "one", "end": END})
        .compile(checkpointer=store, limits=Limits(max_iterations=None))
    )


def begins(event: Event) -> bool:
    """Whether a run of the thread itself begins, with its input committed."""
    return isinstance(event, RunStarted) and event.thread_id == "t"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    run = runner(SQLiteCheckpointer(path), path)
    # Said once the thread is there, however slow the machine is: it is killed a moment later.
    run.invoke(thread_id="t", on_event=lambda event: print("runs", flush=True) if begins(event) else None)
