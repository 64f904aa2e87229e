"""The review card: nothing is decided by accident, and what is decided can be taken back."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from hitl_tui.engine.log.requests import Choice
from hitl_tui.errors import AnswerRefused
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.choices import Choices
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.widgets.review import words_below
from hitl_tui.view.keymap import Option
from hitl_tui.view.review import GRACE, UNDO
from hitl_tui.view.spans import plain_text
from tests.support import tape as tapes
from tests.ui.harness import Desk, desk


async def open_card(it: Desk) -> None:
    await it.press("d")
    await it.card_listens("Your answer", "advisor: ", "keys work in half")
    await it.shows("undoes it")


async def sent(it: Desk) -> dict[str, Any]:
    """What is sent once the seconds have passed in which it can be taken back."""
    it.clock.advance(UNDO + 0.01)
    await it.until(lambda: it.commands("answer"))
    return it.commands("answer")[0]


def refuse(it: Desk, why: str) -> None:
    it.card.review.refuse(AnswerRefused(why, ""))
    it.card.show()


@pytest.mark.slow
async def test_the_card_is_shown_beside_its_subject():
    async with desk() as it:
        await open_card(it)
        await it.shows(
            "Picture a lunch box", "REVISE", "Use a concrete analogy", "about step 4", "approve the draft"
        )


@pytest.mark.slow
async def test_no_key_looks_alive_that_only_types_or_leaves_the_field():
    async with desk() as it:
        await open_card(it)
        choices = it.run.query_one("#card-choices", Choices)
        keys = [choices.line(row)[0].role for row in range(len(choices.options))]
        assert set(keys) == {"key"}
        await it.press("tab")
        await it.shows("Done typing")
        assert {choices.line(row)[0].role for row in range(len(choices.options))} == {"key-off"}
        await it.press("escape")
        await it.gone("Done typing")
        await it.shows("Your answer")


@pytest.mark.slow
async def test_keys_are_dead_for_half_a_second():
    async with desk() as it:
        await it.press("d")
        await it.shows("keys work in half a second")
        await it.press("a", "enter", "r")
        await it.shows("keys work in half a second")
        it.clock.advance(GRACE + 0.01)
        await it.shows("undoes it")
        assert not it.commands("answer")


@pytest.mark.slow
async def test_an_answer_is_sent_after_the_undo_window():
    async with desk() as it:
        await open_card(it)
        await it.press("a")
        await it.shows("sending “approve the draft”", "undo it")
        assert not it.commands("answer")
        answer = await sent(it)
        assert (answer["request_id"], answer["value"], answer["step"], answer["actor"]) == (
            "req-1",
            "approve",
            4,
            "anna",
        )
        assert answer["seen"]


@pytest.mark.slow
async def test_z_undoes_a_decision():
    async with desk() as it:
        await open_card(it)
        await it.press("a")
        await it.shows("sending")
        await it.press("z")
        await it.gone("sending")
        await it.let_pass(UNDO * 3)
        assert not it.commands("answer")


@pytest.mark.slow
async def test_typing_a_reason_never_decides():
    async with desk() as it:
        await open_card(it)
        await it.press("tab", *"area", "enter")
        await it.shows("area")
        await it.let_pass(UNDO * 3)
        assert not it.commands("answer")
        await it.press("a")
        assert (await sent(it))["note"] == "area"


@pytest.mark.slow
async def test_required_text_is_asked_for():
    async with desk() as it:
        await open_card(it)
        await it.press("r")
        await it.shows("say what to change")
        await it.press(*"shorter", "enter", "enter")
        await it.shows("sending “send back with feedback”")
        assert (await sent(it))["value"] == {"choice": "revise", "text": "shorter"}


@pytest.mark.slow
async def test_a_refused_answer_keeps_the_text():
    async with desk() as it:
        it.driver.results["answer"] = AnswerRefused("somebody was faster", "look again")
        await open_card(it)
        await it.press("tab", *"why", "enter", "a")
        it.clock.advance(UNDO + 0.01)
        await it.shows("not accepted: somebody was faster", "why")


@pytest.mark.slow
async def test_a_stale_answer_shows_what_changed_and_keeps_the_text():
    tape = tapes.advisor_tape()
    old = msgspec.structs.replace(tape.end.progress.pending[0], step=1)
    progress = msgspec.structs.replace(tape.end.progress, pending=(old,))
    tape = dataclasses.replace(tape, end=msgspec.structs.replace(tape.end, progress=progress))
    async with desk(tape, size=(140, 50)) as it:
        it.driver.results["answer"] = AnswerRefused(
            "it is about step 1, the thread is at step 4", "look again"
        )
        await open_card(it)
        await it.press("tab", *"why", "enter", "a")
        await it.shows("undo it")
        it.clock.advance(UNDO + 0.01)
        await it.shows("not accepted: it is about step 1", "see above what has changed since", "why")
        await it.shows("Changed since step 1", "messages: changed", "+ [2]: “revise: Too abstract.”")
        await it.press("pagedown")
        await it.shows("advisor_feedback: changed")
        await it.press("pagedown")
        await it.shows("advisor: ")
        await it.press("a")
        await it.gone("Changed since step 1")


@pytest.mark.slow
async def test_escape_leaves_it_waiting():
    async with desk() as it:
        await open_card(it)
        await it.press("escape")
        await it.gone("Your answer")
        await it.shows("WAITING")


@pytest.mark.slow
async def test_quitting_in_the_undo_window_says_what_is_not_sent():
    async with desk() as it:
        await open_card(it)
        await it.press("a")
        await it.shows("sending")
        await it.press("q")
        await it.shows("has not been sent yet")
        await it.press("q")
        await it.until(lambda: it.driver.closed)
        assert not it.commands("answer")


@pytest.mark.slow
async def test_a_decision_is_held_while_the_quit_dialog_asks_which_can_send_it():
    async with desk() as it:
        await open_card(it)
        await it.press("a")
        await it.shows("sending")
        await it.press("q")
        await it.shows("has not been sent yet", "send it and quit")
        await it.let_pass(10)
        assert "has not been sent yet" in it.text()
        assert not it.commands("answer")
        await it.press("escape")
        await it.gone("Quit?")
        await it.let_pass(UNDO - 0.1)
        assert not it.commands("answer")
        await it.let_pass(0.2)
        await it.until(lambda: len(it.commands("answer")) == 1)
    async with desk() as it:
        await open_card(it)
        await it.press("a")
        await it.shows("sending")
        await it.press("q")
        await it.shows("send it and quit")
        await it.press("s")
        await it.until(lambda: it.driver.closed)
        assert len(it.commands("answer")) == 1


def asking(**changes: Any) -> tapes.Tape:
    """The tape with another request at its end."""
    tape = tapes.advisor_tape()
    request = tapes.verdict_request(**changes)
    second = tapes.verdict_request(id="req-2", title="and another")
    progress = msgspec.structs.replace(tape.end.progress, pending=(request, second))
    return dataclasses.replace(tape, end=msgspec.structs.replace(tape.end, progress=progress))


@pytest.mark.slow
async def test_high_risk_needs_a_second_key_press():
    async with desk(asking(risk="high")) as it:
        await it.press("d")
        await it.shows("1 of 2", "keys work in half a second")
        it.clock.advance(GRACE + 0.01)
        await it.shows("press the key twice")
        choices = it.run.query_one("#card-choices", Choices)
        rows = {option.id: plain_text(choices.line(row)) for row, option in enumerate(choices.options)}
        risky = {name for name, row in rows.items() if " ! high risk " in row}
        assert risky == {name for name in rows if not name.startswith("_")} - {"revise"} != set()
        await it.press("a")
        await it.shows("press again for “approve the draft”")
        await it.press("a")
        await it.shows("sending “approve the draft”")


@pytest.mark.parametrize("theme", ["dark", "light", "high-contrast", "presenter", "none"])
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
@pytest.mark.slow
async def test_high_risk_is_marked_at_the_key_of_each_answer(
    size: tuple[int, int], theme: str, monkeypatch: pytest.MonkeyPatch
):
    if theme == "none":
        monkeypatch.setenv("NO_COLOR", "1")
    long = "and tell everybody who wants to hear it " * 6
    choices = (Choice("approve", f"yes {long}", "a"), Choice("other", f"no {long}", "r"))
    tape = asking(risk="high", choices=choices, recommended=None)
    async with desk(tape, size=size, theme="" if theme == "none" else theme) as it:
        await it.press("d")
        for letter in "ar":
            await it.shows(f"   {letter}     ! high risk   ")
        shown = it.run.query_one("#card-choices", Choices)
        plain = shown.rich_style
        for row in (0, 1):
            (badge,) = [each for each in shown.render_line(row) if "! high risk" in each.text]
            assert badge.style is not None
            assert (badge.style.reverse, badge.style.bgcolor) != (plain.reverse, plain.bgcolor)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
@pytest.mark.slow
async def test_the_words_of_the_card_take_its_width(size: tuple[int, int]):
    words = "one after another and so on " * 20
    async with desk(asking(payload={"agent": "advisor", "feedback": words}), size=size) as it:
        await it.press("d")
        await it.shows("Your answer", "keys work in half")
        text = it.run.query_one("#card-text", LineView)
        rows = [plain_text(line) for line in text.lines]
        full = [row for row in rows if row.startswith(("one", "after", "another", "and", "so", "on"))]
        assert len(full) >= 3
        assert all(len(row) >= text.size.width - len(" another") for row in full[:-1])
        assert text.size.width >= it.card.size.width * 0.85


@pytest.mark.slow
async def test_a_choices_destination_is_shown_whole_or_not_at_all():
    async with desk(size=(80, 24)) as it:
        await it.press("d")
        await it.shows("approve the draft")
        choices = it.run.query_one("#card-choices", Choices)
        free = choices.size.width - len("   a    ")
        labels = ["l" * (free - 6), "l" * (free - 12), "l"]
        choices.set_options([Option("a", "a", label, note="→ somewhere else") for label in labels])
        rows = [plain_text(choices.line(row)) for row in range(3)]
        assert ["→" in row for row in rows] == [False, True, True]


@pytest.mark.slow
async def test_a_free_question_is_answered_in_json_where_its_schema_says_so():
    question = {
        "choices": (),
        "recommended": None,
        "kind": "ask",
        "schema": {"type": "object"},
        "subject": None,
    }
    async with desk(asking(**question)) as it:
        await it.press("d")
        await it.shows("Your answer as JSON", "keys work in half a second")
        it.clock.advance(GRACE + 0.01)
        await it.shows("undoes it")
        await it.press("tab", *"{oops", "enter", "enter")
        await it.shows("must be JSON:")
        await it.press("tab", *["backspace"] * 5, *'{"a":1}', "enter", "enter")
        await it.shows("sending “the answer”")
        assert (await sent(it))["value"] == {"a": 1}


@pytest.mark.slow
async def test_rows_that_a_form_leaves_free_are_the_payloads():
    fields = {"approved": {"type": "boolean"}, "amount": {"type": "integer"}, "reason": {"type": "string"}}
    question = {
        "choices": (),
        "recommended": None,
        "kind": "ask",
        "schema": {"type": "object", "properties": fields, "required": list(fields)},
        "subject": None,
        "payload": {"first": 1, "second": 2},
    }
    async with desk(asking(**question), size=(80, 24)) as it:
        await it.press("d")
        await it.shows("first   1", "second  2", "approved *", "amount *", "reason *")


@pytest.mark.slow
async def test_while_a_reason_is_typed_the_footer_says_that_letters_decide_nothing():
    async with desk() as it:
        await open_card(it)
        await it.press("slash")
        await it.shows("Done typing", "typing decides nothing")
        await it.press("escape")
        await it.gone("typing decides nothing")
        await it.shows("undoes it", "k Claim")
        await it.gone("d Decide")


@pytest.mark.slow
async def test_the_cards_key_is_shown_while_another_pane_has_the_focus():
    async with desk() as it:
        await open_card(it)
        await it.gone("d Decide")
        it.run.query_one(ChannelsPane).focus()
        await it.shows("d Decide")
        await it.press("d")
        await it.until(lambda: it.card.has_focus_within, "the card having the focus")
        await it.gone("d Decide")


@pytest.mark.slow
async def test_the_header_says_no_key_for_a_card_that_is_open_and_which_takes_back_what_is_being_sent():
    async with desk() as it:
        await it.shows("Approve this draft? — your turn, press d")
        await open_card(it)
        await it.gone("press d")
        await it.press("a")
        await it.shows("being sent, z undoes it")
        await it.press("z")
        await it.gone("being sent")
        await it.press("escape")
        await it.shows("Approve this draft? — your turn, press d")


@pytest.mark.slow
async def test_the_key_that_opens_the_card_takes_back_nothing_that_is_being_sent():
    async with desk() as it:
        await open_card(it)
        await it.press("a")
        await it.shows("sending “approve the draft”")
        it.clock.advance(GRACE + 0.01)  # sooner it would be the next letter of a text
        await it.press("d")
        await sent(it)


@pytest.mark.slow
async def test_what_comes_while_the_card_hides_a_pane_is_wrapped_for_it_afterwards():
    words = "verdict: revise, the reply does not"
    async with desk() as it:
        await open_card(it)
        session = it.session
        session.step_view = msgspec.structs.replace(session.step_view, why=words)
        it.run.show_all()
        await it.press("escape")
        await it.shows(words)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
@pytest.mark.slow
async def test_what_is_said_below_the_choices_is_wrapped(size: tuple[int, int]):
    async with desk(size=size) as it:
        await open_card(it)
        refuse(it, "the verdict was about another draft than the newest one is")
        await it.shows("not accepted", "than the", "one is", "later")


@pytest.mark.slow
async def test_long_notes_are_shown_above_the_choices_and_scroll():
    async with desk(size=(80, 24)) as it:
        await open_card(it)
        refuse(it, "because of this and that, " * 30 + "and no more")
        await it.shows("see above (pgdn, pgup): not", "later", "not accepted: because")
        while "and no more" not in it.text():
            before = it.text()
            await it.press("pagedown")
            await it.until(lambda before=before: it.text() != before, "more of it")


@pytest.mark.parametrize(
    ("here", "beside", "width", "words"),
    [
        (9, 12, 60, "pgdn: 9 more lines here, 12 of latest_draft"),
        (9, 12, 40, "pgdn: 21 more lines"),
        (1, 0, 40, "pgdn: 1 more line here"),
        (0, 0, 40, ""),
    ],
)
def test_the_line_on_what_is_below_fits_the_card(here: int, beside: int, width: int, words: str):
    assert words_below(here, beside, "latest_draft", "pgdn", width) == words
