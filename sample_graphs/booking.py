"""A trip that can be rolled back: each booking registers how to undo it.

    hitl-tui run sample_graphs/booking.py --thread trip --input city=Lisbon
    hitl-tui rollback trip                        (or U on screen)

A rollback runs the handlers in reverse order. Here they only pretend; a real one would call the airline with
`config.idempotency_key`, since a handler interrupted by a crash runs again. With `--input hotel_desk=closed`
the hotel can't be cancelled: car and flight are still undone. Edit hotel_desk to open, and the next rollback
does the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hitl_tui import (
    END,
    START,
    Channel,
    Gate,
    GateChoice,
    InputField,
    MemoryCheckpointer,
    NodeResult,
    RetryPolicy,
    StateGraph,
    WorkflowState,
)

PRICES = {"flight": 320, "hotel": 410, "car": 120}


def book(what: str) -> Callable[..., NodeResult]:
    """Return a node that books one thing and says how to undo it."""

    def node(state: WorkflowState, config: Any) -> NodeResult:
        reference = f"{what.upper()}-{config.idempotency_key[:6]}"
        return NodeResult(
            {
                "bookings": {what: reference},
                "price": PRICES[what],
                "log": f"booked the {what} to {state['city']}",
            },
            compensation=(f"cancel_{what}", {"reference": reference}),
        )

    return node


def cancel(what: str) -> Callable[..., dict[str, Any]]:
    """Return the handler that cancels one booking; it gets the node's args."""

    def handler(state: WorkflowState, config: Any, args: dict[str, str]) -> dict[str, Any]:
        if what == "hotel" and state["hotel_desk"] == "closed":
            raise RuntimeError("the hotel desk is closed")
        return {
            "bookings": {what: None},
            "price": -PRICES[what],
            "log": f"cancelled {args['reference']}",
        }

    return handler


def build() -> Any:
    """Return the graph: flight, hotel, car; then a person pays, or rolls everything back."""
    pay = Gate(
        "car",
        title="Pay for this trip?",
        subject="bookings",
        payload=lambda state: {"price": state["price"]},
        choices=[GateChoice("pay", "pay", values={"paid": True}, text="optional")],
    )
    graph = StateGraph(
        {
            "city": Channel("Lisbon", schema=str),
            "hotel_desk": Channel("open", schema={"enum": ["open", "closed"]}),
            "bookings": Channel({}, reducer="merge"),
            "price": Channel(0, reducer="sum"),
            "paid": Channel(False, schema=bool),
            "log": Channel([], reducer="append"),
        },
        name="booking",
    )
    for what in PRICES:
        graph.add_node(what, book(what), reads=["city"], writes=["bookings", "price", "log"])
        graph.add_compensation(f"cancel_{what}", cancel(what), retry=RetryPolicy(max_attempts=2, wait=0.2))
    for source, target in zip([START, *PRICES], [*PRICES, END], strict=True):
        graph.add_edge(source, target)
    return graph.compile(
        checkpointer=MemoryCheckpointer(),
        interrupt_after=[pay],
        inputs=[InputField("city", "city", "Where to?", "Lisbon")],
        output="bookings",
    )


graph = build()
