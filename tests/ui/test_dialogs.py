"""Dialogs that hear more about their question while they come or go."""

from __future__ import annotations

from hitl_tui.ui.screens.dialogs import Dialog, Option
from hitl_tui.ui.widgets.lines import LineView
from tests.ui.harness import desk


async def test_a_dialog_that_is_closed_meanwhile_needs_to_hear_no_more() -> None:
    async with desk() as it:
        dialog = Dialog("Fork", ["From step 3."], [Option("ask.back", "Back", "nothing is done")])
        dialog.say_more(["Two steps run again."])
        await it.app.push_screen(dialog)
        assert len(dialog.query_one("#dialog-text", LineView).lines) == 3
        await dialog.query("#dialog").remove()  # as while it is closed
        dialog.say_more(["Three steps run again."])
        assert dialog.is_mounted
