"""No stored or emitted fact of a failure quotes a private value, however it is written.

All outputs are made of these: events, the error of the cursor, steps, decisions, and the raised error.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from hitl_tui import (
    END,
    START,
    Artifact,
    Channel,
    MemoryCheckpointer,
    NodeResult,
    StateGraph,
    custom_condition,
)
from hitl_tui.errors import HitlError
from tests.support.spec import spec

pytestmark = spec("8")

# Text that is written in other ways when it is quoted, part of a path, a number, and text deep in a value.
# Put together here, so that the lines of code that a failure keeps do not hold it.
TEXT = "".join(reversed('18yzzyx-é\n8"q-yranac'))
PIN = int("".join(reversed("32615184")))
DEEP = {"card": {"number": "".join(reversed("2177-yranac-9294"))}}
CANARIES = (TEXT[-7:], TEXT[:8], str(PIN), DEEP["card"]["number"][5:])


@dataclass
class Token:
    value: str


def chained(state: Any) -> None:
    try:
        raise ValueError(state["text"])
    except ValueError as error:
        raise RuntimeError("no") from error


def noted(state: Any) -> None:
    error = ValueError("no")
    error.add_note(f"with {state['text']}")
    raise error


def warned(state: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn(f"it is {state['text']}", stacklevel=1)
    logging.getLogger("a library").error("it is %s", state["text"])
    print("it is", state["text"])
    raise ValueError("no")


def asserted(state: Any) -> None:
    assert state["text"] == "x", f"it was {state['text']}"


def raising(make: Callable[[Any], BaseException]) -> Callable[[Any], None]:
    def node(state: Any) -> None:
        raise make(state)

    return node


WAYS: dict[str, Callable[[Any], Any]] = {
    "a key": raising(lambda state: KeyError(state["text"])),
    "a conversion": lambda state: {"n": float(state["text"])},
    "an assertion": asserted,
    "a cause": chained,
    "a note": noted,
    "a group": raising(
        lambda state: ExceptionGroup("two", [ValueError(state["text"]), KeyError(state["text"])])
    ),
    "a number": raising(lambda state: ValueError(f"pin {state['pin']} is wrong")),
    "a part of a value": raising(lambda state: KeyError(state["deep"]["card"]["number"])),
    "JSON": raising(lambda state: ValueError(json.dumps({"got": state["text"]}))),
    "an object": raising(lambda state: ValueError(f"bad {Token(state['text'])}")),
    "a file's name": raising(lambda state: FileNotFoundError(2, "no such file", state["text"])),
    "a time-out": raising(lambda state: TimeoutError(state["text"])),
    "prints, a log and a warning": warned,
    "an unknown channel": lambda state: {state["text"]: 1},
    "a schema": lambda state: {"n": state["text"]},
    "a reducer": lambda state: {"total": state["text"]},
    "a reducer of one's own": lambda state: {"own": state["text"]},
    "an artifact": lambda state: NodeResult({}, artifacts=(Artifact(state["text"], "text/plain", "x"),)),
    "a status": lambda state: NodeResult({}, status=state["text"]),
}
PLACES = ("a branch", "a route", "a route's key", "a condition", "a subgraph")


def everything_kept(way: str) -> str:
    """All that is kept and told of a run that fails in one way."""
    channels = {
        "text": Channel("", visibility="private"),
        "pin": Channel(0, visibility="private"),
        "deep": Channel({}, visibility="private"),
        "n": Channel(0, schema={"type": "integer"}),
        "total": Channel(0, reducer="sum"),
        "own": Channel(0, reducer=lambda _old, new: float(new)),
        "items": Channel(["x"], reducer="overwrite"),
    }
    built = StateGraph(channels, name="p")
    built.add_node("put", lambda _state: {"text": TEXT, "pin": PIN, "deep": DEEP}).add_edge(START, "put")
    built.add_edge("put", "do")
    options: dict[str, Any] = {}
    match way:
        case "a branch":
            built.add_map("do", over="items", node=WAYS["a key"], on_error="fail")
        case "a subgraph":
            inner = StateGraph({"text": Channel("", visibility="private")}, name="inner")
            inner.add_node("in", WAYS["a key"]).add_edge(START, "in").add_edge("in", END)
            built.add_subgraph("do", inner, inputs={"text": "text"}, outputs={})
        case _:
            built.add_node("do", WAYS.get(way, lambda _state: {}))
    if way == "a condition":
        options["termination"] = custom_condition(lambda state: {}[state["text"]])
    if way.startswith("a route"):
        route = WAYS["a key"] if way == "a route" else lambda state: state["text"]
        built.add_conditional_edge("do", route, {"on": END})
    else:
        built.add_edge("do", END)
    store, events = MemoryCheckpointer(), []
    runner = built.compile(checkpointer=store, **options)
    facts: list[Any] = []
    with suppress(HitlError):
        try:
            runner.invoke({}, thread_id="t", on_event=events.append)
        except HitlError as error:
            facts += [error.message, error.hint, str(error)]
            raise
    assert facts, "it did not fail"
    for thread in ("t", *store.inner_names("t")):
        cursor = store.cursor(thread)
        assert cursor is not None
        facts += [cursor.error, cursor.streamed, store.checkpoints(thread, None, 9), store.ledger(thread)]
    return repr(facts) + msgspec.json.encode(facts, enc_hook=repr).decode() + repr(events)


@pytest.mark.parametrize("way", [*WAYS, *PLACES])
def test_no_fact_of_a_failure_quotes_a_private_value(way: str) -> None:
    said = everything_kept(way)
    assert not [canary for canary in CANARIES if canary in said], said
