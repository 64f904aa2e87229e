"""A graph with a mistake, for the debugger: a judge says "n/a", and the score is taken from that."""

from __future__ import annotations

import re
from typing import Any

from hitl_tui import END, START, Channel, StateGraph

REPLIES = ("0.4", "0.9", "n/a")


def collect(state: Any, config: Any) -> dict[str, Any]:
    return {"facts": [{"source": "ab"[state["n"] % 2] + ".csv"}], "n": state["n"] + 1}


def number_in(reply: str) -> float:
    number = re.search(r"[\d.]+", reply)
    return float(number[0])  # type: ignore[index]  # the mistake


def score(state: Any, config: Any) -> dict[str, Any]:
    reply = REPLIES[state["n"] - 1]
    text = f"rows are observations, {len(state['facts'])} facts"
    return {"score": number_in(reply), "report": text}


def merge(state: Any, config: Any) -> dict[str, Any]:
    return {}


def build() -> StateGraph:
    channels = {
        "facts": Channel([], reducer="extend"),
        "score": Channel(0.2),
        "n": Channel(0),
        "report": Channel(""),
        "token": Channel("sesame", visibility="private"),
    }
    graph = StateGraph(channels, name="score")
    graph.add_node("collect", collect).add_node("score", score).add_node("merge", merge)
    graph.add_edge(START, "collect").add_edge("collect", "score").add_edge("score", "merge")
    ways = {"again": "collect", "enough": END}
    return graph.add_conditional_edge("merge", lambda state: "again" if state["n"] < 9 else "enough", ways)
