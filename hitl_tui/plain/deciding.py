"""Deciding in lines: the question, the whole text it is about, the allowed answers, a reason, a yes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hitl_tui.drivers.protocol import Snapshot
from hitl_tui.engine.channels.values import thaw
from hitl_tui.engine.interrupts.foreign import Action
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.requests import Choice, Request
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.plain.answers import named_choice
from hitl_tui.plain.console import confirm, refusal
from hitl_tui.plain.content import content
from hitl_tui.plain.forms import LeftWaiting, ask_edit, ask_form, ask_value
from hitl_tui.plain.guarding import give_back, ready_to
from hitl_tui.plain.talk import Talk
from hitl_tui.plain.words import card_lines, name, numbered
from hitl_tui.view.answers import choice_answer
from hitl_tui.view.asking import EDIT, actions, allowed, answer_form, edit_form
from hitl_tui.view.review import ReviewCard, review_card
from hitl_tui.view.run_view import open_view
from hitl_tui.view.value_lines import value_lines

_SUBJECT = 500


def waiting_request(snapshot: Snapshot) -> Request | None:
    """The request that waits first for a decision."""
    return next(iter(_asked(snapshot)), None)


def _asked(snapshot: Snapshot) -> list[Request]:
    progress = snapshot.progress
    if progress.status != "waiting":
        return []
    return [one for one in progress.pending if not one.breakpoint]


def decide(talk: Talk, typed: str = "") -> bool:
    """Ask for a decision on a request that waits, and send it; whether it was accepted.

    Args:
        typed: which one, by its place among those that wait; asked for where there are several.
    """
    snapshot = talk.snapshot()
    request = _one_of(talk, _asked(snapshot), typed)
    if request is None:
        return False
    snapshot = ready_to(talk, "can_answer")
    card = review_card(request, open_view(snapshot), snapshot.values)
    talk.console.say(*question(card, snapshot))
    try:
        answer, note = _answer(talk, request, card)
    except LeftWaiting:
        talk.console.say("It goes on waiting.")
        return False
    except HitlError as error:
        talk.console.say(*refusal(error))
        return False
    send = talk.driver.answer(
        request.id, answer, step=request.step, actor=talk.actor, note=note, seen=card.seen
    )
    try:
        head = talk.run(send)
    except HitlError as error:
        made = "" if request.choices else "\n".join(value_lines(answer, "text"))
        give_back(talk, error, request.step, ("answer was", made), ("words were", note))
        return False
    now: Snapshot = talk.run(talk.driver.snapshot())
    left = len(_asked(now))
    more = f" {left} more to decide, d decides." if left else ""
    talk.console.say(f"Decided: your answer is recorded, the thread is at step {head}.{more}")
    return True


def _one_of(talk: Talk, pending: list[Request], typed: str) -> Request | None:
    if not pending:
        talk.console.say("Nothing waits for a decision.")
        return None
    if len(pending) == 1 and not typed:
        return pending[0]
    if not typed:
        talk.console.say(f"{len(pending)} requests wait:", *numbered([name(one.title) for one in pending]))
        typed = talk.console.ask("Which, by number; empty leaves them all waiting:")
        if not typed:
            return None
    if not (typed.isascii() and typed.isdigit() and 1 <= int(typed) <= len(pending)):
        raise UsageError(f"there is no request {typed}", f"requests are 1 to {len(pending)}")
    return pending[int(typed) - 1]


def question(card: ReviewCard, snapshot: Snapshot) -> list[str]:
    """The review card in lines, with the whole text that is decided about."""
    lines = card_lines(card)
    subject = card.request.subject
    if subject is not None and snapshot.values.get(subject) not in (None, PRIVATE):
        shown = value_lines(snapshot.values[subject], "text")
        lines += [
            f"The text of {name(subject)}:",
            *content(shown[:_SUBJECT], _SUBJECT, f"v {name(subject)} shows it whole"),
        ]
        if len(shown) > _SUBJECT:
            lines.append(f"({len(shown) - _SUBJECT} more lines: v {name(subject)} shows them)")
    if card.choices:
        usual = [one.id for one in card.choices if one.recommended]
        choices = [
            choice_line(one) + (", the usual one" if one.id in usual else "") for one in card.request.choices
        ]
        lines += ["Allowed answers:", *numbered(choices)]
    return lines


def choice_line(choice: Choice) -> str:
    """An allowed answer, as a line tells it."""
    return f"{name(choice.id)}: {name(choice.label or choice.id)}"


def _answer(talk: Talk, request: Request, card: ReviewCard) -> tuple[Any, str | None]:
    """The answer and the words that go with it; raises `LeftWaiting`."""
    words, label, form = "", "your answer", answer_form(request)
    if request.shape:
        answer = _decide_actions(talk, request)
    elif request.choices:
        choice, words = _choose_with_words(talk, request.choices)
        label, answer = name(choice.id), choice_answer(choice, words)
    elif request.kind == "edit":
        answer = ask_edit(talk.console, thaw(request.payload), request.schema)
    elif form is not None:
        answer = ask_form(talk.console, form)
    else:
        answer = ask_value(talk.console, request.schema)
    if card.high_risk and not confirm(talk.console, f"High risk. Really {label}?"):
        raise LeftWaiting
    return answer, words or None


def _decide_actions(talk: Talk, request: Request) -> list[Any]:
    """A decision for each action of a request in turn."""
    asked = actions(request)
    decided: list[Any] = []
    for place, action in enumerate(asked, 1):
        if len(asked) > 1:
            talk.console.say(f"Action {place} of {len(asked)}: {name(action.name)}.")
            talk.console.say(*numbered([choice_line(one) for one in allowed(action)]))
        decided.append(_decide_action(talk, request, action))
    return decided


def _decide_action(talk: Talk, request: Request, action: Action) -> Any:
    """A decision for one action; edited arguments that are not taken after all lead back to its answers."""
    while True:
        choice = _choose(talk, allowed(action))
        if choice.id != EDIT:
            words = "" if choice.text == "none" else _words(talk, choice)
            if words is not None:
                return choice_answer(choice, words)
            continue
        form = edit_form(request, action)
        try:
            args = ask_form(talk.console, form) if form else ask_edit(talk.console, thaw(action.args), None)
        except LeftWaiting:
            talk.console.say("The arguments stay as they were; this action is yet to be decided.")
        else:
            return {"choice": EDIT, "args": args}


def _choose_with_words(talk: Talk, choices: Sequence[Choice]) -> tuple[Choice, str]:
    while True:
        choice = _choose(talk, choices)
        words = _words(talk, choice)
        if words is not None:
            return choice, words


def _choose(talk: Talk, choices: Sequence[Choice]) -> Choice:
    """One of the answers, asked for again where what was typed is none; raises `LeftWaiting`."""
    while typed := talk.console.ask("Your answer, by number or name; empty leaves it waiting:"):
        try:
            return _choice(choices, typed)
        except UsageError as error:
            talk.console.say(*refusal(error))
    raise LeftWaiting


def _choice(choices: Sequence[Choice], typed: str) -> Choice:
    if typed.isascii() and typed.isdigit():
        if not 1 <= int(typed) <= len(choices):
            raise UsageError(f"there is no answer {typed}", f"answers are 1 to {len(choices)}")
        return choices[int(typed) - 1]
    return named_choice(choices, typed)


def _words(talk: Talk, choice: Choice) -> str | None:
    """The words with an answer; None where it needs some and there are none, which is said."""
    if choice.text != "required":
        return talk.console.ask("Why, for the record; empty for nothing:")
    words = talk.console.ask("Your words, required:")
    if not words:
        talk.console.say(f"The answer {name(choice.id)} needs words of yours.")
    return words or None
