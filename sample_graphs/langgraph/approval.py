"""A question to a person, with a form for the answer: `interrupt(..., response_schema=...)`.

    hitl-tui run langgraph/approval --input amount=1200

The node runs again from its start when the answer comes, so code before `interrupt` runs twice.
"""

from typing import Literal

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict


class State(TypedDict):
    amount: int
    offer: str
    decision: str


class Decision(TypedDict):
    approved: bool
    amount: int
    reason: str


def draft(state: State) -> dict:
    return {"offer": f"We refund {state['amount']} €."}


def review(state: State) -> Command[Literal["pay", "refuse"]]:
    question = {"question": "Pay this out?", "offer": state["offer"]}
    decision = interrupt(question, response_schema=Decision)
    update = {"amount": decision["amount"], "decision": decision["reason"]}
    return Command(goto="pay" if decision["approved"] else "refuse", update=update)


def pay(state: State) -> dict:
    return {"offer": f"Paid: {state['amount']} €."}


def refuse(state: State) -> dict:
    return {"offer": "Refused."}


builder = StateGraph(State)
builder.add_node(draft)
builder.add_node(review)
builder.add_node(pay)
builder.add_node(refuse)
builder.add_edge(START, "draft")
builder.add_edge("draft", "review")
builder.add_edge("pay", END)
builder.add_edge("refuse", END)

graph = builder.compile(name="approval")
