"""Graphs of LangGraph's that the tests of its driver run."""

from __future__ import annotations

import asyncio
import inspect
import operator
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt
from pydantic import BaseModel, field_validator
from typing_extensions import TypedDict

from hitl_tui.engine.commands import Pause

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


def asking_in_the_middle(ran: Ran) -> StateGraph[Any]:
    """`before`, `ask`, which asks, `review`, `send`."""

    def ask(_state: State) -> State:
        ran.append("ask")
        return {"log": [f"ask {interrupt('send it?')}"]}

    def note(name: str) -> Any:
        def node(_state: State) -> State:
            ran.append(name)
            return {"log": [name]}

        return node

    graph = StateGraph(State)
    graph.add_node("before", lambda _state: {"draft": "given"})
    graph.add_node("ask", ask).add_node("review", note("review")).add_node("send", note("send"))
    graph.add_edge(START, "before").add_edge("before", "ask")
    graph.add_edge("ask", "review").add_edge("review", "send")
    return graph


def asking_on_a_branch(ran: Ran) -> StateGraph[Any]:
    """`before`, then `ask`, which asks, or `skip`, then `send`."""
    graph = asking_in_the_middle(ran)
    branches = StateGraph(State)
    for name in ("before", "ask", "send"):
        branches.add_node(name, graph.nodes[name].runnable)
    branches.add_node("skip", lambda _state: {"log": ["skip"]})
    branches.add_edge(START, "before").add_conditional_edges("before", lambda _: "ask", ["ask", "skip"])
    branches.add_edge("ask", "send").add_edge("skip", "send")
    return branches


def _pair(ran: Ran, name: str = "") -> StateGraph[Any]:
    """`one`, then `two`."""
    graph = StateGraph(State)
    for node in ("one", "two"):
        words = f"{name} {node}".strip()
        graph.add_node(node, lambda _state, words=words: (ran.append(words), {"log": [words]})[1])
    graph.add_edge(START, "one")
    graph.add_edge("one", "two")
    return graph


def two_teams(ran: Ran) -> StateGraph[Any]:
    """Two subgraphs at once, `a` and `b`."""
    graph = StateGraph(State)
    for name in ("a", "b"):
        graph.add_node(name, _pair(ran, name).compile())
        graph.add_edge(START, name)
    return graph


def nested(ran: Ran, *, checkpointer: bool | None = None) -> StateGraph[Any]:
    """A subgraph `middle` whose node `inmost` is one, too.

    Args:
        checkpointer: of `middle`.
    """
    middle = StateGraph(State)
    middle.add_node("inmost", _pair(ran).compile())
    middle.add_edge(START, "inmost")
    graph = StateGraph(State)
    graph.add_node("middle", middle.compile(checkpointer=checkpointer))
    graph.add_edge(START, "middle")
    return graph


PAUSE: dict[str, Any] = {}
"""The driver that a node of `paused_inside` pauses, and the loop on which."""


def paused_inside(ran: Ran, asynchronous: bool) -> StateGraph[Any]:
    """A subgraph whose first node asks for a pause, and waits until it has been heard."""

    def one(_state: State) -> State:
        ran.append("one")
        driver, loop = PAUSE["driver"]
        asyncio.run_coroutine_threadsafe(driver.execute(Pause()), loop).result(60)
        return {"log": ["one"]}

    async def one_async(_state: State) -> State:
        ran.append("one")
        driver, loop = PAUSE["driver"]
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(driver.execute(Pause()), loop))
        return {"log": ["one"]}

    inner = StateGraph(State)
    inner.add_node("one", one_async if asynchronous else one)
    inner.add_node("two", lambda _state: (ran.append("two"), {"log": ["two"]})[1])
    inner.add_edge(START, "one")
    inner.add_edge("one", "two")
    graph = StateGraph(State)
    graph.add_node("team", inner.compile())
    graph.add_edge(START, "team")
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
