"""Graphs with a map and with a subgraph that never end in the process that runs this module."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

from hitl_tui import END, START, Channel, GraphRunner, SQLiteCheckpointer, StateGraph
from hitl_tui.stores import Checkpointer

CHANNELS = {"items": Channel(["a", "b", "c"], reducer="overwrite"), "log": Channel([], reducer="append")}


def calls(path: Path) -> list[str]:
    """What ran, as the nodes wrote it down out of reach of any transaction."""
    return path.with_suffix(".calls").read_text().splitlines()


def runner(store: Checkpointer, path: Path, kind: str, *, hang: bool = False) -> GraphRunner:
    def note(what: str, config: Any) -> None:
        with path.with_suffix(".calls").open("a") as file:
            file.write(f"{what} {config.attempt} {config.idempotency_key} {os.getpid()}\n")

    def stay() -> None:
        if hang:
            print("in the node", flush=True)
            threading.Event().wait()

    def branch(_state: Any, config: Any) -> dict[str, Any]:
        note(config.item, config)
        if config.index == 2:
            stay()
        return {"log": config.item}

    def first(_state: Any, config: Any) -> dict[str, Any]:
        note("first", config)
        return {"log": "first"}

    def second(_state: Any, config: Any) -> dict[str, Any]:
        note("second", config)
        stay()
        return {"log": "second"}

    graph = StateGraph(CHANNELS)
    if kind == "map":
        graph.add_map("work", over="items", node=branch, max_concurrent=1)
    else:
        inner = StateGraph({"log": Channel([], reducer="append")})
        inner.add_node("first", first).add_node("second", second)
        inner.add_edge(START, "first").add_edge("first", "second").add_edge("second", END)
        graph.add_subgraph("work", inner, inputs={}, outputs={"log": "log"})
    return graph.add_edge(START, "work").add_edge("work", END).compile(checkpointer=store)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    runner(SQLiteCheckpointer(place), place, sys.argv[2], hang=True).invoke(thread_id="t")
