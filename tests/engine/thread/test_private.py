"""Private values and their hashes stay out of event streams; they are in the store."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hitl_tui import Channel, NodeFailed
from hitl_tui.engine.commands import UpdateState, execute
from hitl_tui.engine.log.events import PRIVATE, StepCommitted
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.state.canonical import channel_hash, item_hash
from hitl_tui.stores import Checkpointer
from tests.engine.building import chain, returning
from tests.support.spec import spec

pytestmark = spec("8")

WORDS = ("hunter2", "swordfish", "sesame", "letmein")
CHANNELS = {
    "key": Channel("swordfish", visibility="private"),
    "keys": Channel(["sesame"], reducer="append", visibility="private"),
    "open": Channel(0),
}


def secretive(store: Checkpointer) -> GraphRunner:
    node = returning({"key": "hunter2", "keys": "hunter2", "open": 1})
    return chain(CHANNELS, node).compile(checkpointer=store)


def all_events(store: Checkpointer) -> list[Any]:
    """What is told of an input, a node and a human's edit of private channels."""
    events: list[Any] = []
    runner = secretive(store)
    runner.invoke({"key": "letmein", "keys": "letmein"}, thread_id="t", on_event=events.append)
    session = runner.open("t", events.append)
    with session.writing():
        execute(
            session, UpdateState({"key": "swordfish", "keys": ["swordfish"]}, actor="ann", note="rotated")
        )
    return events


def test_no_event_has_a_private_value(store: Checkpointer) -> None:
    event_text = repr(all_events(store))
    assert "'open'" in event_text
    assert not any(word in event_text for word in WORDS)


def test_no_event_has_the_hash_of_a_private_value(store: Checkpointer) -> None:
    event_text = repr(all_events(store))
    lists = [["sesame"], ["sesame", "letmein"], ["sesame", "letmein", "hunter2"], ["swordfish"]]
    digests = [item_hash(word) for word in WORDS] + [channel_hash(value) for value in lists]
    assert not any(digest.hex() in event_text or repr(digest)[2:-1] in event_text for digest in digests)


def test_the_lens_shows_that_there_was_a_change(store: Checkpointer) -> None:
    steps = [event for event in all_events(store) if isinstance(event, StepCommitted)]
    assert len(steps) == 3
    for step in steps:
        lens = {update.channel: update for update in step.updates}
        key = lens["key"]
        assert (key.visibility, key.before, key.update, key.after) == ("private", PRIVATE, PRIVATE, PRIVATE)
        assert key.changed
        assert repr(key.after) == "[private]"


def test_the_updates_of_a_step_from_the_log_show_no_private_value(store: Checkpointer) -> None:
    all_events(store)
    runner = secretive(store)
    shown = repr([runner.updates("t", step) for step in range(3)])
    assert "[private]" in shown
    assert not any(word in shown for word in WORDS)


@spec("14")
def test_the_store_has_them(store: Checkpointer) -> None:
    all_events(store)
    records = {(r.step, r.channel): r for r in store.records("t", 0, 9)}
    assert records[1, "key"].update == "hunter2"
    assert records[1, "key"].visibility == "private"
    assert records[1, "open"].visibility == "public"
    assert secretive(store).get_state("t", 1)["keys"] == ["sesame", "letmein", "hunter2"]


def test_a_node_that_names_a_private_channel_reads_it(store: Checkpointer) -> None:
    node = lambda state, config: {"open": len(state["key"])}  # noqa: E731
    runner = chain(CHANNELS, node, reads=["key"]).compile(checkpointer=store)
    assert runner.invoke(thread_id="t")["open"] == 9


@pytest.mark.parametrize(
    "update",
    [{"key": {"password": "hunter2"}}, {"keys": "hunter2", "open": object()}],
    ids=["a private update that fails", "a private update beside one that fails"],
)
def test_a_failed_update_shows_no_private_value(update: dict[str, Any]) -> None:
    channels = {**CHANNELS, "key": Channel("", schema=str, visibility="private")}
    events: list[Any] = []
    with pytest.raises(NodeFailed) as caught:
        chain(channels, returning(update)).compile().invoke(on_event=events.append)
    assert "hunter2" not in repr(events)
    assert "hunter2" not in str(caught.value) + caught.value.details


