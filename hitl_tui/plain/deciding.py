"""Deciding in lines: the question, the whole text it is about, the allowed answers, a reason, a yes."""

from __future__ import annotations

from typing import Any

from hitl_tui.drivers.protocol import Snapshot
from hitl_tui.engine.events import PRIVATE
from hitl_tui.engine.records import Choice, Request
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.plain.answers import find_choice
from hitl_tui.plain.console import confirm, refusal
from hitl_tui.plain.content import content
from hitl_tui.plain.talk import Talk
from hitl_tui.plain.words import card_lines, name, numbered
from hitl_tui.view.answers import choice_answer, value_answer, wants_text
from hitl_tui.view.review import ReviewCard, review_card
from hitl_tui.view.run_view import open_view
from hitl_tui.view.value_lines import value_lines

_SUBJECT = 500


def waiting_request(snapshot: Snapshot) -> Request | None:
    """The request that waits first for a decision."""
    progress = snapshot.progress
    if progress.status != "waiting":
        return None
    return next((one for one in progress.pending if not one.breakpoint), None)


def decide(talk: Talk) -> None:
    """Ask for a decision on the request that waits, and send it."""
    snapshot = talk.snapshot()
    request = waiting_request(snapshot)
    if request is None:
        talk.console.say("Nothing waits for a decision.")
        return
    card = review_card(request, open_view(snapshot), snapshot.values)
    talk.console.say(*question(card, snapshot))
    try:
        made = _answer(talk, request, card)
    except HitlError as error:
        talk.console.say(*refusal(error))
        return
    if made is None:
        talk.console.say("It goes on waiting.")
        return
    answer, note = made
    send = talk.driver.answer(
        request.id, answer, step=request.step, actor=talk.actor, note=note, seen=card.seen
    )
    try:
        head = talk.run(send)
    except HitlError as error:
        words = content([note], 40) if note else []
        talk.console.say(*refusal(error), *(["Your words were:", *words] if words else []))
        return
    talk.console.say(f"Decided: your answer is recorded, the thread is at step {head}. c continues.")


def question(card: ReviewCard, snapshot: Snapshot) -> list[str]:
    """The review card in lines, with the whole text that is decided about."""
    lines = card_lines(card)
    subject = card.request.subject
    if subject is not None and snapshot.values.get(subject) not in (None, PRIVATE):
        shown = value_lines(snapshot.values[subject], "text")
        lines += [f"The text of {name(subject)}:", *content(shown[:_SUBJECT], _SUBJECT)]
        if len(shown) > _SUBJECT:
            lines.append(f"({len(shown) - _SUBJECT} more lines: v {name(subject)} shows them)")
    if card.choices:
        choices = [
            f"{name(one.id)}: {one.label}" + (", the usual one" if one.recommended else "")
            for one in card.choices
        ]
        lines += ["Allowed answers:", *numbered(choices)]
    return lines


def _answer(talk: Talk, request: Request, card: ReviewCard) -> tuple[Any, str | None] | None:
    """The answer and the words that go with it; None to leave it waiting."""
    if request.choices:
        typed = talk.console.ask("Your answer, by number or name; empty leaves it waiting:")
        if not typed:
            return None
        choice = _chosen(request, typed)
        words = _words(talk, choice)
        answer: Any = choice_answer(choice, words)
        label = name(choice.id)
    else:
        kind = "text" if wants_text(request) else "JSON"
        typed = talk.console.ask(f"Your answer, as {kind}; empty leaves it waiting:")
        if not typed:
            return None
        answer, words, label = value_answer(request, typed), "", "your answer"
    if card.high_risk and not confirm(talk.console, f"High risk. Really {label}?"):
        return None
    return answer, words or None


def _chosen(request: Request, typed: str) -> Choice:
    if typed.isascii() and typed.isdigit():
        if not 1 <= int(typed) <= len(request.choices):
            raise UsageError(f"there is no answer {typed}", f"answers are 1 to {len(request.choices)}")
        return request.choices[int(typed) - 1]
    return find_choice(request, typed)


def _words(talk: Talk, choice: Choice) -> str:
    if choice.text == "required":
        return talk.console.ask("Your words, required:")
    return talk.console.ask("Why, for the record; empty for nothing:")
