"""A node whose agent calls three tools; its process may be killed before or after any model or tool call.

python -m tests.agents.killed_at_calls FOLDER POINT EFFECTS
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hitl_tui import END, START, Channel, GraphRunner, SQLiteCheckpointer, StateGraph, ToolConfig
from hitl_tui.agents import Agent, ScriptedModel, Tool, ToolCall
from hitl_tui.agents.tools import Effects

TOOLS = ("look", "pay", "send")
MODEL_CALLS = tuple(f"model {number}" for number in range(len(TOOLS) + 1))
AT_THE_END = "before the end"
POINTS = [*(f"{when} {call}" for call in (*MODEL_CALLS, *TOOLS) for when in ("before", "after")), AT_THE_END]
"""Where a process can be killed: before a call does anything, where the call before it is recorded, and after
it is made and before it is recorded itself."""


class Made:
    """A file with a line for each call that was made."""

    def __init__(self, folder: Path, point: str = "") -> None:
        self._file = folder / "made"
        self._point = point

    def begin(self, call: str) -> None:
        """A call begins; the one before it is recorded."""
        if self._point == f"before {call}":
            os.kill(os.getpid(), signal.SIGKILL)

    def end(self, call: str, key: str) -> None:
        """What the call does is done; it is not recorded yet."""
        with self._file.open("a") as out:
            out.write(f"{call}\t{key}\n")
        if self._point == f"after {call}":
            os.kill(os.getpid(), signal.SIGKILL)

    def lines(self) -> list[list[str]]:
        """Each call that was made, with its key."""
        text = self._file.read_text() if self._file.exists() else ""
        return [line.split("\t") for line in text.splitlines()]


def build(folder: Path, effects: Effects, point: str = "") -> GraphRunner:
    """The graph; its process is killed at `point`."""
    made = Made(folder, point)

    def tool(name: str) -> Tool:
        def run(config: ToolConfig) -> str:
            """Do it."""
            made.begin(name)
            made.end(name, config.idempotency_key)
            return f"{name} done"

        return Tool(run, name=name, effects=effects)

    def reply(messages: Sequence[Mapping[str, Any]]) -> Any:
        number = sum(turn["role"] == "tool" for turn in messages)
        made.begin(MODEL_CALLS[number])
        made.end(MODEL_CALLS[number], "")
        return ToolCall(TOOLS[number]) if number < len(TOOLS) else "done"

    def work(_state: Any, config: Any) -> dict[str, str]:
        said = config.agents["clerk"].chat("go")
        made.begin("the end")
        return {"out": said}

    agent = Agent("clerk", ScriptedModel(reply, pace=0), tools=[tool(name) for name in TOOLS])
    graph = StateGraph({"out": Channel("")}).add_node("work", work)
    graph.add_edge(START, "work").add_edge("work", END)
    return graph.compile(checkpointer=SQLiteCheckpointer(folder / "t.db"), agents={"clerk": agent})


if __name__ == "__main__":
    build(Path(sys.argv[1]), "once" if sys.argv[3] == "once" else "repeatable", sys.argv[2]).invoke(
        thread_id="t"
    )
