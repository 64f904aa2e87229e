"""Questions that want more than a choice, on the card: forms, edits, tool calls, several at once."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from hitl_tui.engine.commands import Answer
from hitl_tui.engine.log.requests import Choice, Request
from hitl_tui.errors import AnswerRefused
from hitl_tui.view.review import GRACE, UNDO
from tests.support import tape as tapes
from tests.support.queue_graphs import order
from tests.ui.harness import Desk, desk, live

SCHEMA = {
    "type": "object",
    "properties": {
        "item": {"type": "string", "minLength": 2, "description": "what to \x1b[31morder"},
        "amount": {"type": "integer", "maximum": 5},
        "colour": {"enum": ["red", "green"]},
        "gift": {"type": "boolean", "default": False},
    },
    "required": ["item", "amount"],
}
BATCH = {
    "action_requests": [
        {"name": "send_mail", "args": {"to": "a@b.c", "n": 1}, "description": "to \x1b[2Jall"},
        {"name": "delete_file", "args": {"path": "x"}},
    ],
    "review_configs": [
        {"action_name": "send_mail", "allowed_decisions": ["approve", "edit", "reject", "respond"]},
        {"action_name": "delete_file", "allowed_decisions": ["approve", "reject"]},
    ],
}


def asking(*requests: dict[str, Any]) -> tapes.Tape:
    """The tape with other requests at its end."""
    plain = {"choices": (), "recommended": None, "kind": "ask", "subject": None, "payload": None}
    made: list[Request] = [
        tapes.verdict_request(**{**plain, "id": f"req-{number}", **changes})
        for number, changes in enumerate(requests, 1)
    ]
    tape = tapes.advisor_tape()
    progress = msgspec.structs.replace(tape.end.progress, pending=tuple(made))
    return dataclasses.replace(tape, end=msgspec.structs.replace(tape.end, progress=progress))


@pytest.mark.slow
async def test_an_answer_without_a_letter_is_taken_with_enter_and_says_so() -> None:
    choices = (Choice("pay", "pay"), Choice("hold", "hold"))
    async with desk(asking({"kind": "choose", "choices": choices, "title": "Pay for it?"})) as it:
        await opened(it, "Pay for it?")
        await it.shows("Enter  pay")
        await it.press("down")
        await it.shows("Enter  hold")


async def opened(it: Desk, words: str) -> None:
    await it.press("d")
    await it.card_listens(words)


async def sent(it: Desk, *more: str) -> Any:
    """The answer that goes off once it can't be taken back any more."""
    await it.press(*more)
    await it.shows("undo it")
    assert not it.commands("answer")
    it.clock.advance(UNDO + 0.01)
    await it.until(lambda: it.commands("answer"))
    return it.commands("answer")[-1]["value"]


@pytest.mark.slow
async def test_a_form_is_filled_in_by_keys_and_checked_as_one_types():
    async with desk(asking({"schema": SCHEMA, "title": "What would you like to order?"})) as it:
        await opened(it, "What would you like to order?")
        await it.shows("item *", "what to ", "whole number, at most 5", "○ red", "● no")
        assert "\x1b" not in it.text()
        await it.press(*"tea", "enter", *"many")
        await it.shows("must be a whole number")
        await it.press(*["backspace"] * 4, "7")
        await it.shows("7 is greater than the maximum of 5")
        await it.press("backspace", "3", "tab", "right", "right", "tab", "left", "tab")
        await it.shows("● green", "● yes")
        answer = await sent(it, "enter")
        assert answer == {"item": "tea", "amount": 3, "colour": "green", "gift": True}


@pytest.mark.slow
async def test_a_missing_value_is_reported_at_its_field_and_nothing_is_sent():
    async with desk(asking({"schema": SCHEMA}), size=(80, 24)) as it:
        await opened(it, "* must be given")
        await it.press("escape", "enter")
        await it.shows("is required")
        await it.let_pass(UNDO * 3)
        assert not it.commands("answer")


@pytest.mark.slow
async def test_letters_in_a_form_decide_nothing_and_keys_are_dead_at_first():
    async with desk(asking({"schema": {"type": "object", "properties": SCHEMA["properties"]}})) as it:
        await it.press("d")
        await it.shows("keys work in half")
        await it.press("enter", "x")
        it.clock.advance(GRACE + 0.01)
        await it.gone("keys work in half")
        await it.press("tab", "tab", *"scpqaz")
        await it.let_pass(UNDO * 3)
        assert not it.commands("answer")
        assert not any(isinstance(command, Answer) for command in it.driver.previewed)
        assert "Your answer" in it.text()


