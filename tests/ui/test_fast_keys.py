"""Keys that come faster than screens open and close."""

from __future__ import annotations

import pytest
from textual.command import CommandList
from textual.events import Key

from hitl_tui.ui.app import AppResult
from hitl_tui.ui.palette import Palette
from hitl_tui.ui.screens.edit import EditScreen
from hitl_tui.ui.screens.help import HelpScreen
from hitl_tui.ui.screens.opening import OpeningScreen
from hitl_tui.ui.widgets.header import HeaderBar
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.view.review import GRACE
from hitl_tui.view.status import StatusLine
from tests.ui.harness import desk


@pytest.mark.slow
async def test_a_screen_that_is_closed_twice_closes_nothing_else():
    async with desk() as it:
        await it.press("question_mark")
        await it.until(lambda: isinstance(it.app.screen, HelpScreen))
        closed = it.app.screen
        closed.dismiss()
        closed.dismiss()
        await it.until(lambda: it.app.screen is it.run)


@pytest.mark.slow
async def test_a_screen_that_closes_itself_closes_the_screens_above_it():
    async with desk() as it:
        await it.press("question_mark")
        await it.until(lambda: isinstance(it.app.screen, HelpScreen))
        below = it.app.screen
        await it.press("ctrl+p")
        await it.until(lambda: isinstance(it.app.screen, Palette))
        below.dismiss()
        await it.until(lambda: it.app.screen is it.run)


@pytest.mark.slow
async def test_keys_that_scroll_count_each_time_that_they_are_pressed_between_two_frames():
    async with desk(size=(80, 24)) as it:
        await it.press("question_mark")
        await it.until(lambda: isinstance(it.app.screen, HelpScreen))
        screen = it.app.screen
        assert isinstance(screen, HelpScreen)
        page = screen.query_one("#help", LineView)
        await it.until(lambda: page.max_scroll_y > 100)
        await it.pilot.pause()
        for by in (1, 1):
            screen.action_scroll(by)
        for by in (1, 1):
            screen.action_turn_pages(by)
        await it.until(lambda: page.scroll_y == 2 + 2 * (page.size.height - 2), "two rows and two pages")


@pytest.mark.slow
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


@pytest.mark.slow
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


async def test_an_error_during_exit_does_not_change_the_exit_code():
    def late() -> None:
        raise LookupError("the pane is gone")

    async with desk() as it:
        it.app.exit(AppResult("t"))
        it.app.call_later(late)
    assert it.app.return_value == AppResult("t")
    assert it.app.return_code == 0


async def test_a_key_of_the_opening_screen_is_done_once_and_by_the_run_screen():
    async with desk():
        opening = OpeningScreen()
        key = Key("b", "b")
        await opening.on_key(key)
        assert opening.early_keys == ["b"]
        assert key._stop_propagation


@pytest.mark.slow
async def test_a_key_waits_for_a_screen_that_is_being_put_together():
    async with desk() as it:
        it.run.action_do("app.help")
        assert isinstance(it.app.screen, HelpScreen)
        assert not it.app.screen.is_mounted
        it.app.post_message(Key("escape", None))
        await it.until(lambda: it.app.screen is it.run)


@pytest.mark.slow
async def test_the_header_says_waiting_only_when_the_card_accepts_keys():
    states: list[tuple[bool, bool]] = []
    async with desk(at_end=False) as it:
        header = it.run.query_one(HeaderBar)
        show = header.show

        def watched(graph: str, thread: str, line: StatusLine | None) -> None:
            if line is not None and line.word == "WAITING":
                choices = it.run.query("#card-choices")
                states.append((bool(choices), bool(choices) and it.app.focused is choices.first()))
            show(graph, thread, line)

        header.show = watched  # type: ignore[method-assign]
        await it.press("c")
        it.driver.advance_all()
        await it.shows("Your answer", "WAITING")
    assert states
    assert set(states) == {(True, True)}


@pytest.mark.slow
async def test_a_sentence_that_begins_before_the_card_can_be_read_decides_and_opens_nothing():
    async with desk() as it:
        for letter in ("d", *"reject e a"):
            it.app.post_message(Key("space" if letter == " " else letter, letter))
        await it.shows("keys work in half")
        it.clock.advance(GRACE / 2)
        await it.press("a")
        it.clock.advance(GRACE / 2 + 0.01)
        await it.press("a")
        await it.shows("keys work in half")
        assert it.app.screen is it.run
        assert not it.run.card.review.unsent  # type: ignore[union-attr]
        it.clock.advance(GRACE + 0.01)
        await it.gone("keys work in half")
        await it.press("a")
        await it.shows("send it now")


@pytest.mark.slow
async def test_the_first_letters_of_words_are_not_choices_however_fast_they_come():
    async with desk() as it:
        await it.press("d")
        await it.card_listens()
        for letter in "reap it":
            it.app.post_message(Key("space" if letter == " " else letter, letter))
        await it.until(lambda: it.card.review.reason == "eap it")
        assert it.app.screen is it.run
        assert not it.card.review.unsent


@pytest.mark.slow
async def test_ctrl_c_asks_and_pressed_again_leaves_and_keeps_what_was_typed():
    async with desk() as it:
        await it.press("d")
        await it.shows("keys work in half")
        await it.press("tab", *"too short", "ctrl+c")
        await it.shows("Quit?", "what you wrote about")
        await it.press("escape")
        await it.gone("Quit?")
        await it.press("ctrl+c")
        await it.shows("Quit?")
        await it.press("ctrl+c")
        await it.until(lambda: it.app.return_value is not None)
    result = it.app.return_value
    assert result is not None
    assert "what you wrote about" in result.not_committed[0]


@pytest.mark.slow
async def test_ctrl_c_copies_what_is_selected():
    async with desk() as it:
        await it.press("e")
        await it.until(lambda: isinstance(it.app.screen, EditScreen) and it.app.screen.is_mounted)
        await it.shows("No change yet")
        await it.press("shift+right", "shift+right", "ctrl+c")
        assert it.app.clipboard == "A "
        assert isinstance(it.app.screen, EditScreen)


@pytest.mark.slow
async def test_what_was_typed_right_before_a_key_is_in_what_the_key_applies():
    async with desk() as it:
        await it.press("e")
        await it.until(lambda: isinstance(it.app.screen, EditScreen) and it.app.screen.focused is not None)
        for letter in "By hand. ":
            it.app.post_message(Key(letter, letter))
        it.app.post_message(Key("ctrl+s", None))
        await it.until(lambda: it.commands("update_state"))
        values = it.commands("update_state")[0]["values"]
        assert values["latest_draft"].startswith("By hand. A closure")
