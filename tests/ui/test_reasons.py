"""Reasons to pick from, on the card: numbers pick them, they go with the answer, and nothing decides."""

from __future__ import annotations

import pytest

from hitl_tui import END, START, Channel, Gate, GateChoice, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.engine.thread.measures import Reason
from hitl_tui.view.presence import Attention
from tests.support.spec import spec
from tests.ui.harness import live
from tests.ui.test_claiming import card, reviewed

pytestmark = spec("11")

REASONS = (Reason("too-long", "It is too long"), Reason("tone", "Wrong tone!"))


@pytest.mark.slow
async def test_numbers_pick_reasons_that_are_sent_with_the_answer() -> None:
    store = MemoryCheckpointer()
    runner = reviewed(store)
    runner.invoke({}, thread_id="t")
    async with live(runner, ready="WAITING") as it:
        it.run.attention = Attention(look_seconds=60, reasons=REASONS)
        await it.press("d")
        await it.shows("1 It is too long   2 Wrong tone!", "numbers)")
        await it.until(lambda: it.card.review.state == "open", "the moment to read being over")
        await it.press("2", "1")
        await it.shows("1 [x] It is too long", "2 [x] Wrong tone!")
        await it.press("2")
        await it.shows("1 [x] It is too long   2 Wrong tone!")
        assert it.card.review.state == "open"
        await it.press("9")
        await it.shows("9 is not an answer here")
        await it.until(lambda: it.card.review._typed_until < it.card._clock(), "the moment after a letter")
        await it.press("r", *"Cut it.", "enter", "enter")
        await it.shows("sending “send back”")
        await it.press("enter")
        await it.until(lambda: store.ledger("t")[-1].kind == "answer", "the answer")
        entry = store.ledger("t")[-1]
        assert entry.data["reasons"] == ["too-long"]
        assert entry.data["answer"] == {"choice": "revise", "text": "It is too long. Cut it."}


def scored(store: MemoryCheckpointer) -> GraphRunner:
    gate = Gate("write", "Print it?", [GateChoice("approve", "print it", "a")], rubric=["accuracy", "tone"])
    graph = StateGraph({"text": Channel("")}, name="memo").add_node(
        "write", lambda state: {"text": "A memo."}
    )
    graph = graph.add_edge(START, "write").add_edge("write", END)
    return graph.compile(checkpointer=store, interrupt_after=[gate])


@pytest.mark.slow
async def test_a_rubric_is_scored_in_a_dialog_and_sent_with_the_answer() -> None:
    async with card(scored) as (it, store):
        await it.shows("score: accuracy -, tone -")
        await it.press("%")
        await it.shows("Scores", "accuracy", "tone", "From 1 to 5")
        await it.press("6", "enter", "enter")
        await it.shows("'accuracy=6' is not a score")
        await it.press("backspace", "4", "enter", "enter")
        await it.shows("score: accuracy 4, tone -")
        assert it.card.review.state == "open"
        await it.press("a")
        await it.shows("sending “print it”")
        await it.press("enter")
        await it.until(lambda: store.ledger("t")[-1].kind == "answer", "the answer")
        assert store.ledger("t")[-1].data["scores"] == {"accuracy": 4}
