"""Graphs of LangGraph as its documentation writes them, for tests."""

from __future__ import annotations

import operator
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt
from typing_extensions import TypedDict


class Items(TypedDict):
    items: Annotated[list[Any], operator.add]
    n: int


def plan(state: Items) -> dict[str, Any]:
    return {"items": ["plan"], "n": 1}


def work(state: dict[str, Any]) -> dict[str, Any]:
    return {"items": [f"work {state['i']}"]}


def ask(state: Items) -> dict[str, Any]:
    return {"items": [interrupt("is it good?")], "n": len(state["items"])}


def fan_out(_state: Items) -> list[Send]:
    return [Send("work", {"i": place}) for place in range(2)]


def asking(checkpointer: Any) -> Any:
    """A plan, two workers at once, and a question."""
    graph = StateGraph(Items)
    graph.add_node("plan", plan)
    graph.add_node("work", work)
    graph.add_node("ask", ask)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", fan_out, ["work"])
    graph.add_edge("work", "ask")
    graph.add_edge("ask", END)
    return graph.compile(checkpointer=checkpointer)
