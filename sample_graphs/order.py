"""Ask a person for what is missing, with a form drawn from a type.

    hitl-tui run sample_graphs/order.py
    hitl-tui run sample_graphs/order.py --headless --thread o

`ask` stops inside the node until somebody has filled in the form, on screen, in lines (`--plain`) or with
`hitl-tui answer o REQUEST --step 0 --set item=tea --set amount=2 ...`.  `check` shows what was filled in
once more, to be corrected or left as it is, before `place` writes the order down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph, WorkflowState

Amount = Annotated[int, msgspec.Meta(ge=1, le=100, description="how many of them")]


@dataclass
class Address:
    """Where to send it."""

    street: str
    city: str


@dataclass
class Order:
    """What the form asks for."""

    item: Annotated[str, msgspec.Meta(min_length=2, max_length=40)]
    amount: Amount
    address: Address
    wrapping: Literal["none", "paper", "box"] = "none"
    gift: bool = False


def ask(state: WorkflowState, config: Any) -> dict[str, Any]:
    """Ask for the order."""
    return {"order": config.interrupt({"kind": "ask", "title": "What shall it be?", "schema": Order})}


def check(state: WorkflowState, config: Any) -> dict[str, Any]:
    """Let somebody correct it."""
    question = {"kind": "edit", "title": "Is it all right so?", "payload": dict(state["order"])}
    return {"order": config.interrupt(question)}


def place(state: WorkflowState) -> dict[str, Any]:
    """Write it down."""
    order = state["order"]
    return {"receipt": f"{order['amount']} x {order['item']} to {order['address']['city']}"}


def build() -> GraphRunner:
    """The graph: ask, check, place."""
    return (
        StateGraph({"order": Channel({}), "receipt": Channel("", schema=str)}, name="order")
        .add_node("ask", ask)
        .add_node("check", check)
        .add_node("place", place)
        .add_edge(START, "ask")
        .add_edge("ask", "check")
        .add_edge("check", "place")
        .add_edge("place", END)
        .compile(checkpointer=MemoryCheckpointer())
    )
