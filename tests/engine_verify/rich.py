"""A store with everything a thread can have, and all that can be read of it."""

from __future__ import annotations

import re
from typing import Any

from hitl_tui import (
    END,
    START,
    Agent,
    Channel,
    GraphRunner,
    NodeResult,
    ScriptedModel,
    StateGraph,
    append,
)
from hitl_tui.agents.scripted import ToolCall
from hitl_tui.engine.graphs.gates import Gate, GateChoice
from hitl_tui.engine.subgraphs.below import inside
from hitl_tui.stores import Checkpointer
from hitl_tui.stores.transfer import export_thread, import_thread

QUORUM = Gate(
    "publish",
    "publish it?",
    [
        GateChoice("approve", "send it", values={"approved": True}),
        GateChoice("revise", "again", text="optional"),
    ],
    payload=lambda state: {"plan": state["plan"]},
    reviewers=["ann", "bob"],
    quorum=2,
    one_account=True,
    risk="high",
)


def weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


def graph() -> StateGraph:
    """fetch (external), agent with a tool, map, subgraph, a gate of two votes, publish."""
    inner = (
        StateGraph({"words": Channel([], reducer=append())}, name="team")
        .add_node("say", lambda _state: {"words": "said"})
        .add_edge(START, "say")
        .add_edge("say", END)
    )

    def ask(_state: Any, config: Any) -> dict[str, Any]:
        return {"notes": config.agents["a"].chat("go")}

    def scan(_state: Any, config: Any) -> dict[str, Any]:
        if config.index == 1:
            raise ValueError("no such page")
        return {"found": [config.item], "total": 0.5}

    channels = {
        "notes": Channel(["first"], reducer=append()),
        "found": Channel([], reducer="extend"),
        "total": Channel(0, reducer="sum"),
        "plan": Channel({"go": False}),
        "page": Channel(""),
        "secret": Channel("", visibility="private"),
        "said": Channel(None),
        "approved": Channel(False),
        "best": Channel("", reducer=longest),
    }
    return (
        StateGraph(channels, name="rich")
        .add_node("fetch", fetch, external="web")
        .add_node("ask", ask)
        .add_map("scan", over="plan.items", node=scan)
        .add_subgraph("team", inner, inputs={}, outputs={"words": "said"})
        .add_node("publish", lambda _state: NodeResult({"best": "published"}, text="done"))
        .add_compensation("unpublish", lambda _state, _config, args: {"notes": f"undone {args}"})
        .add_edge(START, "fetch")
        .add_edge("fetch", "ask")
        .add_edge("ask", "scan")
        .add_edge("scan", "team")
        .add_edge("team", "publish")
        .add_edge("publish", END)
    )


def longest(old: Any, new: Any) -> Any:
    return max(old or "", new, key=len)


def fetch(_state: Any) -> NodeResult:
    updates = {"page": "a page", "secret": "s3cret", "plan": {"go": True, "items": ["x", "y", "z"]}}
    return NodeResult(updates, text="fetched", compensation=("unpublish", {"id": 7, "rate": 0.5}))


def runner(store: Checkpointer) -> GraphRunner:
    """The graph on a store."""
    script = ScriptedModel([ToolCall("weather", {"city": "Bern"}), "it rains"] * 9, pace=0)
    agents = {"a": Agent("a", script, tools=[weather])}
    return graph().compile(checkpointer=store, agents=agents, interrupt_before=[QUORUM])


def fill(store: Checkpointer) -> None:
    """A thread that waits with one of two votes, a finished one, forks, one undone, one carried here."""
    made = runner(store)
    for thread in ("done", "undone", "waits"):
        made.invoke({"notes": "go", "goal": "a report"}, thread_id=thread)
        vote(made, thread, "ann")
        if thread != "waits":
            vote(made, thread, "bob")
            made.invoke(thread_id=thread)
    made.rollback("undone", actor="cy", note="wrong")
    made.update_state("waits", {"plan": {"go": True, "items": ["q"]}}, actor="dee", note="shorter")
    vote(made, "waits", "ann")
    made.fork("done", 3, "early", changes={"total": 2.5}, actor="eve")
    made.fork("done", 2, "bare", actor="eve")
    made.declassify("early", "page", actor="flo", reason="read it")
    import_thread(store, export_thread(store, "early", private=True), "carried")
    made.update_state("carried", {"approved": True}, actor="gil")


_CACHE = re.compile(rb',"snapshot":"[^"]*"')


def vote(made: GraphRunner, thread: str, actor: str) -> None:
    """Approve what a thread waits for."""
    waits = made.open(thread).cursor.pending[0]
    made.answer(thread, waits.id, "approve", step=waits.step, actor=actor, note=f"{actor} agrees")


def outputs(store: Checkpointer, names: list[str]) -> list[Any]:
    """All that anything can show of the threads of a store."""
    told: list[Any] = [store.threads("", 999), store.threads("", 999, 0, ""), store.threads(waiting=True)]
    for name in names:
        cursor = store.cursor(name)
        told += [
            name,
            store.info(name),
            store.cursor(name),
            store.children(name),
            store.summary(name),
            store.threads(within=name),
        ]
        if cursor is not None:
            # Snapshots are a cache: what is made of them is below.
            told += [_CACHE.sub(b"", line) for line in export_thread(store, name, private=True)][:-1]
            told.append([store.totals(name, step) for step in range(cursor.head + 1)])
            told.append([store.load_step(name, step) for step in range(cursor.head + 1)])
            told.append(inside(store, cursor))
    return told
