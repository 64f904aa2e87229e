"""A run with a tool that needs approval, for a process that is killed while it waits.

    python -m tests.agents.crashing_tool STORE API_BASE SENT

Runs the thread `t` on; dies at once, without any clean-up, when it stops.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from hitl_tui import END, START, Channel, GraphRunner, SQLiteCheckpointer, StateGraph
from hitl_tui.agents import Agent, Tool


def build(store: str, api_base: str, sent: Path) -> GraphRunner:
    """A node whose agent looks something up and then sends a mail, which a person must agree to."""

    def note(what: str) -> None:
        with sent.open("a") as out:
            out.write(f"{what}\n")

    def lookup(name: str) -> str:
        """Find an address."""
        note(f"lookup {name}")
        return f"{name}@example.org"

    def send(to: str, text: str) -> str:
        """Send a mail."""
        note(f"send {to} {text}")
        return "sent"

    async def work(state, config):  # type: ignore[no-untyped-def]
        return {"answer": await config.agents["clerk"].achat(f"Write to {state['who']}")}

    clerk = Agent(
        "clerk", "openai/test", tools=[lookup, Tool(send, approve="always")],
        api_base=api_base, api_key="test-key-0123456789",
    )  # fmt: skip
    return (
        StateGraph({"who": Channel("ann"), "answer": Channel("")}, name="clerk")
        .add_node("work", work)
        .add_edge(START, "work")
        .add_edge("work", END)
        .compile(checkpointer=SQLiteCheckpointer(store), agents={"clerk": clerk})
    )


if __name__ == "__main__":
    build(sys.argv[1], sys.argv[2], Path(sys.argv[3])).invoke({}, thread_id="t")
    os.kill(os.getpid(), signal.SIGKILL)
