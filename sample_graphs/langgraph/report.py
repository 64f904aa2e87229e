"""A subgraph: the node `research` is a graph, which you can step into.

hitl-tui run langgraph/report --input question="Why is the sky blue?"
"""

import operator
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class ResearchState(TypedDict):
    question: str
    queries: list[str]
    notes: Annotated[list[str], operator.add]


class ReportState(TypedDict):
    question: str
    notes: Annotated[list[str], operator.add]
    report: str


def plan(state: ResearchState) -> dict:
    return {"queries": [f"{state['question']} {word}" for word in ("causes", "history")]}


def read(state: ResearchState) -> dict:
    return {"notes": [f"A page about: {query}" for query in state["queries"]]}


research = StateGraph(ResearchState)
research.add_node(plan)
research.add_node(read)
research.add_edge(START, "plan")
research.add_edge("plan", "read")
research.add_edge("read", END)


def write(state: ReportState) -> dict:
    return {"report": "\n".join([f"# {state['question']}", *(f"- {note}" for note in state["notes"])])}


builder = StateGraph(ReportState)
builder.add_node("research", research.compile())
builder.add_node(write)
builder.add_edge(START, "research")
builder.add_edge("research", "write")
builder.add_edge("write", END)

graph = builder.compile(name="report")
