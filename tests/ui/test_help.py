"""The page of keys: it begins with those of the pane, and what is typed filters it."""

from __future__ import annotations

import pytest

from tests.ui.harness import desk


@pytest.mark.slow
async def test_it_begins_with_the_keys_of_the_pane_and_is_filtered_by_typing() -> None:
    async with desk() as it:
        await it.press("question_mark")
        await it.shows("In the pane Channels")
        await it.press("f", "o", "r", "k")
        await it.shows("Make a new thread from the shown step")
        await it.gone("In the pane Channels")
        await it.press("q")  # a letter of a word by now
        await it.shows("nothing matches")
        await it.press("escape")
        await it.until(lambda: it.app.screen is it.run)


@pytest.mark.slow
async def test_the_keys_that_open_and_close_it_do_so_while_nothing_is_typed() -> None:
    async with desk() as it:
        for key in ("question_mark", "q", "escape"):
            await it.press("question_mark")
            await it.shows("Keys, words and signs")
            await it.press(key)
            await it.until(lambda: it.app.screen is it.run)
