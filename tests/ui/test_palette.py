"""The palette: every action by its name, and by the words of what it does."""

from __future__ import annotations

import pytest

from tests.ui.harness import desk


@pytest.mark.slow
async def test_an_action_is_found_by_its_name_and_by_what_it_does():
    async with desk() as it:
        await it.press("ctrl+p")
        await it.shows("Search for commands")
        for typed, found in (
            ("fork", "Fork  (f)"),
            ("try it again", "Step  (s)"),
            ("raise the limit", "Raise limit  (m)"),
            ("COMMITTED STEPS", "Quit"),
        ):
            await it.press("end", "ctrl+u")
            await it.paste(typed)
            await it.shows(found)
            await it.gone("Oldest  (0)")


@pytest.mark.slow
async def test_what_is_chosen_is_done():
    async with desk() as it:
        await it.press("ctrl+p")
        await it.shows("Search for commands")
        await it.press(*"all keys", "enter")
        await it.shows("Keys, words and signs", "esc Back")
