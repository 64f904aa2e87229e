"""Decisions in plain text mode: the request, its whole subject, the allowed answers, a reason, a yes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from hitl_tui.drivers.protocol import Snapshot
from hitl_tui.engine.commands import Answer, Command, LookAt, Run
from hitl_tui.engine.log.requests import Choice, Request
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.thread.approval_formats import ToolAction, choices_of
from hitl_tui.engine.thread.measures import Reason
from hitl_tui.errors import AnswerRefused, HitlError, StaleWriter, ThreadBusy, UsageError
from hitl_tui.plain.console import END_OF_TEXT, Console, ask_text, confirm, json_of, refusal
from hitl_tui.plain.context import Context
from hitl_tui.plain.waking import ended_by_deadline
from hitl_tui.view.answers import named_choice
from hitl_tui.view.card import (
    EDIT,
    ReviewCard,
    actions,
    answer_form,
    choice_answer,
    edit_form,
    newest_versions,
    review_card,
    wants_text,
)
from hitl_tui.view.comments import comment_lines
from hitl_tui.view.diff_lines import changed_since, changes, in_rows
from hitl_tui.view.form import Field, FieldProblem, Form, Path, Reading, mismatch, read_field, read_form
from hitl_tui.view.lines import content, name, numbered, spans
from hitl_tui.view.reasons import read_scores, reason_lines, reason_words, typed_reasons
from hitl_tui.view.repeats import repeat_lines
from hitl_tui.view.request_lines import choice_line, question
from hitl_tui.view.revision import revision
from hitl_tui.view.run_view import open_view
from hitl_tui.view.session import ViewSession
from hitl_tui.view.value_lines import value_lines

_WORDS = 100


def ready_to(context: Context, command: type[Command[Any]]) -> Snapshot:
    """Return the thread's state, with its graph built; refuse before anybody types for it in vain.

    Raises:
        UsageError: the thread is read-only.
        HitlError: its graph can't be built.
        ThreadBusy: another process runs it; it can still be paused and forked.
    """
    snapshot = context.snapshot()
    if refused := context.driver.refusal(command):
        raise UsageError(f"thread {snapshot.thread_id!r} is read-only", refused)
    if snapshot.held_by and not command.while_held:
        raise ThreadBusy(
            f"thread {snapshot.thread_id!r} is run by {snapshot.held_by}",
            "wait until it is done; you can view, pause or fork it",
        )
    return context.prepare() if command.takes_graph else snapshot


def give_back(context: Context, error: HitlError, step: int, *typed: tuple[str, str | None]) -> None:
    """Print why something was refused, what has changed since the step it was about, and the typed text.

    Args:
        typed: each text with its name; empty ones are left out.
    """
    if isinstance(error, AnswerRefused | StaleWriter):
        now = context.run(context.driver.snapshot()).progress.head
        error.details = context.run(changed_since(context.driver, step, now))
    context.console.say(*refusal(error), "Nothing was stored.")
    for label, text in typed:
        if text:
            context.console.say(f"Your {label}:", *content(text.split("\n"), _WORDS))


LEAVE = END_OF_TEXT
"""Input that leaves a request waiting."""
_NOTHING = "-"


class LeftWaiting(Exception):
    """The person wants to decide later."""


def ask_form(console: Console, form: Form) -> Any:
    """Ask for each field, again if the input doesn't fit; return the answer.

    Raises:
        LeftWaiting: only a dot was typed.
    """
    console.say(f"{len(form.fields)} fields; empty keeps the value in brackets, {LEAVE} decides later.")
    texts: dict[Path, str] = {}
    wanted = form.fields
    while True:
        for field in wanted:
            texts[field.path] = _ask_field(console, field, texts.get(field.path, field.text))
        reading = read_form(form, texts)
        if not reading.problems:
            return reading.value
        wanted = _again(console, form, reading)


def ask_value(console: Console, schema: Mapping[str, Any] | None) -> Any:
    """Ask for any value, again if it is no JSON or does not fit; a text is typed as it is.

    Raises:
        LeftWaiting: nothing was typed.
    """
    text = wants_text(schema)
    while typed := console.ask(f"Your answer, as {'text' if text else 'JSON'}; empty to decide later:"):
        try:
            value = typed if text else json_of(typed)
        except UsageError as error:
            console.say(*content([error.message]))
            continue
        wrong = mismatch(schema or {}, value)
        if not wrong:
            return value
        console.say(*content([wrong]))
    raise LeftWaiting


def ask_edit(console: Console, value: Any, schema: Mapping[str, Any] | None) -> Any:
    """Ask for another version of a value, show what changed, and ask for confirmation.

    Raises:
        LeftWaiting: the change was not confirmed.
    """
    is_text = isinstance(value, str)
    shown = (
        value_lines(value, "text") if is_text else json.dumps(value, indent=2, ensure_ascii=False).split("\n")
    )
    console.say("It is now:", *content(shown))
    while True:
        typed = ask_text(
            console, f"Your version, as {'text' if is_text else 'JSON'}; empty keeps it as it is."
        )
        try:
            changed = value if not typed.strip() else typed if is_text else json_of(typed)
        except UsageError as error:
            console.say(*content([error.message]))
            continue
        wrong = mismatch(schema or {}, changed)
        if wrong:
            console.say(*content([wrong]))
            continue
        console.say("What changes:", *(in_rows(changes(revision(value, changed))) or ["    nothing"]))
        if confirm(console, "Send it?"):
            return changed
        raise LeftWaiting


def _ask_field(console: Console, field: Field, text: str) -> str:
    mark = ", required" if field.required else ""
    hint = f" ({field.hint})" if field.hint else ""
    about = [f"{field.help}"] if field.help else []
    console.say(f"{name(field.label)}{hint}{mark}.", *content(about))
    if field.options and field.kind != "yesno":
        console.say(*numbered([name(option.word) for option in field.options]))
    while True:
        typed = _typed(console, field, text)
        try:
            read_field(field, typed)
        except FieldProblem as problem:
            console.say(*content([f"{field.label} {problem}"]))
        else:
            return typed


def _typed(console: Console, field: Field, text: str) -> str:
    kept = f" [{text}]" if text and not field.long else ""
    if field.long:
        console.say(*(["It is now:", *content(text.splitlines())] if text else []))
        typed = ask_text(console, "Empty keeps it." if text else "Your text.")
        return typed if typed.strip() else text
    out = f", {_NOTHING} leaves it out" if text and not field.required else ""
    typed = console.ask(f"{'yes or no' if field.kind == 'yesno' else 'value'}{out}{kept}:")
    if typed == LEAVE:
        raise LeftWaiting
    if typed == _NOTHING and out:
        return ""
    return typed or text


def _again(console: Console, form: Form, reading: Reading) -> tuple[Field, ...]:
    """Return the fields to ask again: those with a problem, or all if it concerns the whole answer."""
    console.say(
        *content([f"{'.'.join(path) or 'the answer'} {what}" for path, what in reading.problems.items()])
    )
    return tuple(field for field in form.fields if field.path in reading.problems) or form.fields


def waiting_request(snapshot: Snapshot) -> Request | None:
    """Return the first request that waits for a decision."""
    return next(iter(waiting_requests(snapshot)), None)


def waiting_requests(snapshot: Snapshot) -> list[Request]:
    progress = snapshot.progress
    if progress.status != "waiting":
        return []
    return [request for request in progress.pending if not request.breakpoint]


def card_of(context: Context, snapshot: Snapshot, request: Request) -> ReviewCard:
    """Return the card of a request, with what changed since the last version of its subject."""
    view = open_view(snapshot)
    version, previous = None, None
    if request.subject:
        session = ViewSession(context.hub, context.driver, view)
        version, previous = context.run(newest_versions(session, request.subject, request.step))
    return review_card(request, view, snapshot.values, version=version, previous=previous)


def decide(context: Context, typed: str = "") -> bool:
    """Ask for a decision on a waiting request, and send it; return whether it was accepted.

    Args:
        typed: its place among the waiting requests; asked for if there are several.
    """
    snapshot = context.snapshot()
    request = which_request(context, waiting_requests(snapshot), typed)
    if request is None:
        return False
    snapshot = ready_to(context, Answer)
    card = card_of(context, snapshot, request)
    context.console.say(*question(card, snapshot.values, context.hub.now()))
    repeats = context.run(context.driver.preview(Run())).repeats
    context.console.say(*(repeat_lines(repeats) if repeats else ()))
    comments = context.comments_on(request)
    if comments:
        context.console.say("With your comments:", *spans(comment_lines(comments)))
    try:
        with _looking(context, request), ended_by_deadline(context):
            answer, note, reasons = _answer(context, request, card)
            scores = _scores(context, request)
    except LeftWaiting:
        context.console.say("It still waits.")
        return False
    except HitlError as error:
        context.console.say(*refusal(error))
        return False
    command = Answer(
        request.id,
        answer,
        request.step,
        context.actor,
        note,
        card.seen,
        comments,
        reasons=tuple(reason.id for reason in reasons),
        scores=scores,
    )
    try:
        head = context.run(context.driver.execute(command))
    except HitlError as error:
        typed_answer = "" if request.choices else "\n".join(value_lines(answer, "text"))
        give_back(context, error, request.step, ("answer was", typed_answer), ("comment was", note))
        return False
    context.forget_comments(request)
    now: Snapshot = context.run(context.driver.snapshot())
    left = len(waiting_requests(now))
    more = f" {left} more to decide, d decides." if left else ""
    context.console.say(f"Decided: your answer is recorded, the thread is at step {head}.{more}")
    return True


@contextmanager
def _looking(context: Context, request: Request) -> Iterator[None]:
    """Show others that a person has the request open."""
    driver, me = context.driver, context.actor
    context.run(driver.execute(LookAt(request.id, me)))
    try:
        yield
    finally:
        context.run(driver.execute(LookAt("", me)))


def which_request(context: Context, pending: list[Request], typed: str) -> Request | None:
    if not pending:
        context.console.say("Nothing waits for a decision.")
        return None
    if len(pending) == 1 and not typed:
        return pending[0]
    if not typed:
        context.console.say(
            f"{len(pending)} requests wait:", *numbered([name(request.title) for request in pending])
        )
        typed = context.console.ask("Which, by number; empty to decide later:")
        if not typed:
            return None
    if not (typed.isascii() and typed.isdigit() and 1 <= int(typed) <= len(pending)):
        raise UsageError(f"there is no request {typed}", f"requests are 1 to {len(pending)}")
    return pending[int(typed) - 1]


def _scores(context: Context, request: Request) -> dict[str, int]:
    """Ask for a score for each criterion of the request's rubric; raise `LeftWaiting`."""
    scores: dict[str, int] = {}
    for criterion in request.rubric:
        while typed := context.console.ask(f"Score for {name(criterion)}, 1 to 5; empty for none:"):
            try:
                scores |= read_scores(request.rubric, [f"{criterion}={typed}"])
            except UsageError as error:
                context.console.say(*refusal(error))
            else:
                break
    return scores