async def test_a_text_is_typed_at_once_on_a_card_that_a_key_opened():
    async with desk(asking({"title": "How shall it end?"})) as it:
        await it.press("d")
        await it.shows("keys work in half")
        await it.press(*"happily", "enter")
        await it.shows("happily")
        await it.let_pass(UNDO * 3)
        assert not it.commands("answer")


@pytest.mark.slow
async def test_the_letters_of_keys_are_typed_in_a_form_field():
    async with desk(asking({"schema": SCHEMA, "title": "What would you like to order?"})) as it:
        await opened(it, "What would you like to order?")
        thread = it.session.thread_id
        await it.press(*"noon", "tab", "1")
        await it.shows("noon")
        assert it.session.thread_id == thread
        assert (await sent(it, "escape", "enter"))["item"] == "noon"


@pytest.mark.slow
async def test_a_refused_form_keeps_what_was_typed():
    async with desk(asking({"schema": SCHEMA})) as it:
        it.driver.results["answer"] = AnswerRefused("somebody was faster", "look again")
        await opened(it, "* must be given")
        await it.press(*"tea", "tab", "1", "escape", "enter")
        await it.shows("undo it")
        it.clock.advance(UNDO + 0.01)
        await it.shows("not accepted: somebody was faster", "tea")


@pytest.mark.slow
async def test_an_edit_opens_in_the_editor_and_is_sent_from_the_card():
    async with desk(asking({"kind": "edit", "payload": "one\ntwo", "title": "All right so?"})) as it:
        await opened(it, "All right so?")
        await it.press("enter")
        await it.shows("Your version", "No change yet")
        await it.press(*"zero ")
        await it.shows("Before and after", "zero one")
        await it.press("ctrl+s")
        await it.shows("send your version")
        card = it.text()
        assert "Your version" in card
        assert "zero one" in card
        assert await sent(it, "enter") == "zero one\ntwo"


@pytest.mark.slow
async def test_a_payload_too_large_for_the_screen_is_edited_in_an_external_editor():
    text = "word " * 20_000
    async with desk(asking({"kind": "edit", "payload": text, "title": "All right so?"})) as it:
        await opened(it, "All right so?")
        await it.press("enter")
        await it.shows("too large to edit here: F4 opens it in your editor")
        await it.press("ctrl+s")
        await it.shows("send your version")
        assert await sent(it, "enter") == text


@pytest.mark.slow
async def test_json_that_no_form_shows_is_written_in_the_editor_and_checked():
    schema = {"type": "object", "minProperties": 1}
    async with desk(asking({"schema": schema})) as it:
        await opened(it, "Your answer as JSON")
        await it.press("e")
        await it.shows("has less than 1")
        await it.press("right", *'"a": 1')
        await it.gone("has less than 1")
        await it.press("ctrl+s")
        await it.shows("edit it again")
        assert await sent(it, "enter") == {"a": 1}


@pytest.mark.slow
async def test_each_tool_call_is_decided_by_itself_and_all_are_sent_together():
    request = {"kind": "approve", "payload": BATCH, "shape": "hitl_middleware", "title": "run 2 actions?"}
    async with desk(asking(request)) as it:
        await opened(it, "1 of 2  send_mail")
        await it.shows("edit the arguments", "answer for the tool", "reject", "not decided yet")
        assert "\x1b" not in it.text()
        await it.press("e")
        await it.shows("use these arguments", "a@b.c")
        await it.press("end", "x", "tab", "end", "2", "enter", "enter")
        await it.shows("2 of 2  delete_file", "back to action 1")
        await it.press("backspace")
        await it.shows("1 of 2  send_mail", "not decided yet")
        await it.press("a")
        await it.shows("2 of 2  delete_file")
        await it.press("r", *"no copy", "enter")
        answer = await sent(it, "enter")
        assert answer == ["approve", {"choice": "reject", "text": "no copy"}]


