"""A node whose tool must not run twice; its process is killed inside the first call.

python -m tests.agents.paying_once FOLDER
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from hitl_tui import END, START, Channel, GraphRunner, SQLiteCheckpointer, StateGraph, ToolConfig
from hitl_tui.agents import Agent, ScriptedModel, Tool, ToolCall


def build(folder: Path) -> GraphRunner:
    """The graph; `folder/paid` gets the idempotency key of every call."""
    paid = folder / "paid"

    def pay(amount: int, config: ToolConfig) -> str:
        """Pay."""
        is_first = not paid.exists()
        with paid.open("a") as out:
            out.write(f"{config.idempotency_key}\n")
        if is_first:
            os.kill(os.getpid(), signal.SIGKILL)
        return "paid"

    def reply(messages: Any) -> Any:
        last = messages[-1]
        return ToolCall("pay", {"amount": 1}) if last["role"] == "user" else f"done: {last['content']}"

    agent = Agent("clerk", ScriptedModel(reply, pace=0), tools=[Tool(pay, effects="once")])
    graph = StateGraph({"out": Channel("")})
    graph.add_node("work", lambda _state, config: {"out": config.agents["clerk"].chat("go")})
    graph.add_edge(START, "work").add_edge("work", END)
    return graph.compile(checkpointer=SQLiteCheckpointer(folder / "t.db"), agents={"clerk": agent})


if __name__ == "__main__":
    build(Path(sys.argv[1])).invoke(thread_id="t")