def _answer(
    context: Context, request: Request, card: ReviewCard
) -> tuple[Any, str | None, tuple[Reason, ...]]:
    """Ask for the answer, its comment and reasons; raise `LeftWaiting`."""
    words, label, form = "", "your answer", answer_form(request)
    picked: tuple[Reason, ...] = ()
    if request.shape:
        answer = _decide_actions(context, request)
    elif request.choices:
        while True:
            choice = _choose(context, request.choices)
            given, picked = _words(context, choice, commented=bool(context.comments_on(request)))
            if given is not None:
                break
        words, label, answer = given, name(choice.id), choice_answer(choice, given, commented=True)
    elif request.kind == "edit":
        answer = ask_edit(context.console, thaw(request.payload), request.schema)
    elif form is not None:
        answer = ask_form(context.console, form)
    else:
        answer = ask_value(context.console, request.schema)
    if card.high_risk and not confirm(context.console, f"High risk. Really {label}?"):
        raise LeftWaiting
    return answer, words or None, picked


def _decide_actions(context: Context, request: Request) -> list[Any]:
    """Ask for a decision on each action of a request in turn."""
    asked = actions(request)
    decided: list[Any] = []
    for place, action in enumerate(asked, 1):
        if len(asked) > 1:
            context.console.say(f"Action {place} of {len(asked)}: {name(action.name)}.")
            context.console.say(*numbered([choice_line(choice) for choice in choices_of([action])]))
        decided.append(_decide_action(context, request, action))
    return decided


