"""Text from a web page is tainted, and a person must approve it before it is mailed.

    hitl-tui run sample_graphs/webpage.py
    hitl-tui run sample_graphs/webpage.py --headless --thread w
    hitl-tui taint w
    hitl-tui declassify w mail --reason "read it, no instructions in it"

`fetch` is declared external, so the page it writes is tainted, and so is everything written by a node that
read it. `send` asks for approval of exactly what it would read: if you edit the mail, it asks again. The page
is the file webpage.html beside this one, which contains hidden text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph, WorkflowState

PAGE = Path(__file__).with_name("webpage.html")


def fetch(state: WorkflowState) -> dict[str, Any]:
    """Read the page."""
    return {"page": PAGE.read_text(encoding="utf-8")}


def summarise(state: WorkflowState) -> dict[str, Any]:
    """Keep the title and all paragraphs, the hidden ones too."""
    paragraphs = re.findall(r"<p[^>]*>(.*?)</p>", state["page"], re.DOTALL)
    return {"summary": [text.strip() for text in paragraphs]}


def write(state: WorkflowState) -> dict[str, Any]:
    """Write the mail."""
    return {"mail": {"to": state["reader"], "text": "\n\n".join(state["summary"])}}


def send(state: WorkflowState) -> dict[str, Any]:
    """Pretend to send it."""
    mail = state["mail"]
    return {"sent": f"to {mail['to']}: {len(mail['text'])} characters"}


def build() -> GraphRunner:
    """Return the graph: fetch, summarise, write, send."""
    channels = {
        "reader": Channel("ann@example.com", schema=str, description="who gets the mail"),
        "page": Channel("", schema=str, description="the page as it was fetched"),
        "summary": Channel([], reducer="overwrite", description="its paragraphs"),
        "mail": Channel({}, reducer="overwrite"),
        "sent": Channel("", schema=str),
    }
    return (
        StateGraph(channels, name="webpage")
        .add_node("fetch", fetch, reads=[], writes=["page"], external="web")
        .add_node("summarise", summarise, reads=["page"], writes=["summary"])
        .add_node("write", write, reads=["reader", "summary"], writes=["mail"])
        .add_node("send", send, reads=["mail"], writes=["sent"], on_taint="approve")
        .add_edge(START, "fetch")
        .add_edge("fetch", "summarise")
        .add_edge("summarise", "write")
        .add_edge("write", "send")
        .add_edge("send", END)
        .compile(checkpointer=MemoryCheckpointer())
    )
