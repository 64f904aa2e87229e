"""Keys that come faster than screens open and close."""

from __future__ import annotations

from textual.command import CommandList
from textual.events import Key

from hitl_tui.ui.app import AppResult
from hitl_tui.ui.commands import Palette
from hitl_tui.ui.screens.help import HelpScreen
from tests.ui.harness import desk


async def test_a_screen_that_is_closed_twice_closes_nothing_else():
    async with desk() as it:
        await it.press("question_mark")
        await it.until(lambda: isinstance(it.app.screen, HelpScreen))
        closed = it.app.screen
        closed.dismiss()
        closed.dismiss()
        await it.until(lambda: it.app.screen is it.run)


async def test_a_screen_that_closes_by_itself_takes_what_is_over_it_along():
    async with desk() as it:
        await it.press("question_mark")
        await it.until(lambda: isinstance(it.app.screen, HelpScreen))
        below = it.app.screen
        await it.press("ctrl+p")
        await it.until(lambda: isinstance(it.app.screen, Palette))
        below.dismiss()
        await it.until(lambda: it.app.screen is it.run)


async def test_the_palette_opens_again_while_it_closes_and_pages_before_it_has_rows():
    async with desk() as it:
        it.app.action_command_palette()
        it.app.action_command_palette()
        palette = it.app.screen
        assert isinstance(palette, Palette)
        await it.until(lambda: palette.is_mounted)
        await palette.run_action("escape")
        it.app.action_command_palette()
        await it.until(lambda: isinstance(it.app.screen, Palette) and it.app.screen is not palette)
        await it.press("pagedown", "pageup", "x", "pageup", "escape")
        await it.until(lambda: it.app.screen is it.run)


async def test_the_palette_that_is_closed_before_its_search_begins_closes_alone():
    async with desk() as it:
        it.app.action_command_palette()
        palette = it.app.screen
        assert isinstance(palette, Palette)
        await it.until(lambda: palette.is_mounted)
        await palette.query_one(CommandList).remove()
        await palette._gather_commands("step").wait()
        await it.press("escape")
        await it.until(lambda: it.app.screen is it.run)


async def test_what_fails_while_the_app_ends_does_not_change_how_it_ended():
    def late() -> None:
        raise LookupError("the pane is gone")

    async with desk() as it:
        it.app.exit(AppResult("t"))
        it.app.call_later(late)
    assert it.app.return_value == AppResult("t")
    assert it.app.return_code == 0


async def test_a_key_of_the_opening_screen_is_done_once_and_by_the_run_screen():
    async with desk() as it:
        opening = it.app.get_default_screen()
        key = Key("b", "b")
        await opening.on_key(key)
        assert opening.early_keys == ["b"]
        assert key._stop_propagation


async def test_a_key_waits_for_a_screen_that_is_being_put_together():
    async with desk() as it:
        it.run.do_app_help()
        assert isinstance(it.app.screen, HelpScreen)
        assert not it.app.screen.is_mounted
        it.app.post_message(Key("escape", None))
        await it.until(lambda: it.app.screen is it.run)
