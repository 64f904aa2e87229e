"""The reader on screen: opening it, moving in it, changes, comments at the cursor, and answering from it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hitl_tui import END, START, Channel, Gate, GateChoice, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.engine.commands import Answer, UpdateState
from hitl_tui.ui.screens.reader import ReaderScreen
from hitl_tui.ui.widgets.value import ValuePane
from tests.support.newsroom import FIRST, LONG, SECOND, newsroom, sent_back
from tests.ui.harness import Clock, Screen, live


@asynccontextmanager
async def reading(
    runner: GraphRunner, *keys: str, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[Screen]:
    """A thread `t` that waits, with its card open, and the reader over it."""
    async with live(runner, ready="WAITING", size=size) as it:
        it.run.clock = Clock()
        await it.press("d")
        await it.card_listens("Publish this article?")
        await it.press("O", *keys)
        await it.until(lambda: isinstance(it.app.screen, ReaderScreen), "the reader")
        await it.shows("page 1 of")
        yield it


def reader(it: Screen) -> ReaderScreen:
    assert isinstance(it.app.screen, ReaderScreen)
    return it.app.screen


def here(it: Screen) -> str:
    """What the cursor is on."""
    screen = reader(it)
    view = screen._view
    assert view.here is not None
    assert view.pages is not None
    return view.pages.document[view.here.part].text[view.here.start : view.here.end]


async def long_text() -> GraphRunner:
    runner = newsroom(LONG)
    await runner.ainvoke({}, thread_id="t")
    return runner


async def second_version(replies: object = None) -> GraphRunner:
    runner = newsroom(FIRST, SECOND, replies=replies)
    await sent_back(runner)
    return runner


async def test_the_reader_renders_the_text_and_closes_to_the_card():
    async with reading(await second_version()) as it:
        await it.shows("The harbour crane", "│ crane, second hand", "• The surveyor is back", "YOUR ANSWER")
        assert "**draft" not in it.text()
        await it.press("v")
        await it.shows("**draft for review**", "source")
        await it.press("v")
        await it.gone("**draft")
        await it.press("escape")
        await it.until(lambda: it.app.screen is it.run, "the run screen")
        assert it.run.card_open


async def test_enter_on_the_value_opens_it_and_leaves_nothing_open():
    async with live(await second_version(), ready="WAITING") as it:
        it.run.query_one(ValuePane).focus()
        await it.press("enter")
        await it.shows("page 1 of", "YOUR ANSWER")
        await it.press("q")
        await it.until(lambda: it.app.screen is it.run, "the run screen")
        assert not it.run.card_open


async def test_pages_turn_and_headings_are_jumped_to():
    async with reading(await long_text()) as it:
        await it.press("pagedown")
        await it.shows("page 2 of")
        await it.press("pageup")
        await it.shows("page 1 of")
        await it.press("right_square_bracket")
        await it.shows("Part 2 of the report · page 1")
        await it.press("left_square_bracket")
        assert here(it) == "Part 1 of the report"
        await it.press("end")
        await it.until(lambda: here(it).startswith("A vote was postponed"), "the end")
        await it.press("home", "down", "down")
        assert here(it) == "Nobody believed it would help much."


async def test_headings_of_a_chat_are_its_messages():
    said = [{"role": "user", "content": f"Question {number}?"} for number in range(40)]
    graph = StateGraph({"chat": Channel([], reducer="extend")}, name="chat")
    graph.add_node("write", lambda state: {"chat": said}).add_edge(START, "write").add_edge("write", END)
    gate = Gate("write", "Publish this article?", [GateChoice("approve", "Publish", "a")], subject="chat")
    runner = graph.compile(checkpointer=MemoryCheckpointer(), interrupt_after=[gate])
    await runner.ainvoke({}, thread_id="t")
    async with reading(runner) as it:
        await it.press("]", "]")
        assert here(it) == "Question 2?"
        await it.press("[", "c", *"why", "enter")
        (comment,) = it.card.review.comments
        assert (comment.path, comment.quote, comment.offset) == ("chat[1].content", "Question 1?", 0)


async def test_a_page_is_gone_to_by_number_and_a_heading_by_its_words():
    async with reading(await long_text()) as it:
        await it.press("g")
        await it.shows("Headings", "Part 1 of the report")
        await it.press("5", "enter")
        await it.shows("page 5 of")
        await it.press("g", *"part 33", "enter")
        await it.shows("Part 33 of the report · page")
        assert here(it) == "Part 33 of the report"
        await it.press("g", *"no such", "enter")
        await it.shows("no such heading")


async def test_a_search_moves_the_cursor_and_walks_its_matches():
    async with reading(await long_text()) as it:
        await it.press("slash", *"part 30 the")
        await it.until(lambda: here(it).startswith("In part 30 the surveyor"), "the match")
        await it.press("enter")
        await it.shows("1 match")
        await it.press("slash", *"SURVEYOR", "enter", "greater_than_sign")
        await it.shows("65 matches")
        assert here(it).startswith("In part 31 the surveyor") or here(it).startswith("In part 32")
        await it.press("slash", *"not in it", "enter")
        await it.shows("“not in it” is not in the text")


async def test_a_comment_in_the_middle_of_5900_words_takes_eight_keys():
    runner = await long_text()
    assert 5_500 < len(LONG.split()) < 6_500
    async with reading(runner) as it:  # 1 key: O
        await it.press("g", "1", "2", "enter")  # 5
        await it.shows("page 12 of")
        await it.press("down")  # 6
        passage = here(it)
        await it.press("c")  # 7
        await it.shows("Your comment")
        await it.press(*"why so?", "enter")  # 8, and the words
        await it.shows("why so?", "not sent yet")
        (comment,) = it.card.review.comments
        assert (comment.quote, comment.text) == (passage, "why so?")
        assert LONG[comment.offset :].startswith(passage)
        assert comment.offset > len(LONG) // 3
        assert comment.offset != LONG.index(passage), "the one under the cursor, not the first that is equal"
        await it.press("C")
        await it.gone("not sent yet")


async def test_several_sentences_are_selected_and_commented_on():
    async with reading(await long_text()) as it:
        await it.press("down", "shift+down", "shift+down", "shift+up", "c", *"both", "enter")
        await it.shows("both")
        (comment,) = it.card.review.comments
        assert comment.quote.startswith("The committee met on Tuesday")
        assert comment.quote.endswith("plan. Nobody believed it would help much.")


async def test_what_the_mouse_selects_is_what_the_comment_is_about():
    async with reading(await long_text()) as it:
        rows = it.text().splitlines()
        y = [at for at, row in enumerate(rows) if "had complained" in row][1]
        x = rows[y].index("complained")
        await it.pilot.mouse_down(offset=(x, y))
        await it.pilot.hover(offset=(x + len("complained"), y))
        await it.pilot.mouse_up(offset=(x + len("complained"), y))
        await it.press("c", *"did they", "enter")
        await it.shows("did they")
        (comment,) = it.card.review.comments
        assert comment.quote == "complained"
        assert comment.offset > LONG.index("complained")


async def test_changes_since_the_last_version_are_counted_and_walked():
    async with reading(await second_version()) as it:
        await it.shows("4 changes since version 1 (4 on this page)", "four seven above")
        await it.press("n")
        await it.until(lambda: "seven above" in here(it), "the first change")
        await it.press("n", "n")
        await it.until(lambda: "421,000" in here(it), "the third change, though two are on one row")
        await it.press("n")
        await it.until(lambda: here(it) == "A paragraph of the second version.", "the last change")
        await it.press("n")
        await it.shows("no more changes")
        await it.press("N")
        await it.until(lambda: "421,000" in here(it), "the change before")
        await it.press("|")
        await it.gone("four seven above")


async def test_what_became_of_my_comments_stands_beside_the_text():
    async with reading(await second_version(["it was measured"])) as it:
        await it.shows("2 of your 3 comments addressed", "who says?", "passage unchanged")
        await it.shows("really?", "passage changed", "passage gone", "author: it was measured")


async def test_changes_since_i_last_looked_come_first():
    third = SECOND.replace("ninth", "tenth")
    runner = newsroom(FIRST, SECOND, third)
    result = await runner.ainvoke({}, thread_id="t")
    async with reading(runner) as it:
        await it.press("escape")
    for _ in range(2):
        (request,) = result.pending
        runner.answer("t", request.id, {"choice": "revise", "text": "again"}, step=request.step)
        result = await runner.ainvoke(thread_id="t")
    async with reading(runner) as it:
        await it.shows("5 changes since you last saw it")
        await it.press("|")
        await it.shows("1 change since version 2")


async def test_it_is_answered_from_the_reader_and_may_be_undone():
    async with reading(await second_version()) as it:
        await it.press("a")
        await it.until(lambda: it.app.screen is it.run, "the run screen")
        await it.shows("sending “Publish”")
        await it.press("z")
        await it.shows("undoes it within")


async def test_sending_back_from_the_reader_asks_for_the_reason():
    async with reading(await second_version()) as it:
        await it.press("r", *"shorter")
        await it.shows("shorter")
        assert it.card.review.reason == "shorter"
        assert it.app.screen is it.run


async def test_an_answer_for_a_card_that_was_not_seen_waits_for_a_second_key():
    async with live(await second_version(), ready="WAITING") as it:
        it.run.query_one(ValuePane).focus()
        await it.press("enter")
        await it.shows("YOUR ANSWER")
        await it.press("a")
        await it.shows("read the card, then press the key again")
        assert it.card.review.unsent == ""


async def test_when_somebody_else_answers_meanwhile_nothing_is_decided():
    runner = await second_version()
    async with reading(runner) as it:
        (request,) = it.session.requests
        await it.session.driver.execute(Answer(request.id, "approve", request.step, "bob"))
        await it.until(lambda: not it.card.is_open, "the card closing")
        await it.press("a")
        await it.shows("this no longer waits for an answer")
        await it.press("escape")
        await it.until(lambda: it.app.screen is it.run, "the run screen")
        assert not it.run.card_open


async def test_an_edit_by_somebody_else_must_be_read_before_it_is_answered():
    runner = await second_version()
    async with reading(runner) as it:
        (request,) = it.session.requests
        await it.session.driver.execute(UpdateState({"draft": "Another text."}, request.step, None, "bob"))
        await it.until(lambda: it.card.review.request.step != request.step, "the card following")
        await it.press("a")
        await it.shows("the text has changed meanwhile")
        await it.press("escape", "O")
        await it.shows("Another text.")


async def test_pasted_text_answers_nothing():
    async with reading(await second_version()) as it:
        await it.paste("a r a")
        assert isinstance(it.app.screen, ReaderScreen)
        assert it.card.review.state == "open"


async def test_editing_from_the_reader_opens_the_editor():
    async with reading(await second_version()) as it:
        await it.press("e")
        await it.shows("^s", "The harbour crane")
        await it.until(lambda: type(it.app.screen).__name__ == "EditScreen", "the editor")


async def test_the_payload_of_a_request_without_a_subject_is_read_and_answered():
    graph = StateGraph({"n": Channel(0)}, name="mails")
    graph.add_node("write", lambda state: {"n": 1}).add_edge(START, "write").add_edge("write", END)
    mail = {"to": "a@x.org", "subject": "Minutes", "body": "Dear all,\n\n- one\n- two"}
    choices = [GateChoice("send", "Send", "a"), GateChoice("no", "No", "n")]
    gate = Gate("write", "Publish this article?", choices, payload=lambda state: mail)
    runner = graph.compile(checkpointer=MemoryCheckpointer(), interrupt_after=[gate])
    await runner.ainvoke({}, thread_id="t")
    async with reading(runner) as it:
        await it.shows("Subject  Minutes", "• one", "a Send")
        assert "n No" not in it.text(), "n goes to the next change here"
        await it.press("c")
        await it.shows("write it as your reason")
        await it.press("a")
        await it.shows("sending “Send”")


async def test_without_a_request_it_only_reads():
    runner = newsroom(FIRST)
    await runner.ainvoke({}, thread_id="t")
    async with live(runner, ready="WAITING") as it:
        it.run.travel(("t", 0))
        await it.shows("not the newest")
        it.run.query_one(ValuePane).focus()
        await it.press("enter")
        await it.shows("page 1 of 1")
        assert "YOUR ANSWER" not in it.text()
        await it.press("c")
        await it.shows("comments are sent with an answer")
        await it.press("tab")
        await it.shows("nothing asks for an answer about this")


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)
async def test_it_fits_screens_of_every_size(size: tuple[int, int]):
    async with reading(await second_version(), size=size) as it:
        await it.shows("The harbour crane", "a Publish", "esc Back")
        assert all(len(row) == size[0] for row in it.text().splitlines())


async def test_help_begins_with_the_keys_of_the_reader():
    async with reading(await second_version()) as it:
        await it.press("question_mark")
        await it.shows("In the pane Reader", "Next sentence")
        await it.press("escape")
        await it.until(lambda: isinstance(it.app.screen, ReaderScreen), "the reader")
