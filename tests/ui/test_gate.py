"""One gate in front of every decision: only a deliberate key on a screen that can be read decides."""

from __future__ import annotations

import pytest

from hitl_tui.ui.gate import READ_SECONDS
from hitl_tui.ui.terminal_input import BurstKey
from hitl_tui.ui.widgets.choices import Choices
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.view.review import UNDO
from hitl_tui.view.spans import plain_text
from tests.ui.harness import Desk, desk
from tests.ui.test_asking import asking


async def open_card(it: Desk) -> None:
    it.app.gate._clock = it.clock
    await it.press("d")
    await it.card_listens("Your answer", "keys work in half")
    await it.shows("undoes it")


async def nothing_sent(it: Desk) -> None:
    it.clock.advance(UNDO + 0.01)
    it.card._tick()
    await it.pilot.pause()
    assert not it.card.review.unsent
    assert not it.commands("answer")


async def type_at_once(it: Desk, text: str) -> None:
    """An unbracketed paste: all letters in one read."""
    for letter in text:
        it.app.post_message(BurstKey("enter" if letter == "\r" else letter, letter))
    await it.pilot.pause()


@pytest.mark.slow
async def test_letters_that_arrive_at_once_decide_nothing_and_a_single_one_does():
    async with desk() as it:
        await open_card(it)
        await type_at_once(it, "a\r")
        await it.shows("nothing was decided")
        await nothing_sent(it)
        await it.press("a")
        await it.until(lambda: it.card.review.unsent)


@pytest.mark.slow
async def test_only_one_click_of_the_left_button_decides():
    async with desk() as it:
        await open_card(it)
        choices = it.run.query_one("#card-choices", Choices)
        row = next(at for at, option in enumerate(choices.options) if option.label == "approve the draft")
        for options in ({"button": 2}, {"button": 3}, {"times": 2}, {"times": 3}):
            await it.pilot.click(choices, offset=(8, row), **options)
            assert choices._clicked is None
            await nothing_sent(it)
            it.app._click_chain_last_time = None
        await it.pilot.click(choices, offset=(8, row))
        await it.until(lambda: it.card.review.unsent)


@pytest.mark.slow
async def test_a_click_decides_nothing_once_another_page_is_open():
    async with desk() as it:
        await open_card(it)
        choices = it.run.query_one("#card-choices", Choices)
        row = next(at for at, option in enumerate(choices.options) if option.label == "approve the draft")
        await it.pilot.click(choices, offset=(8, row))
        await it.press("question_mark")
        await it.until(lambda: choices._clicked is None)
        assert it.app.screen is not it.run
        await it.press("escape")
        await it.until(lambda: it.app.screen is it.run)
        await nothing_sent(it)


@pytest.mark.slow
async def test_a_key_right_after_another_size_decides_nothing():
    async with desk() as it:
        await open_card(it)
        await it.pilot.resize_terminal(110, 36)
        await it.press("a")
        await it.shows("nothing was decided")
        await nothing_sent(it)
        it.clock.advance(READ_SECONDS + 0.01)
        await it.press("a")
        await it.until(lambda: it.card.review.unsent)


@pytest.mark.parametrize("size", [(40, 10), (30, 8), (20, 5), (10, 4), (1, 1)])
@pytest.mark.slow
async def test_on_a_screen_that_is_too_small_nothing_is_decided(size: tuple[int, int]):
    async with desk() as it:
        await open_card(it)
        await it.pilot.resize_terminal(*size)
        it.clock.advance(READ_SECONDS + 0.01)
        await it.press("a", "enter")
        await nothing_sent(it)


@pytest.mark.slow
async def test_a_decision_is_not_sent_while_its_undo_line_is_off_screen():
    async with desk() as it:
        await open_card(it)
        await it.press("a")
        await it.shows("sending “")
        await it.pilot.resize_terminal(40, 8)
        await it.gone("sending “")
        it.clock.advance(READ_SECONDS)
        for _ in range(3):
            await it.let_pass(UNDO)
        assert not it.commands("answer")
        await it.pilot.resize_terminal(120, 40)
        await it.let_pass(READ_SECONDS - 0.01)  # the seconds begin again until the screen could be read
        await it.let_pass(0.02)
        await it.let_pass(UNDO - 0.1)
        assert not it.commands("answer")
        await it.press("z")
        await nothing_sent(it)


@pytest.mark.slow
async def test_letters_that_arrive_at_once_set_no_breakpoint_and_answer_no_dialog():
    async with desk() as it:
        await type_at_once(it, "b")
        await it.shows("arrive all at once")
        assert not it.session.breakpoints
        await it.press("f")
        await it.shows("name of the new thread")
        await it.press("tab")
        await type_at_once(it, "why\r")
        await it.shows("Nothing was decided")
        assert not it.commands("fork")
        await it.press("enter")
        await it.until(lambda: it.commands("fork"))


@pytest.mark.slow
async def test_a_sentence_typed_at_a_card_does_nothing_else():
    async with desk() as it:
        await open_card(it)
        for letter in "but its better to stop":
            await it.press("space" if letter == " " else letter)
        assert it.app.screen is it.run
        assert not it.commands("set_breakpoints")
        assert not it.card.review.unsent
        await it.shows("is not an answer here")


@pytest.mark.slow
async def test_the_key_that_opens_a_card_does_nothing_on_one_that_is_open():
    async with desk() as it:
        await open_card(it)
        await it.press("d")
        assert "no answer here" not in it.text()
        await it.press("a")
        await it.until(lambda: it.card.review.unsent)


@pytest.mark.slow
async def test_r_opens_the_reason_with_a_comment_pinned():
    async with desk() as it:
        await open_card(it)
        await it.press("c")
        await it.shows("your comment")
        await it.press(*"which?", "enter")
        await it.shows("1 which?")
        await it.press("r", *"no, shorter")
        await it.until(lambda: it.card.review.words == "no, shorter")
        assert not it.card.review.unsent
        await it.press("enter", "enter")
        await it.until(lambda: it.card.review.unsent)


@pytest.mark.slow
async def test_the_card_says_how_much_of_a_long_text_is_below():
    command = "\n".join(f"echo {number}" for number in range(40)) + "\nrm -rf /srv/important"
    request = {"payload": {"command": command}, "subject": None}
    async with desk(asking({**request, "kind": "approve"}), size=(80, 24)) as it:
        await it.press("d")
        await it.card_listens("Your answer", "more line")
        more = it.card.query_one("#card-more", LineView)
        for _ in range(40):
            if "end of the text" in plain_text(more.line(0)):
                break
            await it.press("pagedown")
        await it.shows("end of the text")
        assert "echo 39" in it.text()  # a line of its own, and no "\\n"
        assert "\\n" not in it.text()


@pytest.mark.slow
async def test_a_card_that_wants_only_a_text_takes_every_letter_as_text():
    async with desk(asking({"title": "Shall I go on?"})) as it:
        await it.press("d")
        await it.card_listens("Your answer")
        for letter in "not yet, but soon":
            await it.press("space" if letter == " " else letter)
        await it.until(lambda: it.card.review.words == "not yet, but soon")
        assert it.app.screen is it.run
        assert not it.card.review.unsent
