"""The editor: checked while typing, previewed, never lost."""

from __future__ import annotations

from asyncio import Event
from typing import Any

import pytest
from textual.events import Key, Paste
from textual.widgets import Input

from hitl_tui.engine.commands import Command
from hitl_tui.engine.log.events import Preview
from hitl_tui.errors import StaleWriter
from hitl_tui.ui.screens.edit import EditScreen
from hitl_tui.ui.widgets.safe_text import DraftArea
from tests.support.spec import spec
from tests.ui.harness import Desk, desk

pytestmark = spec("11")


async def open_editor(it: Desk) -> EditScreen:
    await it.press("e")
    await it.until(lambda: isinstance(it.app.screen, EditScreen))
    screen = it.app.screen
    assert isinstance(screen, EditScreen)
    await it.shows("Saved as step 5", "No change yet")
    return screen


@pytest.mark.slow
async def test_an_edit_becomes_a_step():
    async with desk() as it:
        await open_editor(it)
        await it.press(*"New ")
        await it.shows("Before and after", "~ New A closure")
        await it.press("ctrl+s")
        await it.until(lambda: it.commands("update_state"))
        sent = it.commands("update_state")[0]
        assert sent["expected_step"] == 4
        assert sent["actor"] == "anna"
        assert sent["values"]["latest_draft"].startswith("New A closure")


@pytest.mark.slow
async def test_a_second_key_while_an_edit_is_being_sent_neither_sends_nor_stops_it(
    monkeypatch: pytest.MonkeyPatch,
):
    async with desk() as it:
        execute, arrived = it.driver.execute, Event()

        async def execute_slowly(command: Command[Any]) -> Any:
            result = await execute(command)
            await arrived.wait()
            return result

        monkeypatch.setattr(it.driver, "execute", execute_slowly)
        await open_editor(it)
        await it.press("x", "ctrl+s")
        await it.until(lambda: it.commands("update_state"))
        await it.press("ctrl+s")
        arrived.set()
        await it.until(lambda: it.app.screen is it.run)
        assert len(it.commands("update_state")) == 1


@pytest.mark.slow
async def test_the_preview_shows_errors_and_the_next_node():
    async with desk() as it:
        it.driver.results["preview"] = Preview(
            (), {"latest_draft": "must be shorter"}, "worker", ("req-1",), False
        )
        await open_editor(it)
        await it.press("x")
        await it.shows("must be shorter", "worker", "asks again about the new value")


@pytest.mark.slow
async def test_escape_with_changes_asks():
    async with desk() as it:
        await open_editor(it)
        await it.press("x", "escape")
        await it.shows("Discard the changes?")
        await it.press("escape")
        await it.gone("Discard the changes?")
        await it.press("escape")
        await it.shows("Discard the changes?")
        await it.press("d")
        await it.until(lambda: it.app.screen is it.run)
        assert not it.commands("update_state")


@pytest.mark.slow
async def test_a_conflict_keeps_the_text():
    async with desk() as it:
        it.driver.results["update_state"] = StaleWriter("the head is step 5 now")
        screen = await open_editor(it)
        await it.press("x", "ctrl+s")
        await it.shows("not applied")
        assert screen.text.startswith("x")
        assert it.app.screen is screen


@pytest.mark.slow
async def test_a_past_step_forks_and_says_so():
    async with desk() as it:
        await it.press("left_square_bracket")
        await it.shows("Channels at step 3")
        await it.press("e")
        await it.shows("FORKS", "Makes a new thread from step 3", "closure-explainer-c")
        await it.press("x", "ctrl+s")
        await it.until(lambda: it.commands("fork"))
        sent = it.commands("fork")[0]
        assert (sent["step"], sent["new_thread_id"]) == (3, "closure-explainer-c")
        assert sent["changes"]["latest_draft"].startswith("x")


@pytest.mark.slow
async def test_lists_are_edited_as_json():
    async with desk() as it:
        it.run.query_one("#channels").select("messages")  # type: ignore[attr-defined]
        await it.press("e")
        await it.until(lambda: isinstance(it.app.screen, EditScreen))
        await it.press("x")
        await it.shows("not valid JSON yet")
        await it.press("ctrl+s")
        await it.shows("not applied, not valid JSON")
        assert not it.commands("update_state")


ENDLESS = "one line " * 120_000


@pytest.mark.slow
async def test_a_paste_too_large_to_edit_is_refused_and_keys_still_work():
    async with desk() as it:
        screen = await open_editor(it)
        area = screen.query_one(DraftArea)
        before = area.text
        area.post_message(Paste(ENDLESS))
        await it.shows("not pasted: 1,080,000 characters")
        await it.press("x")
        await it.until(lambda: area.text == "x" + before)


@pytest.mark.slow
async def test_a_large_text_from_an_external_editor_is_applied_in_full(
    monkeypatch: pytest.MonkeyPatch,
):
    saved = ENDLESS[:500_000]
    monkeypatch.setattr("hitl_tui.ui.editor.edited_outside", lambda *_, **__: saved)
    async with desk() as it:
        await open_editor(it)
        await it.press("ctrl+e")
        await it.shows("too large to edit here")
        await it.press("ctrl+s")
        await it.until(lambda: it.commands("update_state"))
        assert it.commands("update_state")[0]["values"] == {"latest_draft": saved}


@pytest.mark.parametrize("past", [False, True], ids=["newest", "past"])
@pytest.mark.slow
async def test_one_tab_leads_from_the_draft_to_the_note_also_for_keys_that_come_at_once(past: bool):
    async with desk() as it:
        if past:
            await it.press("[")
            await it.shows("not the newest")
            await it.press("e")
            await it.until(lambda: isinstance(it.app.screen, EditScreen))
            await it.shows("Makes a new thread")
        else:
            await open_editor(it)
        screen = it.app.screen
        assert isinstance(screen, EditScreen)
        before = screen.text
        it.app.post_message(Key("tab", None))
        it.app.post_message(Paste("clearer"))
        for letter in " now":
            it.app.post_message(Key(letter, letter))
        note = screen.query_one("#edit-note", Input)
        await it.until(lambda: note.value == "clearer now")
        assert screen.text == before
