"""A graph of ten steps, two of which a person decides about, for workers that are killed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from hitl_tui import END, START, Channel, Gate, GateChoice, MemoryCheckpointer, StateGraph, append

STEPS = [f"s{number}" for number in range(1, 11)]
ASKS = ("s3", "s7")
TEMPO = "FLEET_TEMPO"
"""Of the environment: seconds that a step takes, so that some are killed in the middle."""


def work(name: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A node that writes its name."""

    def node(state: Mapping[str, Any]) -> dict[str, Any]:
        time.sleep(float(os.environ.get(TEMPO, "0")))
        return {"n": state["n"] + 1, "log": name}

    return node


def build() -> StateGraph:
    """START -> s1 -> ... -> s10 -> END."""
    made = StateGraph({"n": Channel(0), "log": Channel([], reducer=append())}, name="fleet")
    for name in STEPS:
        made.add_node(name, work(name))
    for source, target in zip([START, *STEPS], [*STEPS, END], strict=True):
        made.add_edge(source, target)
    return made


graph = build().compile(
    checkpointer=MemoryCheckpointer(),
    interrupt_after=[Gate(name, f"after {name}?", [GateChoice("yes", "go on")]) for name in ASKS],
)
