"""Reasons to pick from, on the card: numbers pick them, they go with the answer, and nothing decides."""

from __future__ import annotations

import pytest

from hitl_tui import MemoryCheckpointer
from hitl_tui.engine.thread.measures import Reason
from hitl_tui.view.presence import Attention
from tests.support.spec import spec
from tests.ui.harness import live
from tests.ui.test_claiming import reviewed

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
        await it.shows("1 It is too long   2 Wrong tone!", "or numbers")
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