SECRET_KEYS: dict[str, tuple[Any, Any]] = {
    "a value under it is no JSON": (None, {"hunter2": object()}),
    "beside it stands a key that is no text": (None, {"hunter2": {1: 2}}),
    "a value under it is not a number": (None, {"hunter2": float("nan")}),
    "a text under it is broken": (None, {"hunter2": {"a": "\ud800"}}),
    "a value under it does not fit": ({"additionalProperties": {"type": "string"}}, {"hunter2": 1}),
    "a value deep under it does not fit": (
        {"additionalProperties": {"properties": {"age": {"type": "integer"}}}},
        {"hunter2": {"age": "x"}},
    ),
    "it is not allowed": ({"additionalProperties": False, "properties": {"a": {}}}, {"hunter2": 1}),
    "it is not evaluated": ({"unevaluatedProperties": False}, {"hunter2": 1}),
    "it is not allowed in the one of two that is meant": (
        {"anyOf": [{"type": "object", "additionalProperties": False}, {"type": "null"}]},
        {"hunter2": 1},
    ),
    "a value under it does not fit the one of two that is meant": (
        {"anyOf": [{"type": "null"}, {"type": "object", "additionalProperties": {"type": "string"}}]},
        {"hunter2": 1},
    ),
    "it is too long a name": ({"propertyNames": {"maxLength": 2}}, {"hunter2": 1}),
}


@pytest.mark.parametrize(("schema", "update"), SECRET_KEYS.values(), ids=SECRET_KEYS)
def test_a_failed_update_shows_no_key_of_a_private_value(schema: Any, update: Any) -> None:
    channels = {"key": Channel(None, schema=schema, visibility="private", reducer="merge")}
    events: list[Any] = []
    with pytest.raises(NodeFailed, match="channel 'key'") as caught:
        chain(channels, returning({"key": update})).compile().invoke(on_event=events.append)
    assert "hunter2" not in repr(events)
    assert "hunter2" not in str(caught.value) + caught.value.details


def test_a_failed_update_names_the_keys_that_the_schema_of_a_private_channel_has() -> None:
    schema = {"properties": {"age": {"type": "integer"}}}
    channels = {"key": Channel({}, schema=schema, visibility="private", reducer="merge_deep")}
    with pytest.raises(NodeFailed, match=r"channel 'key' at age: \[private\] is not of type"):
        chain(channels, returning({"key": {"age": "hunter2"}})).compile().invoke()


def test_a_question_names_a_private_subject_and_shows_what_its_payload_says(store: Checkpointer) -> None:
    """Title, payload and answer are public; the subject is a channel, told as any other."""

    def recorded(question: dict[str, Any], thread: str) -> str:
        node = lambda state, config: config.interrupt({"kind": "approve", **question})  # noqa: E731
        events: list[Any] = []
        runner = chain(CHANNELS, node).compile(checkpointer=store)
        assert runner.invoke(thread_id=thread, on_event=events.append).pending
        return repr((events, store.ledger(thread)))

    assert "swordfish" not in recorded({"subject": "key"}, "t")
    assert "swordfish" in recorded({"payload": {"key": "swordfish"}}, "u")


def test_a_stream_shows_no_private_value(store: Checkpointer) -> None:
    channels = {"key": Channel("hunter2", visibility="private"), "open": Channel(0)}
    runner = chain(channels, returning({"open": 1})).compile(checkpointer=store)
    (step,) = list(runner.stream(thread_id="t"))
    assert "hunter2" not in repr(step)
    assert repr(step.state) == "{'key': [private], 'open': 1}"


def test_events_are_frozen(store: Checkpointer) -> None:
    for event in all_events(store):
        assert isinstance(event, msgspec.Struct)
        with pytest.raises(AttributeError, match="immutable"):
            setattr(event, event.__struct_fields__[0], None)
