"""A log with every kind of channel and of change, and what a report tells of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hitl_tui import Channel, GraphRunner, StateGraph, append
from hitl_tui.engine.audit.findings import VerifyReport
from hitl_tui.engine.log.records import END, START
from hitl_tui.stores import Checkpointer


def longest(old: Any, new: Any) -> Any:
    return max(old or "", new, key=len)


def graph(longest: Callable[[Any, Any], Any] = longest, total: str = "sum") -> StateGraph:
    def write(state: Any, _config: Any) -> dict[str, Any]:
        n = state["n"]
        return {
            "notes": f"{n} " + "x" * 300,
            "found": [n, {"n": n}],
            "n": n + 1,
            "total": 2,
            "facts": {f"k{n % 3}": n},
            "recent": n,
            "tags": [n % 4, "t"],
            "word": "w" * (n % 5),
            "secret": f"pw-{n}",
        }

    return (
        StateGraph(
            {
                "notes": Channel(["first"], reducer=append()),
                "found": Channel([], reducer="extend"),
                "n": Channel(0),
                "total": Channel(0, reducer=total),
                "facts": Channel({"given": True}, reducer="merge"),
                "recent": Channel([], reducer="last_n(3)"),
                "tags": Channel([], reducer="set_union"),
                "word": Channel("", reducer=longest),
                "secret": Channel("", visibility="private"),
                "idle": Channel({"never": "written"}),
            }
        )
        .add_node("write", write)
        .add_edge(START, "write")
        .add_conditional_edge("write", lambda s: "end" if s["n"] >= 80 else "on", {"end": END, "on": "write"})
    )


CHANNELS = 9


def run(store: Checkpointer, steps: int = 80) -> GraphRunner:
    runner = graph().compile(checkpointer=store, interrupt_after=["write"] if steps < 80 else ())
    runner.invoke({"notes": "go"}, thread_id="t", max_iterations=90)
    for _ in range(steps - 1 if steps < 80 else 0):
        runner.invoke(thread_id="t", max_iterations=90)
    runner.update_state("t", {"notes": ["edited"], "total": 7}, actor="ann", note="better")
    runner.extend_limits("t", actor="ann", max_iterations=99)
    runner.extend_limits("t", actor="ann", max_iterations=100)
    return runner


def mismatches_in(report: VerifyReport) -> list[tuple[Any, ...]]:
    return [(found.kind, found.seq, found.step, found.channel, found.field) for found in report.mismatches]
