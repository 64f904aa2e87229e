"""The review card without a screen: what each key does in each state, what is shown, and what is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec
import pytest

from hitl_tui.engine.log.repeats import NodeRepeat, Repeats
from hitl_tui.engine.log.requests import Choice, HandedOn, Request, Vote
from hitl_tui.engine.thread.comments import Comment
from hitl_tui.errors import AnswerRefused, StoreUnusable
from hitl_tui.verbs.keymap import load_keymap
from hitl_tui.view.card import Version
from hitl_tui.view.form import Reading
from hitl_tui.view.format import local_time
from hitl_tui.view.review import GRACE, UNDO, Effects, Review, Send, Since, Write
from hitl_tui.view.run_view import RunView, open_view
from hitl_tui.view.spans import plain_text
from tests.support import tape as tapes
from tests.support.spec import spec

pytestmark = spec("11")

KEYMAP = load_keymap({})
TEXT = {"choices": (), "recommended": None, "kind": "ask", "subject": None, "payload": None}
SCHEMA = {
    "type": "object",
    "properties": {"item": {"type": "string"}, "amount": {"type": "integer"}},
    "required": ["item"],
}
CALLS = {
    "action_requests": [{"name": "send", "args": {"to": "a"}}, {"name": "delete", "args": {"path": "x"}}],
    "review_configs": [
        {"action_name": "send", "allowed_decisions": ["approve", "edit", "reject"]},
        {"action_name": "delete", "allowed_decisions": ["approve", "reject"]},
    ],
}


@dataclass
class Thread:
    """A thread that asks."""

    requests: Sequence[Request]
    thread_id: str = tapes.THREAD
    view: RunView = field(default_factory=lambda: open_view(tapes.advisor_tape().end))


class Card:
    """A review card with somebody at it; seconds pass only when a test says so."""

    def __init__(self, *requests: Request) -> None:
        self.now = 100.0
        self.thread = Thread(requests or (tapes.verdict_request(),))
        self.review = Review(self.thread, self.thread.requests[0], "anna", KEYMAP, self.now)

    def opened(self) -> Card:
        self.wait(GRACE)
        return self

    def wait(self, seconds: float) -> Effects:
        self.now += seconds
        return self.review.tick(self.now)

    def press(self, key: str) -> Effects:
        """A key while the choices have the focus, as `Choices` hears it."""
        review, printable = self.review, len(key) == 1
        if review.swallows(key, printable=printable, typing=False, now=self.now) or not review.armed:
            return ()
        options, cursor = review.options, review.cursor
        if key == "enter":
            at = next(place for place, one in enumerate(options) if one.key == "ask.take")
            return review.choose(options[at if cursor is None else cursor].id, self.now)
        wanted = next((option for option in options if key in option.keys(KEYMAP)), None)
        return () if wanted is None else review.choose(wanted.id, self.now)

    @property
    def note(self) -> str:
        return self.review.note(self.now)[0]

    @property
    def labels(self) -> list[str]:
        return [option.label for option in self.review.options]

    def text(self, width: int = 80) -> str:
        return "\n".join(plain_text(line) for line in self.review.lines(width))


def risky() -> Card:
    return Card(tapes.verdict_request(risk="high"))


def at(state: str) -> Card:
    """A card in a state."""
    card = risky() if state == "confirm" else Card()
    if state == "grace":
        return card
    card.opened()
    if state in ("confirm", "sending", "sent"):
        card.press("a")
    if state == "sent":
        card.wait(UNDO)
    if state == "over":
        card.review.refuse(AnswerRefused("somebody was faster", ""))
        card.review.survives_refresh()
    assert card.review.state == state
    return card


STATES = ("grace", "open", "confirm", "sending", "sent", "over")
TABLE = """
key     grace  open          confirm         sending       sent  over
a       grace  sending       sending         sending       sent  over
enter   grace  sending       sending         sending       sent  over:later
r       grace  open:reason   confirm:reason  sending       sent  over
z       grace  open          confirm         open          sent  over
n       grace  open          confirm         sending:next  sent  over
escape  grace  open:later    confirm:later   sending       sent  over:later
q       grace  open          confirm         sending       sent  over
"""
"""The state after a key in each state, and what is left to do for whoever shows the card."""


@pytest.mark.parametrize(
    ("state", "key", "outcome"),
    [
        pytest.param(state, row.split()[0], outcome, id=f"{state}-{row.split()[0]}")
        for row in TABLE.strip().splitlines()[1:]
        for state, outcome in zip(STATES, row.split()[1:], strict=True)
    ],
)
def test_what_each_key_does_in_each_state(state: str, key: str, outcome: str) -> None:
    card = at(state)
    effects = card.press(key)
    assert ":".join((card.review.state, *map(str, effects))) == outcome


@pytest.mark.parametrize(
    ("state", "seconds", "after", "sends"),
    [
        ("grace", GRACE - 0.01, "grace", False),
        ("grace", GRACE, "open", False),
        ("open", 1_000, "open", False),
        ("confirm", 1_000, "confirm", False),
        ("sending", UNDO - 0.01, "sending", False),
        ("sending", UNDO, "sent", True),
        ("sent", 1_000, "sent", False),
        ("over", 1_000, "over", False),
    ],
)
def test_what_time_does_in_each_state(state: str, seconds: float, after: str, sends: bool) -> None:
    card = at(state)
    effects = card.wait(seconds)
    assert card.review.state == after
    assert [type(effect) for effect in effects] == [Send] * sends


NOTES = {
    "grace": "keys work in half a second",
    "open": "you are anna; z undoes it within 4 s",
    "confirm": "high risk: press again for “approve the draft”",
    "sending": "sending “approve the draft” in 4…",
    "sent": "sent",
    "over": "not accepted: somebody was faster. Your text stays here until you close this",
}


@pytest.mark.parametrize("state", STATES)
def test_what_is_said_and_offered_in_each_state(state: str) -> None:
    card = at(state)
    assert card.note == NOTES[state]
    offered = {
        "sending": ["undo it", "send it now", "send it, on to the next thread"],
        "over": ["close this"],
    }
    offered["sent"] = offered["sending"]
    choices = [choice.label for choice in tapes.CHOICES]
    assert card.labels == offered.get(state, [*choices, "later"])
    assert card.review.armed == (state != "grace")
    marked = {"sending": None, "sent": None, "confirm": 1}
    assert card.review.cursor == marked.get(state, 0)


def test_what_is_sent_is_the_answer_with_its_note_and_the_hash_of_what_was_shown() -> None:
    card = Card().opened()
    card.review.words = " area "
    card.press("a")
    (send,) = card.wait(UNDO)
    assert isinstance(send, Send)
    decision, view = send.decision, card.thread.view
    shown = view.checkpoint(4)
    assert shown is not None
    assert (decision.answer, decision.note, decision.seen, decision.actor, decision.request.step) == (
        {"choice": "approve", "text": "area"}, "area", shown.state_hash, "anna", 4,
    )  # fmt: skip


def test_a_decision_is_sent_once_however_often_it_is_asked_for() -> None:
    card = Card().opened()
    card.press("a")
    card.now += GRACE
    (send,) = card.review.choose("_now", card.now)
    assert isinstance(send, Send)
    assert card.review.choose("_now", card.now) == ()
    assert card.review.send_at_once() is None
    assert card.wait(UNDO) == ()


def test_the_key_that_decides_does_not_also_send_at_once() -> None:
    card = Card().opened()
    card.press("enter")
    assert card.press("enter") == ()
    assert card.wait(GRACE) == ()
    (send,) = card.press("enter")
    assert isinstance(send, Send)


def test_typing_restarts_the_reading_pause_but_leaving_keys_do_not() -> None:
    card = Card()
    card.now += GRACE - 0.1
    assert card.press("x") == ()
    card.wait(GRACE - 0.01)
    assert card.review.state == "grace"
    for key, printable in (("tab", False), ("less_than_sign", True), ("escape", False)):
        assert not card.review.swallows(key, printable=printable, typing=False, now=card.now)
    assert not card.review.swallows("x", printable=True, typing=True, now=card.now)
    card.wait(0.01)
    assert card.review.state == "open"


def test_another_answer_at_high_risk_has_to_be_confirmed_itself() -> None:
    card = risky().opened()
    assert card.note == "high risk: press the key twice"
    card.press("a")
    card.review.choose("accept", card.now)
    assert (card.review.state, card.note) == ("confirm", "high risk: press again for “agree: send it back”")
    card.press("enter")
    assert card.review.unsent == "agree: send it back"


def test_enter_confirms_what_is_to_be_pressed_again_and_not_what_is_recommended() -> None:
    card = risky().opened()
    card.press("a")
    card.press("enter")
    assert card.review.unsent == "approve the draft"


def test_words_that_an_answer_needs_are_asked_for_and_its_choice_stays_marked() -> None:
    card = Card().opened()
    assert card.press("r") == ("reason",)
    assert card.note == "say what to change; enter, then enter for “send back with feedback”"
    card.review.words = "shorter"
    card.press("enter")
    (send,) = card.wait(UNDO)
    assert isinstance(send, Send)
    assert send.decision.answer == {"choice": "revise", "text": "shorter"}


def test_a_refusal_asks_why_and_takes_no_answer_for_one() -> None:
    choices = (Choice("approve", "yes", "a", "optional"), Choice("reject", "no", "x", "optional"))
    card = Card(tapes.verdict_request(choices=choices, recommended="approve")).opened()
    assert card.press("x") == ("reason",)
    assert card.note.startswith("say why, or not")
    card.press("enter")
    assert card.review.unsent == "no"


@pytest.mark.parametrize(
    ("request_", "options", "label", "takes_words"),
    [
        pytest.param(TEXT, ["send the answer"], "Your answer (tab)", True, id="text"),
        pytest.param(
            {**TEXT, "schema": {"type": "object", "minProperties": 1}},
            ["send the answer", "write it in an editor"], "Your answer as JSON (tab)", True, id="json",
        ),
        pytest.param(
            {**TEXT, "schema": SCHEMA}, ["send the answer"], "Your answer (tab), * must be given", False,
            id="form",
        ),
        pytest.param(
            {**TEXT, "kind": "edit", "payload": "one"}, ["edit it", "send it unchanged"],
            "Edit what is shown above", False, id="edit",
        ),
        pytest.param(
            {**TEXT, "kind": "approve", "shape": "hitl_middleware", "payload": CALLS},
            ["approve", "edit the arguments", "reject", "don't ask again for calls like this"],
            "Your reason (tab), kept in the log", True, id="tool calls",
        ),
        pytest.param(
            {"choices": tapes.CHOICES[:1]}, ["agree: send it back", "edit latest_draft first"],
            "Your reason (tab), kept in the log", True, id="choice with a subject",
        ),
    ],
)  # fmt: skip
def test_what_is_offered_for_each_kind_of_question(
    request_: dict[str, Any], options: list[str], label: str, takes_words: bool
) -> None:
    review = Card(tapes.verdict_request(**request_)).opened().review
    assert [option.label for option in review.options][:-1] == options
    assert (review.label, review.takes_words) == (label, takes_words)


def test_a_text_is_sent_as_it_is_and_json_as_what_it_says() -> None:
    card = Card(tapes.verdict_request(**TEXT)).opened()
    card.review.words = "moss"
    card.press("enter")
    assert card.review.decision is not None
    assert card.review.decision.answer == "moss"

    card = Card(tapes.verdict_request(**{**TEXT, "schema": {"type": "object", "minProperties": 1}})).opened()
    for words, problem in (("{oops", "must be JSON"), ("{}", "has less than 1")):
        card.review.words = words
        assert card.press("enter") == ()
        assert problem in card.note
    card.review.words = '{"a": 1}'
    card.press("enter")
    assert card.review.decision.answer == {"a": 1}


def test_a_form_is_opened_once_it_is_read_and_checked_as_a_whole_before_anything_is_sent() -> None:
    card = Card(tapes.verdict_request(**{**TEXT, "schema": SCHEMA}))
    assert card.wait(GRACE) == ("form",)
    (reading,) = card.press("enter")
    assert isinstance(reading, Reading)
    assert reading.problems == {("item",): "is required"}
    card.review.texts, card.review.changed = {("item",): "tea", ("amount",): "2"}, True
    assert card.review.unapplied[0] == "item: tea\namount: 2"
    card.press("enter")
    assert card.review.decision is not None
    assert card.review.decision.answer == {"item": "tea", "amount": 2}


def test_an_edited_version_is_shown_and_sent() -> None:
    card = Card(tapes.verdict_request(**{**TEXT, "kind": "edit", "payload": "one"})).opened()
    (write,) = card.press("enter")
    assert isinstance(write, Write)
    assert (write.value, write.text) == ("one", True)
    card.review.written(None, card.now)
    assert "send your version" not in card.labels
    card.review.written(("two",), card.now)
    assert "Your version\ntwo" in card.text()
    card.press("enter")
    assert card.review.decision is not None
    assert card.review.decision.answer == "two"


def test_several_actions_are_decided_one_by_one_and_sent_together() -> None:
    asked = tapes.verdict_request(**{**TEXT, "kind": "approve", "shape": "hitl_middleware", "payload": CALLS})
    card = Card(asked).opened()
    assert card.press("e") == ("choices", "form")
    card.review.texts = {("to",): "b"}
    reading, focus = card.press("enter")
    assert isinstance(reading, Reading)
    assert focus == "choices"
    assert "back to action 1" in card.labels
    assert card.press("backspace") == ("choices",)
    assert "back to action 1" not in card.labels
    card.press("a")
    card.review.words = "no copy"
    card.press("r")
    assert card.review.decision is not None
    assert card.review.decision.answer == ["approve", {"choice": "reject", "text": "no copy"}]
    assert "2 of 2  delete  reject" in card.text()
    card.press("z")
    assert "2 of 2  delete  reject" not in card.text()


def test_the_reason_of_a_rejected_action_stays_in_sight() -> None:
    asked = tapes.verdict_request(**{**TEXT, "kind": "approve", "shape": "hitl_middleware", "payload": CALLS})
    calls = {**CALLS, "action_requests": CALLS["action_requests"][::-1]}
    calls["review_configs"] = CALLS["review_configs"][::-1]
    card = Card(msgspec.structs.replace(asked, payload=calls)).opened()
    card.review.words = "not that file"
    card.press("r")
    assert card.review.words == ""
    assert "1 of 2  delete  reject: “not that file”" in card.text()
    card.press("a")
    assert "sending “reject: “not that file”, approve”" in card.note


def test_json_for_a_request_that_takes_a_text_is_said_to_be_sent_as_one() -> None:
    card = Card(tapes.verdict_request(**TEXT)).opened()
    card.review.words = '{"ok": true}'
    assert card.note == "sent as a text: the request does not ask for JSON"
    card.press("enter")
    assert "the answer as a text" in card.note
    assert card.review.decision is not None
    assert card.review.decision.answer == '{"ok": true}'


def test_what_is_made_up_is_put_aside_for_another_question_and_found_again() -> None:
    first = tapes.verdict_request(id="req-1", **TEXT)
    second = tapes.verdict_request(id="req-2", **{**TEXT, "schema": SCHEMA})
    card = Card(first, second).opened()
    review = card.review
    assert review.bound.startswith("1 of 2, > next · about step 4")
    review.words = "moss"
    assert review.ask(card.thread, second, "anna", card.now) == ("choices", "load")
    assert (review.state, review.words) == ("grace", "")
    review.texts, review.changed = {("item",): "tea", ("amount",): ""}, True
    review.ask(card.thread, first, "anna", card.now)
    assert review.words == "moss"
    review.ask(card.thread, second, "anna", card.now)
    assert review.texts[("item",)] == "tea"


def test_what_was_written_about_a_thread_is_not_found_in_its_fork_whose_request_has_the_same_id() -> None:
    card = Card().opened()
    card.review.words = "not good enough"
    card.review.ask(Thread(card.thread.requests, tapes.FORK), card.review.request, "anna", card.now)
    assert card.review.words == ""
    card.review.ask(card.thread, card.review.request, "anna", card.now)
    assert card.review.words == "not good enough"


CHANGES: dict[str, dict[str, Any]] = {
    "step": {"step": 3},
    "vote": {"reviewers": ("ann", "bob"), "votes": (Vote("bob", "approve", 1),)},
    "payload": {"payload": {"verdict": "approved"}},
    "next": {"id": "req-2"},
}


@pytest.mark.parametrize("change", ["step", "vote", "next"])
@pytest.mark.parametrize("state", ["open", "confirm", "sending"])
def test_a_changed_request_is_asked_again_and_the_pending_decision_is_dropped(
    state: str, change: str
) -> None:
    card = at(state)
    known = card.review.request
    effects = card.review.follow(card.thread, msgspec.structs.replace(known, **CHANGES[change]), card.now)
    assert effects[:2] == ("choices", "load")
    assert card.review.state == "grace"
    assert card.review.decision is None
    if state == "sending":
        assert effects[2:] == (Since(known),)
        assert "your decision was not sent" in card.note
    else:
        assert effects[2:] == ()


def test_a_request_that_is_the_same_is_left_alone() -> None:
    card = at("sending")
    same = msgspec.structs.replace(card.review.request)
    assert card.review.follow(card.thread, same, card.now) == ()
    assert card.review.state == "sending"


def test_words_stay_where_only_the_step_of_a_request_has_changed_and_a_form_where_its_payload_has_not() -> (
    None
):
    card = Card(tapes.verdict_request(**{**TEXT, "kind": "edit", "payload": "one"})).opened()
    card.review.words = "mine"
    card.review.written(("two",), card.now)
    card.review.follow(card.thread, msgspec.structs.replace(card.review.request, step=3), card.now)
    assert (card.review.words, card.review.draft.value) == ("mine", "two")
    changed = msgspec.structs.replace(card.review.request, step=2, payload="other")
    card.review.follow(card.thread, changed, card.now)
    assert (card.review.words, card.review.draft.value) == ("mine", "other")


@pytest.mark.parametrize(
    ("prepare", "stays"),
    [
        pytest.param(lambda card: None, False, id="nothing is made up"),
        pytest.param(lambda card: setattr(card.review, "words", "mine"), True, id="words"),
        pytest.param(lambda card: card.press("a"), True, id="a decision on its way"),
        pytest.param(
            lambda card: card.review.refuse(AnswerRefused("no", "")), True, id="a refused answer"
        ),
    ],
)  # fmt: skip
def test_a_request_that_goes_away_leaves_what_was_made_up_to_be_read(prepare: Any, stays: bool) -> None:
    card = Card().opened()
    prepare(card)
    assert card.review.survives_refresh() == stays
    assert (card.review.state == "over") == stays
    if stays:
        assert "Your text stays here until you close this" in card.note
        assert card.press("escape") == ("later",)


def test_a_refused_answer_says_why_keeps_the_words_and_can_be_given_again() -> None:
    card = Card().opened()
    card.review.words = "why"
    card.press("a")
    card.wait(UNDO)
    assert card.review.refuse(AnswerRefused("it is about step 1", "look again")) == (
        Since(card.review.request),
    )
    assert (card.review.state, card.review.reason) == ("open", "why")
    assert card.note == "not accepted: it is about step 1 — look again"
    card.review.show_since(card.review.request, ((),))
    assert card.note.endswith("; see above what has changed since (pgdn, pgup)")
    assert card.review.since
    card.press("a")
    assert (card.review.since, card.review.refused, card.review.state) == ((), "", "sending")


def test_a_failed_write_is_reported_and_changes_nothing() -> None:
    card = at("sent")
    assert card.review.refuse(StoreUnusable("it is locked", "")) == ()
    assert card.note.startswith(f"not accepted: {StoreUnusable.title}: it is locked")


@pytest.mark.parametrize(("height", "rows"), [(40, 10), (24, 6)])
def test_a_note_too_long_for_its_place_is_shown_above_the_text(height: int, rows: int) -> None:
    card = Card().opened()
    card.review.refuse(AnswerRefused("because of this and that, " * 3, ""))
    assert card.review.note_lines(card.now, 60, height)[1] == ()
    card.review.refuse(AnswerRefused("because of this and that, " * 40 + "and no more", ""))
    lines, above = card.review.note_lines(card.now, 60, height)
    assert len(lines) == 1
    assert plain_text(lines[0]).startswith("see above (pgdn, pgup): not accepted")
    assert "and no more" in plain_text(above[-2])
    assert len(above) > rows


def test_the_owner_is_shown_above_the_scrolled_part() -> None:
    handed = HandedOn("ben", "cy", "you know them", 1)
    card = Card(tapes.verdict_request(handed=handed)).opened()
    card.review.comment(Comment("lunch", "keep one", "latest_draft", 0))
    title, _, _, whose, *rest = card.text(60).splitlines()
    assert (title[:19], whose) == ("Approve this draft?", "handed to ben by cy: “you know them”")
    assert any("Your comments" in line for line in rest)


def test_the_card_says_who_may_answer_how_many_must_agree_and_until_when() -> None:
    due = int(datetime.now().timestamp() * 1e6) + 3_600_000_000
    terms = {"reviewers": ("anna", "ben"), "quorum": 2, "deadline": due, "on_timeout": {"choice": "revise"}}
    card = Card(tapes.verdict_request(**terms)).opened()
    assert card.text().splitlines()[2:6] == [
        f"asked by  advisor, since {local_time(tapes.verdict_request().asked_at)}",
        "who may   anna, ben (you are anna)",
        "votes     0 of 2 that must agree",
        f"due       {local_time(due)}; then it is “send back with feedback”",
    ]
    assert card.labels[-1] == f"later, but by {local_time(due)}"


def test_people_who_may_not_answer_see_so_before_they_type() -> None:
    card = Card(tapes.verdict_request(reviewers=("ben", "cy"))).opened()
    assert "who may   ben, cy; not you: only ben or cy may answer" in card.text()
    for key in ("a", "r", "enter"):
        assert card.press(key) == ()
        assert (card.review.state, card.note) == ("open", "nothing was decided: only ben or cy may answer")
    assert card.press("escape") == ("later",)


def test_people_who_have_voted_see_so() -> None:
    voted = Vote("anna", "approve", 1)
    card = Card(tapes.verdict_request(reviewers=("anna", "ben"), quorum=2, votes=(voted,))).opened()
    assert "not you: you have voted" in card.text()


def test_nodes_that_run_again_are_always_visible() -> None:
    card = Card(tapes.verdict_request(**TEXT)).opened()
    card.review.show_repeats(Repeats(1, 1, (NodeRepeat("advisor", 1, ()),), tokens_in=900, cost=0.01))

    def shown(rows: int) -> list[str]:
        return [plain_text(line) for line in card.review.lines(60, rows=rows)]

    many, few = shown(60), shown(4)
    assert many[many.index("After your answer") + 1 :][:3] == [
        "Runs again: advisor.",
        "None of these nodes is known to have side effects.",
        "Last time: $0.0100, 900 tok.",
    ]
    assert few[2:4] == ["Runs again: advisor.", "Last time: $0.0100, 900 tok."]
    assert "After your answer" not in few


def test_with_few_rows_changes_come_before_comments() -> None:
    card = Card().opened()
    version = Version(3, "worker", tapes.DRAFT_2)
    card.review.show_versions(version, Version(1, "worker", tapes.DRAFT_1))
    card.review.comment(Comment("lunch", "keep one", "latest_draft", 0))

    def first_row(rows: int, words: str) -> int:
        lines = [plain_text(line) for line in card.review.lines(60, rows=rows)]
        return next(at for at, line in enumerate(lines) if words in line)

    assert first_row(99, "Your comments") < first_row(99, "Picture a lunch box")
    assert first_row(8, "Picture a lunch box") < first_row(8, "Your comments")


def test_all_foreign_text_is_sanitised_on_the_card() -> None:
    hostile = "a\x1b[31m\x07b"
    card = Card(tapes.verdict_request(feedback=hostile, title=hostile, subject=None)).opened()
    card.review.refuse(AnswerRefused(hostile, hostile))
    note, above = card.review.note_lines(card.now, 60, 40)
    shown = card.text() + "".join(plain_text(line) for line in (*note, *above)) + card.review.bound
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_refusing_needs_one_press_even_at_high_risk() -> None:
    choices = (Choice("pay", "Pay", "a"), Choice("refuse", "Refuse", "x", "none"))
    card = Card(tapes.verdict_request(risk="high", choices=choices, recommended=None)).opened()
    assert [option.risk for option in card.review.options][:2] == ["high risk", ""]
    card.press("x")
    assert card.review.state == "sending"
    card.review.take_back()
    card.press("a")
    assert card.review.state == "confirm"


def test_the_next_node_is_a_term_where_it_does_not_depend_on_the_answer() -> None:
    card = Card().opened()
    ids = [choice.id for choice in card.review.card.choices]
    card.review.destinations = dict.fromkeys(ids, "→ bank")
    assert "then runs  bank" in card.text()
    assert not any(option.note for option in card.review.options)
    card.review.destinations[ids[0]] = "→ end"
    assert "then runs" not in card.text()
    assert card.review.options[0].note == "→ end"


def test_an_edit_by_somebody_else_is_announced_while_the_card_is_open() -> None:
    card = Card().opened()
    view = card.thread.view
    edited = msgspec.structs.replace(view.checkpoints[-1], step=5, source="human", actor="bob", node="")
    card.thread.view = msgspec.structs.replace(view, checkpoints=(*view.checkpoints, edited))
    card.review.follow(card.thread, msgspec.structs.replace(card.review.request, step=5), card.now)
    assert "bob has just edited this, at step 5: read it again" in card.text()
    mine = Card().opened()
    by_me = msgspec.structs.replace(edited, actor="anna")
    mine.thread.view = msgspec.structs.replace(view, checkpoints=(*view.checkpoints, by_me))
    mine.review.follow(mine.thread, msgspec.structs.replace(mine.review.request, step=5), mine.now)
    assert "has just edited" not in mine.text()


SAFE = {
    "action_requests": [{"name": "look", "args": {"n": n}} for n in range(4)],
    "review_configs": [{"action_name": "look", "allowed_decisions": ["approve", "reject"]}],
}


def calls(payload: Any, **changes: Any) -> Card:
    """A card that asks about calls of tools."""
    return Card(
        tapes.verdict_request(**{**TEXT, "shape": "hitl_middleware", "payload": payload, **changes})
    ).opened()


def test_where_nothing_is_at_risk_the_remaining_calls_are_approved_at_once() -> None:
    card = calls(SAFE)
    assert "approve all four" in card.labels
    card.press("a")
    assert "approve the remaining three" in card.labels
    card.press("A")
    assert card.review.unsent == "approve, approve, approve, approve"
    assert card.review.decision is not None
    assert card.review.decision.answer == ["approve"] * 4
    card.press("z")
    assert card.review.draft.part == 1


def test_not_asking_again_is_a_choice_that_decides_nothing() -> None:
    card = calls(SAFE)
    assert "don't ask again for calls like this" in card.labels
    assert card.review.choose("_allow", card.now) == ("allow",)
    assert card.review.state == "open"


@pytest.mark.parametrize("changes", [{"risk": "high"}, {"tainted": True}])
def test_at_risk_each_call_is_decided_by_itself(changes: dict[str, Any]) -> None:
    assert not {"approve all four", "don't ask again for calls like this"} & set(
        calls(SAFE, **changes).labels
    )


def test_a_call_that_deletes_is_neither_approved_with_others_nor_allowed() -> None:
    card = calls(CALLS)
    assert not any("approve all" in label for label in card.labels)
    assert "don't ask again for calls like this" in card.labels  # it sends
    card.press("a")
    assert "don't ask again for calls like this" not in card.labels  # it deletes