def _decide_action(context: Context, request: Request, action: ToolAction) -> Any:
    """Ask for the decision on one action; rejecting edited arguments leads back to the choices."""
    while True:
        choice = _choose(context, choices_of([action]))
        if choice.id != EDIT:
            words = "" if choice.text == "none" else _words(context, choice, known=())[0]
            if words is not None:
                return choice_answer(choice, words)
            continue
        form = edit_form(request, action)
        try:
            args = (
                ask_form(context.console, form)
                if form
                else ask_edit(context.console, thaw(action.args), None)
            )
        except LeftWaiting:
            context.console.say("The arguments are unchanged; this action is not decided yet.")
        else:
            return {"choice": EDIT, "args": args}


def _choose(context: Context, choices: Sequence[Choice]) -> Choice:
    """Ask for one of the choices, until the input is one; raise `LeftWaiting`."""
    while typed := context.console.ask("Your answer, by number or name; empty to decide later:"):
        try:
            return _choice(choices, typed)
        except UsageError as error:
            context.console.say(*refusal(error))
    raise LeftWaiting


def _choice(choices: Sequence[Choice], typed: str) -> Choice:
    if typed.isascii() and typed.isdigit():
        if not 1 <= int(typed) <= len(choices):
            raise UsageError(f"there is no answer {typed}", f"answers are 1 to {len(choices)}")
        return choices[int(typed) - 1]
    return named_choice(choices, typed)


def _words(
    context: Context, choice: Choice, *, commented: bool = False, known: Sequence[Reason] | None = None
) -> tuple[str | None, tuple[Reason, ...]]:
    """Ask for the comment of an answer, with the reasons that it picks.

    The comment is None if a required one is missing, which is then said.

    Args:
        known: the reasons to pick from; by default those of the configuration.
    """
    known = context.reasons if known is None else known
    console = context.console
    if known:
        console.say("Reasons:", *numbered(reason_lines(known)))
    by_number = "by number, as 2 or 1 3, or in words" if known else ""
    if choice.text != "required":
        asked = f"Why, {by_number} (logged); empty for none:" if known else "Why (logged); empty for none:"
    elif commented:
        asked = "Your answer, besides your comments:"
    else:
        asked = f"Your comment, {by_number}, required:" if known else "Your comment, required:"
    while True:
        try:
            picked, typed = typed_reasons(known, console.ask(asked))
        except UsageError as error:
            console.say(*refusal(error))
        else:
            break
    words = reason_words(picked, typed) if picked else typed
    if not words and choice.text == "required" and not commented:
        console.say(f"The answer {name(choice.id)} needs a comment.")
        return None, ()
    return words, picked
