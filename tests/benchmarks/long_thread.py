"""Threads of any length in a store file, of a graph that the app can open again."""

from __future__ import annotations

from pathlib import Path

from hitl_tui import SQLiteCheckpointer
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.loading.sources import open_graph

GRAPH = """
import asyncio, os, time
from hitl_tui import END, START, Channel, StateGraph
from hitl_tui import Limits

STEPS = int(os.environ.get("STEPS", "0"))
PACE = float(os.environ.get("PACE", "0"))
TOKENS = float(os.environ.get("TOKENS", "0"))

def count(state):
    if os.environ.get("LITELLM"):
        from hitl_tui.agents.litellm_backend import preload
        preload().result()
    if PACE:
        time.sleep(PACE)
    return {"n": state["n"] + 1, "text": f"step {state['n'] + 1} " * 10}

async def write(state, config):
    for word in range(int(60 * TOKENS)):
        config.emit(f"word{word} ")
        await asyncio.sleep(1 / TOKENS)
    return {"n": state["n"] + 1}

def build(checkpointer):
    return (
        StateGraph({"n": Channel(0), "text": Channel("")}, name="long")
        .add_node("count", write if TOKENS else count)
        .add_edge(START, "count")
        .add_conditional_edge("count", lambda s: s["n"] < STEPS, {"true": "count", "false": END})
        .compile(checkpointer=checkpointer, limits=Limits(max_iterations=None))
    )
"""


def graph_file(folder: Path) -> Path:
    """The graph; its environment says how many steps it makes, and at what pace."""
    path = folder / "long.py"
    path.write_text(GRAPH)
    return path


def opened(folder: Path) -> tuple[GraphRunner, SQLiteCheckpointer]:
    """The graph on a store file in the same folder."""
    store = SQLiteCheckpointer(folder / "runs.db")
    return open_graph(str(graph_file(folder)), store), store
