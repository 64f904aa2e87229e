"""A score board of typed channels: each player's turn is checked before it counts.

    hitl-tui run sample_graphs/scores.py
    hitl-tui run sample_graphs/scores.py --headless --thread s
    hitl-tui show s --channel board

Every channel has a type, given as a Python type, a pydantic model or a JSON Schema, and a reducer that says
how a turn is added. The four turns run in parallel. Cheater writes half a point, which the type does not
allow, so nothing of that turn counts, and the step keeps the reason.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph, WorkflowState


class Turn(BaseModel):
    """One player's turn."""

    player: str
    points: int = Field(ge=0, le=20)


TURNS = [("Ada", 7), ("Bob", 12), ("Cheater", 20.5), ("Ada", 9)]
CHANNELS = {
    "turns": Channel(TURNS, reducer="overwrite", description="who plays, and the points they get"),
    "board": Channel([], reducer="append", schema=list[Turn], description="the turns that count"),
    "players": Channel([], reducer="set_union", schema=list[str], description="each name once"),
    "total": Channel(0, reducer="sum", schema={"type": "integer"}),
    "best": Channel(None, reducer="max", schema={"type": ["integer", "null"]}),
    "least": Channel(None, reducer="min", schema={"type": ["integer", "null"]}),
    "referee": Channel(
        [],
        reducer='by_type({"note": "append", "notes": "extend"})',
        schema=list[str],
        description="what the referee says: each type of message has its own reducer",
    ),
    "winner": Channel("", schema=str),
}


def play(state: WorkflowState, config: Any) -> dict[str, Any]:
    """Play one turn: all of it counts, or nothing."""
    player, points = config.item
    return {
        "board": {"player": player, "points": points},
        "players": player,
        "total": points,
        "best": points,
        "least": points,
    }


def judge(state: WorkflowState) -> dict[str, Any]:
    """Add up the board, which has only complete turns."""
    sums: dict[str, int] = {}
    for turn in state["board"]:
        sums[turn["player"]] = sums.get(turn["player"], 0) + turn["points"]
    out = len(state["turns"]) - len(state["board"])
    return {
        "winner": max(sums, key=lambda name: sums[name]),
        "referee": {"type": "note", "content": f"turns that did not count: {out}"},
    }


def build() -> GraphRunner:
    """Return the graph: play each turn in parallel, then judge."""
    return (
        StateGraph(CHANNELS, name="scores")
        .add_map("play", over="turns", node=play)
        .add_node("judge", judge)
        .add_edge(START, "play")
        .add_edge("play", "judge")
        .add_edge("judge", END)
        .compile(checkpointer=MemoryCheckpointer(), output="winner")
    )


graph = build()
