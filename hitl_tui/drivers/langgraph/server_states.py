"""Converts a server's replies to a local graph's objects: snapshots, stream parts, messages."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

from langgraph.types import Interrupt, PregelTask, StateSnapshot

MESSAGES: Final = {
    "human": "HumanMessage",
    "ai": "AIMessage",
    "system": "SystemMessage",
    "tool": "ToolMessage",
    "AIMessageChunk": "AIMessageChunk",
}
"""The classes of messages by the type that their JSON names."""
_ASKED: Final = inspect.signature(Interrupt).parameters.keys() & {"value", "id", "response_schema"}


def looks_like_message(value: Any) -> bool:
    """Whether JSON is most likely a message."""
    return isinstance(value, Mapping) and value.get("type") in MESSAGES and "content" in value


def no_state(config: Any) -> StateSnapshot:
    """Return the empty snapshot of a thread, or a subgraph's run, without checkpoints."""
    return StateSnapshot({}, (), config, None, None, None, (), ())


def snapshot_of(state: Mapping[str, Any], config: Any) -> StateSnapshot:
    """Convert a thread's state to a snapshot.

    Args:
        config: the requested config; `no_state` keeps it.
    """
    place = state.get("checkpoint")
    if not place or not place.get("checkpoint_id"):
        return no_state(config)
    return StateSnapshot(
        values=revived(state["values"]),
        next=tuple(state["next"] or ()),
        config=_config(place),
        metadata=dict(state["metadata"] or {}),  # type: ignore[arg-type]
        created_at=state["created_at"],
        parent_config=_config(parent) if (parent := state.get("parent_checkpoint")) else None,
        tasks=tuple(_task(task, config) for task in state["tasks"]),
        interrupts=tuple(_interrupt(each) for each in state.get("interrupts") or ()),
    )


def _task(task: Mapping[str, Any], config: Any) -> PregelTask:
    inner, place = task.get("state") or {}, task.get("checkpoint")
    if "configurable" in inner:  # aegra's form of a checkpoint
        inner, place = {}, inner["configurable"]
    return PregelTask(
        task["id"],
        task["name"],
        tuple(task.get("path") or ()),
        error=task["error"] or None,
        interrupts=tuple(_interrupt(each) for each in task["interrupts"]),
        state=snapshot_of(inner, config) if inner else _config(place) if place else None,
        result=revived(task.get("result")),
    )


def _interrupt(given: Mapping[str, Any]) -> Interrupt:
    """Convert an interrupt, without fields that the local LangGraph, perhaps older, does not know."""
    return Interrupt(**{name: value for name, value in given.items() if name in _ASKED})


def _config(place: Mapping[str, Any]) -> Any:
    names = ("thread_id", "checkpoint_ns", "checkpoint_id")
    return {"configurable": {name: place[name] for name in names if name in place}}


def revived_part(part: Any) -> Any:
    """Convert the messages and interrupts in a part of a stream to objects."""
    data = part["data"]
    if part["type"] == "messages":
        message, metadata = data
        return {**part, "data": (revived(message), metadata)}
    if part["type"] == "tasks" and "interrupts" in data:
        asked = [_interrupt(given) for given in data["interrupts"] or ()]
        return {**part, "data": {**data, "result": revived(data.get("result")), "interrupts": asked}}
    if part["type"] == "checkpoints":
        return {**part, "data": {**data, "values": revived(data["values"])}}
    return part


def revived(value: Any) -> Any:
    """Convert the messages in JSON to objects, if they are complete."""
    if isinstance(value, list):
        return [revived(item) for item in value]
    if not isinstance(value, dict):
        return value
    if looks_like_message(value):
        from langchain_core import messages

        try:
            return getattr(messages, MESSAGES[value["type"]])(**value)
        except Exception:  # a value of the graph that looks like a message
            return value
    return {key: revived(item) for key, item in value.items()}
