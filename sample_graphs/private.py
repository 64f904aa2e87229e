"""Private channels: kept in the store, masked everywhere, read only by nodes that name them.

    hitl-tui run sample_graphs/private.py
    hitl-tui run sample_graphs/private.py --headless --thread p
    hitl-tui show p
    hitl-tui reveal p patient

`enrol` writes who the patient is. `assess` declares that it reads only the age, so it can't read the name.
`report` may read every public channel, so not the private one. Screens, plain text mode, `--json` and exports
show `[private]`; `reveal` shows the value and logs that you looked.
"""

from __future__ import annotations

from typing import Any

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph, WorkflowState


def enrol(state: WorkflowState) -> dict[str, Any]:
    """Write who the patient is."""
    return {"patient": {"name": "Ada L.", "age": 36}}


def assess(state: WorkflowState) -> dict[str, Any]:
    """Judge only by the age."""
    return {"risk": "low" if state["patient.age"] < 60 else "high"}


def report(state: WorkflowState) -> dict[str, Any]:
    """Write what everybody may know."""
    return {"report": f"risk: {state['risk']} (channels seen: {', '.join(state)})"}


def build() -> GraphRunner:
    """Return the graph: enrol, assess, report."""
    channels = {
        "patient": Channel({}, reducer="merge", visibility="private", description="who it is"),
        "risk": Channel("", schema=str),
        "report": Channel("", schema=str),
    }
    return (
        StateGraph(channels, name="private")
        .add_node("enrol", enrol, reads=[], writes=["patient"])
        .add_node("assess", assess, reads=["patient.age"], writes=["risk"])
        .add_node("report", report, reads=["*"], writes=["report"])
        .add_edge(START, "enrol")
        .add_edge("enrol", "assess")
        .add_edge("assess", "report")
        .add_edge("report", END)
        .compile(checkpointer=MemoryCheckpointer())
    )
