"""What waits for a human, in words: what is asked, and the command that answers it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hitl_tui.drivers.protocol import Snapshot
    from hitl_tui.engine.interrupts.foreign import Action
    from hitl_tui.engine.log.requests import Request
    from hitl_tui.view.form import Field, Form

_MOST_LINES = 12
_MOST_FIELDS = 20
_WHOLE = "--json has all of it"


def request_lines(snapshot: Snapshot, request: Request) -> list[str]:
    """A request, and how to answer it from a shell."""
    from hitl_tui.cli.options import same_store
    from hitl_tui.plain.words import name
    from hitl_tui.view.asking import actions, answer_form

    store = same_store()
    thread = shlex.quote(snapshot.thread_id)
    if request.breakpoint:
        return [f"  go on with: hitl-tui resume {thread} --headless{store}"]
    order = f"hitl-tui answer {thread} {request.id}"
    step = f"--step {request.step}{store}"
    form, edits, asked = answer_form(request), request.kind == "edit", actions(request)
    answers = "an edited value" if edits else "a form" if form and _is_object(form) else "a value"
    answers = ", ".join(name(choice.id) for choice in request.choices) or answers
    lines = [f"  request {request.id} at step {request.step}, answers: {answers}"]
    lines += _terms(snapshot, request)
    lines += _actions(asked) if asked else _words(snapshot, request)
    lines += _subject(snapshot, request, f"hitl-tui show {thread}{store}")
    if request.thread:
        lines.append(f"  it is asked by a graph inside: hitl-tui show {shlex.quote(request.thread)}{store}")
    if form and _is_object(form):
        lines += [f"  field {_field_line(field)}" for field in form.fields[:_MOST_FIELDS]]
        wanted = [field for field in form.fields if field.required] or form.fields[:1]
        given = " ".join(f"--set {shlex.quote(field.label)}=..." for field in wanted)
        return [*lines, f"  answer with: {order} {given} {step}"]
    if request.choices or not edits:
        lines.append(f"  answer with: {order} ANSWER {step}")
    if edits:
        lines.append(f"  answer with: {order} --value JSON {step}")
    if len(asked) > 1:
        each = ", ".join('"approve"' for _ in asked)
        lines.append(f"  one by one:  {order} --value '[{each}]' {step}")
    return lines


def _terms(snapshot: Snapshot, request: Request) -> list[str]:
    """Who must answer until when, and who has voted so far."""
    import time

    from hitl_tui.plain.content import spans
    from hitl_tui.plain.words import name
    from hitl_tui.view.format import duration
    from hitl_tui.view.review import review_card, signing_line
    from hitl_tui.view.run_view import open_view

    lines: list[str] = []
    if request.reviewers:
        lines.append(f"  only {', '.join(map(name, request.reviewers))} may answer")
    if request.quorum > 1:
        lines.append(f"  {len(request.votes)} of {request.quorum} votes so far")
        lines += spans(review_card(request, open_view(snapshot), snapshot.values).votes, _MOST_LINES)
    if request.signed:
        lines.append("  an answer must be signed")
    if line := signing_line(request, snapshot.signing_key):
        lines += spans((line,))
    if request.deadline is not None:
        left = request.deadline - time.time_ns() // 1000
        lines.append(f"  expires in {duration(left)}" if left > 0 else "  expired")
    return lines


def _words(snapshot: Snapshot, request: Request) -> list[str]:
    """What the asker hands over."""
    from hitl_tui.plain.content import spans
    from hitl_tui.view.review import review_card
    from hitl_tui.view.run_view import open_view

    return spans(review_card(request, open_view(snapshot), snapshot.values).words, _MOST_LINES, _WHOLE)


def _subject(snapshot: Snapshot, request: Request, show: str) -> list[str]:
    """The channel that is decided about; of a thread inside, and of taint, the words have told."""
    from hitl_tui.engine.log.events import PRIVATE
    from hitl_tui.plain.content import content
    from hitl_tui.plain.words import name
    from hitl_tui.view.value_lines import value_lines

    subject = request.subject
    if subject is None or request.thread or request.policy or subject not in snapshot.values:
        return []
    value = snapshot.values[subject]
    if value is PRIVATE:
        return [f"  about {name(subject)}, which is private: {show} --reveal {name(subject)}"]
    whole = f"{show} --channel {name(subject)} has all of it"
    return [f"  about {name(subject)}:", *content(value_lines(value, "text"), _MOST_LINES, whole)]


def _actions(asked: Sequence[Action]) -> list[str]:
    """Every action with all its arguments: one answer may be for all of them."""
    from hitl_tui.plain.content import content
    from hitl_tui.view.value_lines import value_lines

    lines: list[str] = []
    for number, action in enumerate(asked, 1):
        about = value_lines(action.description, "text") if action.description else ()
        whole = [f"{number} of {len(asked)}  {action.name}", *about, *value_lines(action.args, "json")]
        lines += content(whole, _MOST_LINES, _WHOLE)
    return lines


def _is_object(form: Form) -> bool:
    return bool(form.fields) and form.fields[0].path != ()


def _field_line(field: Field) -> str:
    words = " or ".join(option.word for option in field.options) or field.hint or field.kind
    return f"{field.label}: {words}{'' if field.required else ', may be left out'}"
