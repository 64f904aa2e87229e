"""A fan-out: `Send` starts a parallel task for each subject, and a reducer collects the jokes.

hitl-tui run langgraph/jokes --input topic=animals
"""

import operator
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict


class OverallState(TypedDict):
    topic: str
    subjects: list[str]
    jokes: Annotated[list[str], operator.add]
    best: str


class JokeState(TypedDict):
    subject: str


def choose_subjects(state: OverallState) -> dict:
    known = {"animals": ["lions", "elephants", "penguins"], "tools": ["hammers", "saws"]}
    return {"subjects": known.get(state["topic"], [state["topic"]])}


def tell_joke(state: JokeState) -> dict:
    return {"jokes": [f"Why do {state['subject']} never use a debugger? They step on every bug."]}


def continue_to_jokes(state: OverallState) -> list[Send]:
    return [Send("tell_joke", {"subject": subject}) for subject in state["subjects"]]


def choose_best(state: OverallState) -> dict:
    return {"best": max(state["jokes"], key=len)}


builder = StateGraph(OverallState)
builder.add_node(choose_subjects)
builder.add_node(tell_joke)
builder.add_node(choose_best)
builder.add_edge(START, "choose_subjects")
builder.add_conditional_edges("choose_subjects", continue_to_jokes, ["tell_joke"])
builder.add_edge("tell_joke", "choose_best")
builder.add_edge("choose_best", END)

graph = builder.compile(name="jokes")
