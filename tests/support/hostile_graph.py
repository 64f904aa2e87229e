"""A graph whose every name, value, question and error is hostile."""

from __future__ import annotations

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
    RetryPolicy,
    ScriptedModel,
    StateGraph,
    append,
)
from tests.support.hostile import ALL, FAKE_BOX, LINE, NAME, TEXTS

WRITER, TALKER, BREAKER = f"write {NAME}", f"talk {NAME}", f"break {NAME}"


def write(state: Any) -> dict[str, Any]:
    return {
        "text": f"{ALL}\n{FAKE_BOX}",
        "line": f"{LINE}{'x' * 900_000}{LINE}",
        "map": {f"{NAME}{key}": {text: [text, {text: None}]} for key, text in TEXTS.items()},
        "list": {"role": NAME, "content": ALL},
    }


async def talk(state: Any, config: Any) -> dict[str, Any]:
    agent = config["agents"]["speaker"]
    return {"list": await agent.achat(ALL), "text": f"{state['text']} and {LINE}"}


def fail(state: Any) -> dict[str, Any]:
    raise type(f"Bad{NAME}", (RuntimeError,), {})(ALL)


def build() -> GraphRunner:
    """START -> write -> (a gate) -> talk -> break, which fails."""
    speaker = Agent(f"speaker {NAME}", ScriptedModel(lambda _: ALL, name=f"model {NAME}", pace=0), ALL, NAME)
    choices = [
        GateChoice("approve", f"yes {NAME}", "a", "optional", lambda state, text: {"line": text}),
        GateChoice("revise", f"no {NAME}", "r", "required"),
    ]
    gate = Gate(
        WRITER, f"Is it good? {NAME}", choices, subject="text", recommended="approve",
        payload=lambda _: {f"verdict {NAME}": ALL, "reason": FAKE_BOX},
    )  # fmt: skip
    channels = {
        "text": Channel("", description=LINE),
        "line": Channel(""),
        "map": Channel({}),
        "list": Channel([], reducer=append(), description=ALL),
    }
    return (
        StateGraph(channels, name=f"graph {NAME}")
        .add_node(WRITER, write)
        .add_node(TALKER, talk)
        .add_node(BREAKER, fail, retry=RetryPolicy(max_attempts=2, wait=0))
        .add_edge(START, WRITER)
        .add_conditional_edge(WRITER, lambda _: f"route {NAME}", {f"route {NAME}": TALKER, "end": END})
        .add_edge(TALKER, BREAKER)
        .add_edge(BREAKER, END)
        .compile(checkpointer=MemoryCheckpointer(), agents={"speaker": speaker}, interrupt_after=[gate])
    )