@pytest.mark.slow
async def test_edited_arguments_of_one_call():
    inbox = {
        "action_request": {"action": "send", "args": {"to": "a", "n": 1}},
        "config": {"allow_accept": True, "allow_edit": True},
    }
    request = {"kind": "approve", "payload": inbox, "shape": "agent_inbox", "title": "run send?"}
    async with desk(asking(request)) as it:
        await opened(it, "run send?")
        await it.press("e")
        await it.shows("use these arguments")
        await it.press("end", "b", "escape", "enter")
        await it.shows("undo it")
        it.clock.advance(UNDO + 0.01)
        await it.until(lambda: it.commands("answer"))
        assert it.commands("answer")[0]["value"] == [{"choice": "edit", "args": {"to": "ab", "n": 1}}]


@pytest.mark.slow
async def test_several_questions_are_moved_between_and_each_is_answered_by_itself():
    questions = [{"title": "first?"}, {"title": "second?", "schema": SCHEMA}, {"title": "third?"}]
    async with desk(asking(*questions)) as it:
        await opened(it, "first?")
        await it.shows("1 of 3, > next")
        await it.press(">")
        await it.shows("second?", "2 of 3", "item *")
        await it.press("<", "<")
        await it.shows("third?", "3 of 3")
        it.clock.advance(GRACE + 0.01)
        await it.gone("keys work in half")
        await it.press("tab", *"me", "enter")
        assert await sent(it, "enter") == "me"
        assert it.commands("answer")[0]["request_id"] == "req-3"


@pytest.mark.slow
async def test_what_was_typed_at_a_request_is_restored_on_return():
    questions = [{"title": "first?"}, {"title": "second?", "schema": SCHEMA}]
    async with desk(asking(*questions)) as it:
        await opened(it, "first?")
        await it.press("tab", *"moss", "escape", ">")
        await opened(it, "second?")
        await it.gone("moss")
        await it.press(*"tea", "escape", ">")
        await opened(it, "first?")
        await it.shows("moss")
        await it.press(">")
        await opened(it, "second?")
        await it.shows("tea")


@pytest.mark.slow
async def test_moving_to_another_request_sends_the_pending_decision():
    async with desk(asking({"title": "first?"}, {"title": "second?"})) as it:
        await opened(it, "first?")
        await it.press("tab", *"moss", "escape", "enter")
        await it.shows("send it now")
        await it.press(">")
        await it.until(lambda: it.commands("answer"))
        assert it.commands("answer")[0]["value"] == "moss"
        await opened(it, "second?")


@pytest.mark.slow
async def test_reviewers_who_disagree_see_that_they_can_change_their_votes():
    from hitl_tui.engine.log.requests import Vote

    votes = (Vote("ann", "approve", 1), Vote("bob", "revise", 2))
    tape = asking({})
    split = tapes.verdict_request(reviewers=("ann", "bob"), quorum=2, votes=votes)
    progress = msgspec.structs.replace(tape.end.progress, pending=(split,))
    tape = dataclasses.replace(tape, end=msgspec.structs.replace(tape.end, progress=progress))
    async with desk(tape) as it:
        await opened(it, "they disagree, and 2 equal votes")


@pytest.mark.slow
async def test_edited_arguments_are_shown_while_they_are_about_to_be_sent():
    action = {
        **BATCH,
        "action_requests": BATCH["action_requests"][:1],
        "review_configs": BATCH["review_configs"][:1],
    }
    async with desk(asking({"kind": "approve", "payload": action, "shape": "hitl_middleware"})) as it:
        await opened(it, "send_mail")
        await it.press("e")
        await it.shows("use these arguments", "a@b.c")
        await it.press("end", "x", "tab", "end", "2", "enter", "enter")
        await it.shows("undo it", "a@b.cx")
        await it.press("z")
        await it.gone("a@b.cx")


@pytest.mark.slow
async def test_a_rejected_tool_call_asks_for_words_first_and_needs_none():
    action = {
        **BATCH,
        "action_requests": BATCH["action_requests"][:1],
        "review_configs": BATCH["review_configs"][:1],
    }
    async with desk(asking({"kind": "approve", "payload": action, "shape": "hitl_middleware"})) as it:
        await opened(it, "send_mail")
        await it.press("r")
        await it.shows("say why, or not")
        await it.press("enter")
        assert await sent(it, "enter") == ["reject"]


@pytest.mark.slow
async def test_the_options_of_a_form_are_in_declaration_order():
    runner = order()
    runner.invoke({}, thread_id="t")
    async with live(runner, ready="WAITING", size=(120, 50)) as it:
        await it.press("d")
        await it.shows("What would you like to order?", "wrapping")
        text = it.text()
        rows = text[text.index("wrapping") :]
        assert rows.index("none") < rows.index("paper") < rows.index("box")
