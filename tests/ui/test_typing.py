"""What is pasted into a line: its text, without what could steer a terminal or deceive a reader."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.events import Paste

from hitl_tui.ui.widgets.safe_text import SafeInput
from tests.support.hostile import TEXTS
from tests.ui.harness import desk


class OneLine(App[None]):
    def compose(self) -> ComposeResult:
        yield SafeInput("be\x1bgin ")


async def test_controls_are_left_out_of_a_paste_and_the_rest_is_kept():
    app = OneLine()
    async with app.run_test() as pilot:
        field = app.query_one(SafeInput)
        field.focus()
        field.post_message(Paste("a\x1b[2Jb\x9b31m\u202ec\u200bd [/]\nsecond line"))
        await pilot.pause()
        assert field.value == "begin a[2Jb31mcd [/]"
        field.selection = type(field.selection)(0, 6)
        field.post_message(Paste("\x1bX"))
        await pilot.pause()
        assert field.value == "Xa[2Jb31mcd [/]"


@pytest.mark.slow
async def test_hostile_pastes_reach_no_field_of_a_screen():
    async with desk() as it:
        await it.press("f")
        await it.shows("name of the new thread")
        field = it.app.screen.focused
        assert isinstance(field, SafeInput)
        for text in TEXTS.values():
            field.post_message(Paste(text))
        await it.pilot.pause()
        assert not [
            char for char in field.value if ord(char) < 32 or 127 <= ord(char) < 160 or char == "\u202e"
        ]
