"""Across subgraphs, what is private inside is not shown outside."""

from __future__ import annotations

import msgspec

from hitl_tui import END, START, Channel, Gate, GateChoice, StateGraph
from hitl_tui.stores import Checkpointer
from tests.engine.nodes.graphs import Events
from tests.support.spec import spec

pytestmark = spec("8")


def test_a_private_subject_of_a_question_inside_is_not_shown_on_the_parent(store: Checkpointer) -> None:
    gate = Gate("write", "good?", [GateChoice("ok", "good")], subject="secret")
    inner = (
        StateGraph({"secret": Channel("", visibility="private"), "open": Channel("")}, name="inner")
        .add_node("write", lambda _s: {"secret": "Ada L.", "open": "fine"})
        .add_edge(START, "write")
        .add_edge("write", END)
        .compile(checkpointer=store, interrupt_after=[gate])
    )
    runner = (
        StateGraph({"out": Channel("")})
        .add_subgraph("team", inner, inputs={}, outputs={"open": "out"})
        .add_edge(START, "team")
        .add_edge("team", END)
        .compile(checkpointer=store)
    )
    events = Events()
    (request,) = runner.invoke({}, thread_id="t", on_event=events).pending
    runner.answer("t", request.id, "ok", step=request.step, actor="ann")
    assert runner.invoke(thread_id="t", on_event=events)["out"] == "fine"
    encoded = b"".join(msgspec.json.encode(event, enc_hook=repr) for event in events.all)
    assert b"Ada" not in encoded
    assert b"Ada" not in msgspec.json.encode([store.ledger("t"), store.cursor("t")], enc_hook=repr)
    assert runner.get_state("t/team#1")["secret"] == "Ada L."
