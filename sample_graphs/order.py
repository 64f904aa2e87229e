"""Ask a person for input with a form that is made from a type.

    hitl-tui run sample_graphs/order.py
    hitl-tui run sample_graphs/order.py --headless --thread o

`ask` waits inside the node until a person has filled in the form: on screen, in plain text mode (`--plain`)
or with `hitl-tui answer o REQUEST --step 0 --set item=tea --set amount=2 ...`. `check` shows the order again,
to be corrected or confirmed, before `place` saves it.
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
    """The fields of the form."""

    item: Annotated[str, msgspec.Meta(min_length=2, max_length=40)]
    amount: Amount
    address: Address
    wrapping: Literal["none", "paper", "box"] = "none"
    gift: bool = False


def ask(state: WorkflowState, config: Any) -> dict[str, Any]:
    """Ask for the order."""
    return {
        "order": config.interrupt({"kind": "ask", "title": "What would you like to order?", "schema": Order})
    }


def check(state: WorkflowState, config: Any) -> dict[str, Any]:
    """Let a person correct the order."""
    question = {"kind": "edit", "title": "Is this order correct?", "payload": dict(state["order"])}
    return {"order": config.interrupt(question)}


def place(state: WorkflowState) -> dict[str, Any]:
    """Save the order."""
    order = state["order"]
    return {"receipt": f"{order['amount']} x {order['item']} to {order['address']['city']}"}


def build() -> GraphRunner:
    """Return the graph: ask, check, place."""
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
