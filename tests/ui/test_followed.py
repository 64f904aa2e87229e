"""The page of what came of one's decisions stays, and moves on with the thread."""

from __future__ import annotations

from tests.ui.test_waiting_threads import card_of, waiting


async def test_it_tells_what_ran_and_what_is_asked_next() -> None:
    async with waiting() as it:
        await it.press("F")
        await it.shows("What followed your decisions", "has decided nothing in this thread")
        await it.press("F")
        await it.gone("What followed your decisions")
        await it.press("d")
        await card_of(it, "t")
        await it.press("a")
        await it.press("n")  # what is on its way is sent before the next one opens
        await it.until(lambda: any(entry.kind == "answer" for entry in it.session.view.ledger), "answered")
        await it.press("F")
        await it.shows("What followed your decisions", "approve to “Is it good?”", "take back by fork")
