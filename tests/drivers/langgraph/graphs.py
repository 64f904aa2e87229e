"""Graphs of LangGraph's that the tests of its driver run."""

from __future__ import annotations

import inspect
import operator
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt
from pydantic import BaseModel, field_validator
from typing_extensions import TypedDict

Ran = list[str]
HAS_SCHEMAS = "response_schema" in inspect.signature(interrupt).parameters
"""Whether this LangGraph knows the schema of an answer."""


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    draft: str
    score: int


class Verdict(TypedDict):
    approved: bool
    why: str


def two_reviews(ran: Ran) -> StateGraph[Any]:
    """Two nodes at once, each of which asks; both lead to `publish`."""

    def plan(_state: State) -> State:
        ran.append("plan")
        return {"log": ["plan"], "draft": "first"}

    def legal(_state: State) -> State:
        ran.append("legal")
        return {"log": [f"legal {interrupt({'question': 'is it legal?'})}"]}

    def style(_state: State) -> State:
        ran.append("style")
        answer = interrupt("is it good style?", **_schema())
        return {"log": [f"style {answer}"]}

    def publish(_state: State) -> State:
        ran.append("publish")
        return {"log": ["publish"]}

    graph = StateGraph(State)
    for node in (plan, legal, style, publish):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "legal")
    graph.add_edge("plan", "style")
    graph.add_edge(["legal", "style"], "publish")
    graph.add_edge("publish", END)
    return graph


def _schema() -> dict[str, Any]:
    """`response_schema=` where this LangGraph knows it."""
    return {"response_schema": Verdict} if HAS_SCHEMAS else {}


def fan_out(ran: Ran) -> StateGraph[Any]:
    """A map over three items by Send, each of which asks."""

    def start(_state: State) -> State:
        return {"log": ["start"]}

    def each(_state: State) -> list[Send]:
        return [Send("look", {"draft": name}) for name in ("a", "b", "c")]

    def look(state: State) -> State:
        ran.append(state["draft"])
        return {"log": [f"{state['draft']}: {interrupt(state['draft'])}"]}

    graph = StateGraph(State)
    graph.add_node("start", start)
    graph.add_node("look", look)
    graph.add_edge(START, "start")
    graph.add_conditional_edges("start", each, ["look"])
    return graph


def team_of(ran: Ran) -> StateGraph[Any]:
    """A subgraph, `team`, whose second node asks."""

    def gather(_state: State) -> State:
        ran.append("gather")
        return {"log": ["gather"]}

    def ask(_state: State) -> State:
        ran.append("ask")
        return {"log": [f"ask {interrupt('inside?')}"]}

    team = StateGraph(State)
    team.add_node("gather", gather)
    team.add_node("ask", ask)
    team.add_edge(START, "gather")
    team.add_edge("gather", "ask")
    graph = StateGraph(State)
    graph.add_node("before", lambda _state: {"draft": "given"})
    graph.add_node("team", team.compile())
    graph.add_edge(START, "before")
    graph.add_edge("before", "team")
    return graph


def routed(_ran: Ran) -> StateGraph[Any]:
    """`write`, then by its score `revise` or `publish`; a route that raises without a draft."""

    def write(_state: State) -> State:
        return {"log": ["write"], "draft": "d", "score": 1}

    def way(state: State) -> str:
        if not state.get("draft"):
            raise ValueError("no draft to route by")
        return "publish" if state.get("score", 0) > 5 else "revise"

    def revise(state: State) -> State:
        return {"log": ["revise"], "score": state.get("score", 0) + 1}

    graph = StateGraph(State)
    graph.add_node("write", write)
    graph.add_node("revise", revise)
    graph.add_node("publish", lambda _state: {"log": ["publish"]})
    graph.add_edge(START, "write")
    graph.add_conditional_edges("write", way, ["publish", "revise"])
    graph.add_edge("revise", "write")
    graph.add_edge("publish", END)
    return graph


class Size(BaseModel):
    """An answer with a rule that no JSON Schema tells."""

    size: int

    @field_validator("size")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("size must be even")
        return value


def picky() -> StateGraph[Any]:
    """A node that asks for an even number."""

    def ask(_state: State) -> State:
        return {"score": interrupt("how large?", response_schema=Size).size}

    graph = StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    return graph


def asks_twice() -> StateGraph[Any]:
    """A node with two questions in the same words."""
    graph = StateGraph(State)
    graph.add_node("ask", lambda _state: {"log": [f"{interrupt('name?')} {interrupt('name?')}"]})
    graph.add_edge(START, "ask")
    return graph
