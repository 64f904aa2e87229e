"""Large values that change a little: every store keeps what changed, and gives every state back."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, StateGraph
from hitl_tui.engine.audit.verify import verify_tree
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.state.canonical import channel_hash, state_hash
from hitl_tui.stores import Checkpointer, MemoryCheckpointer
from hitl_tui.stores.transfer import export_thread, import_thread
from tests.support.spec import spec

pytestmark = spec("10")

STEPS = 12


def document() -> dict[str, Any]:
    return {f"part{a}": {f"leaf{b}": f"{a} {b} " * 40 for b in range(8)} for a in range(8)}


def joined(old: Any, new: Any) -> Any:
    return {**(old or {}), **new}


def edit(state: Any) -> dict[str, Any]:
    """One leaf more or less in each of the channels, by a copy of all and by a mapping around what stays."""
    n = state["n"]
    copied = copy.deepcopy(state["copied"])
    copied[f"part{n % 8}"][f"leaf{n % 5}"] = f"step {n}"
    if n == 4:
        del copied["part6"]["leaf7"]
    rows = list(state["rows"])
    rows[n % len(rows)] = {**rows[n % len(rows)], "seen": n}
    rows = rows[1:] if n % 3 == 0 else [*rows, {"text": "new " * 50}]
    part = {**state["joined"]["part1"], f"new{n}": n}
    return {
        "n": n + 1,
        "copied": copied,
        "rows": rows,
        "joined": {"part1": part},
        "merged": {**state["merged"], "part2": {**state["merged"]["part2"], "leaf1": 0.5 * n}},
        "secret": {**state["secret"], "part0": n},
        "text": state["text"].replace(f"sentence {n}.", f"Other words, {n}."),
        "same": "".join(list(state["same"])),
    }


def runner(store: Checkpointer) -> GraphRunner:
    channels = {
        "n": Channel(0),
        "copied": Channel(None),
        "rows": Channel([], reducer="overwrite"),
        "joined": Channel(document(), reducer=joined),
        "merged": Channel({}, reducer="merge"),
        "secret": Channel(document(), visibility="private"),
        "text": Channel(""),
        "same": Channel(""),
    }
    return (
        StateGraph(channels, name="large")
        .add_node("edit", edit)
        .add_edge(START, "edit")
        .add_conditional_edge("edit", lambda s: s["n"] < STEPS, {"true": "edit", "false": END})
        .compile(checkpointer=store)
    )


INPUT = {
    "copied": document(),
    "rows": [{"text": "row " * 100, "n": n} for n in range(10)],
    "merged": document(),
    "text": "".join(f"sentence {n}. " for n in range(60)),
    "same": "written again " * 60,
}


@pytest.fixture
def run(store: Checkpointer) -> GraphRunner:
    graph = runner(store)
    graph.invoke(INPUT, thread_id="t")
    graph.update_state("t", {"copied": {**graph.get_state("t")["copied"], "part0": "edited"}}, actor="ann")
    return graph


def states() -> list[dict[str, Any]]:
    """The state after each step, as it is without any store's help."""
    state: dict[str, Any] = {"n": 0, "joined": document(), "secret": document(), **copy.deepcopy(INPUT)}
    past = [copy.deepcopy(state)]
    for _ in range(STEPS):
        new = edit(state)
        state = {**state, **new, "joined": joined(state["joined"], new["joined"])}
        past.append(copy.deepcopy(state))
    state["copied"]["part0"] = "edited"
    return [*past, state]


def test_the_state_at_each_step_is_what_it_was_then(run: GraphRunner, store: Checkpointer) -> None:
    for step, expected in enumerate(states()):
        value = store.load_step("t", step)
        assert value == expected
        point = store.checkpoint("t", step)
        assert point is not None
        assert point.state_hash == state_hash({name: channel_hash(value[name]) for name in value})


def test_the_log_keeps_what_changed(run: GraphRunner, store: Checkpointer) -> None:
    records = [record for record in store.records("t", 1, STEPS + 1) if record.channel != "n"]
    assert {record.channel for record in records if "update" in record.patched} == set(INPUT) | {
        "joined",
        "secret",
    }
    assert {record.channel for record in records if "result" in record.patched} == {"joined"}
    assert {record.update == [] for record in records if record.channel == "same"} == {True}
    assert (records[-1].op, records[-1].patched) == ("set", ("update",))
    assert not any(record.patched for record in store.records("t", 0, 0))


def test_the_updates_of_a_step_are_complete(run: GraphRunner, store: Checkpointer) -> None:
    past = states()
    for step in range(1, STEPS + 1):
        updates = {update.channel: update for update in run.updates("t", step)}
        assert updates["copied"].update == updates["copied"].after == past[step]["copied"]
        assert updates["copied"].before == past[step - 1]["copied"]
        assert updates["secret"].update is PRIVATE


def test_verify_and_replay_find_nothing(run: GraphRunner, store: Checkpointer) -> None:
    assert run.verify("t", strict=True).ok
    assert verify_tree(store, "t").ok  # without the graph
    assert run.replay("t").ok


def test_a_fork_and_a_resumed_run_continue_from_a_large_value(run: GraphRunner, store: Checkpointer) -> None:
    run.fork("t", 5, "f", changes={"copied": {**states()[5]["copied"], "part3": {"leaf1": "other"}}})
    again = runner(store)
    again.invoke(None, thread_id="f")
    state = again.get_state("f")
    assert state["n"] == STEPS
    assert state["copied"]["part3"] == {"leaf1": "step 11"}
    assert again.verify("f", strict=True).ok


def test_an_export_brings_it_into_another_store(run: GraphRunner, store: Checkpointer) -> None:
    there = MemoryCheckpointer()
    import_thread(there, list(export_thread(store, "t", private=True)))
    assert there.load_step("t", STEPS) == states()[STEPS]
    assert runner(there).verify("t", strict=True).ok


def test_an_export_without_private_values_has_nothing_of_them(run: GraphRunner, store: Checkpointer) -> None:
    shown = [json.loads(line) for line in export_thread(store, "t")]
    records = [record for line in shown for record in line.get("records", ())]
    secret = [record for record in records if record["channel"] == "secret"]
    assert secret
    assert all(record["update"] == repr(PRIVATE) for record in secret)
    assert not any("patched" in record or "result" in record for record in secret)
    assert any("patched" in record for record in records)
