"""A graph whose forms, tool calls, branches, inner graph, sources and handlers are all hostile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hitl_tui import (
    END,
    START,
    Agent,
    Channel,
    Gate,
    GateChoice,
    GraphRunner,
    MemoryCheckpointer,
    NodeResult,
    ScriptedModel,
    StateGraph,
    append,
)
from hitl_tui.agents import Tool, ToolCall
from tests.support.hostile import ALL, FAKE_BOX, LINE, NAME, TEXTS

ASK, CALLS, EACH, WEB, SEND = (f"{word} {NAME}" for word in ("ask", "calls", "each", "web", "send"))
DESK = "desk \u202e[red]\u200b/../漢#1@2 $(rm)"
"""A subgraph's name goes into thread ids, which hold no control characters."""
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        f"item {NAME}": {"type": "string", "description": ALL, "default": LINE},
        "colour": {"enum": [f"red {NAME}", LINE], "description": FAKE_BOX, "default": LINE},
        f"gift {NAME}": {"type": "boolean", "default": False},
    },
}
"""Every field has a value, so that it can be sent as it is."""


def ask(state: Any, config: Any) -> dict[str, Any]:
    return {"form": config.interrupt({"kind": "ask", "title": f"what {ALL}", "schema": SCHEMA})}


def calls(state: Any, config: Any) -> dict[str, Any]:
    asked = {
        "action_requests": [{"name": f"mail {NAME}", "args": {f"to {NAME}": ALL}, "description": ALL}],
        "review_configs": [{"action_name": f"mail {NAME}", "allowed_decisions": ["approve", "reject"]}],
    }
    return {"decided": config.interrupt(asked)["decisions"]}


def each(state: Any, config: Any) -> dict[str, Any]:
    config.emit(f"looking at {config.item} {ALL}")
    if config.index == 1:
        raise ValueError(ALL)
    return {"found": f"{config.item} {LINE}"}


def inner(store: Any) -> GraphRunner:
    gate = Gate(f"draft {NAME}", f"print {NAME}?", [GateChoice("ok", LINE, "a")], subject="text")
    return (
        StateGraph({"text": Channel("", description=ALL)}, name=f"inner {NAME}")
        .add_node(f"draft {NAME}", lambda state: {"text": ALL})
        .add_edge(START, f"draft {NAME}")
        .add_edge(f"draft {NAME}", END)
        .compile(checkpointer=store, interrupt_after=[gate])
    )


def fetch(state: Any) -> NodeResult:
    return NodeResult({"page": ALL, "secret": {LINE: ALL}}, compensation=(f"undo {NAME}", {NAME: ALL}))


def undo(state: Any, config: Any, args: Any) -> dict[str, Any]:
    raise RuntimeError(ALL)


async def send(state: Any, config: Any) -> dict[str, Any]:
    return {"found": await config.agents["helper"].achat(state["page"])}


def post(to: str) -> str:
    return ALL


def script(messages: Sequence[Mapping[str, Any]]) -> Any:
    if any(message["role"] == "tool" for message in messages):
        return ALL
    return [ALL, ToolCall("post", {"to": ALL})]


def build(checkpointer: Any = None) -> GraphRunner:
    """START -> a form -> tool calls -> a map -> an inner graph -> a page from outside -> an agent -> END."""
    store = checkpointer or MemoryCheckpointer()
    helper = Agent(
        "helper", ScriptedModel(script, name=f"model {NAME}"), ALL, tools=[Tool(post, approve="always")]
    )
    channels = {
        "items": Channel([NAME, *TEXTS.values()][:3]),
        "form": Channel({}),
        "decided": Channel(None),
        "found": Channel([], reducer=append()),
        "article": Channel(""),
        "page": Channel("", description=ALL),
        "secret": Channel({}, visibility="private", description=LINE),
    }
    graph = (
        StateGraph(channels, name=f"deep {NAME}")
        .add_node(ASK, ask)
        .add_node(CALLS, calls)
        .add_map(EACH, over="items", node=each)
        .add_subgraph(DESK, inner(store), inputs={}, outputs={"text": "article"})
        .add_node(WEB, fetch, external=f"web {NAME}", writes=["page", "secret"])
        .add_node(SEND, send, reads=["page"], on_taint="approve")
        .add_compensation(f"undo {NAME}", undo)
    )
    names = (ASK, CALLS, EACH, DESK, WEB, SEND)
    for source, target in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(source, target)
    return graph.compile(checkpointer=store, agents={"helper": helper})
