"""Graph files that ask, as their text."""

from __future__ import annotations

MAPPED = """
from hitl_tui import END, START, Channel, MemoryCheckpointer, StateGraph
def ask(state, config):
    return {"found": [config.item, config.interrupt({"kind": "approve", "title": f"Keep {config.item}?"})]}
channels = {"items": Channel(["ants", "bees"], reducer="overwrite"), "found": Channel([], reducer="append")}
graph = StateGraph(channels, name="mapped").add_map("scan", over="items", node=ask)
graph = graph.add_edge(START, "scan").add_edge("scan", END).compile(checkpointer=MemoryCheckpointer())
"""
