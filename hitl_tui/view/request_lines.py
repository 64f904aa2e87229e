"""Describes a waiting request in plain text: the question, its subject, who may answer and until when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.requests import Choice
from hitl_tui.view.card import ReviewCard
from hitl_tui.view.diff_lines import changes
from hitl_tui.view.format import capital
from hitl_tui.view.lines import content, name, numbered, sentence, spans
from hitl_tui.view.spans import Line, plain_text
from hitl_tui.view.status import deadline_words, votes_words
from hitl_tui.view.value_lines import value_lines

_WORDS = 60
_SUBJECT = 500


def card_lines(card: ReviewCard, now: int) -> list[str]:
    """Return the review question: the title, the asker's text, the subject and the terms, but no answers."""
    verdict = f" ({card.badge})" if card.badge else ""
    lines = [sentence(f"Question: {card.title}{verdict}")]
    if card.facts:
        lines.append(f"About the run: {plain_text(card.facts)}.")
    if card.words:
        lines += ["Given:", *spans(card.words, _WORDS)]
    if card.about:
        lines += ["About:", *spans(card.about)]
    if card.revised is not None and card.revised.changed:
        lines += ["What changed:", *spans(changes(card.revised))]
    lines += [sentence(capital(words)) for words in map(plain_text, card.attending)]
    if card.before:
        lines += ["Last time:", *spans(card.before)]
    for term, more in terms(card, now):
        lines += [sentence(capital(term)), *spans(more)]
    return [*lines, f"{capital(card.bound)}."]


def terms(card: ReviewCard, now: int) -> Iterator[tuple[str, tuple[Line, ...]]]:
    """Yield the terms: who may answer, until when and how, each with the lines that belong to it.

    `now` is in microseconds since the epoch.

    Args:
        now: microseconds since the epoch.
    """
    request = card.request
    if request.reviewers:
        yield f"only {', '.join(map(name, request.reviewers))} may answer", ()
    if request.authors:
        yield f"anyone but {', '.join(map(name, request.authors))} may answer", ()
    if request.logins:
        yield f"only these logins of the database may answer: {', '.join(map(name, request.logins))}", ()
    if request.quorum > 1:
        yield f"{votes_words(request)} so far", card.votes
    if request.signed:
        yield "an answer must be signed", ()
    if card.signing:
        yield plain_text(card.signing), ()
    if request.deadline is not None:
        yield deadline_words(request.deadline, now), ()
    if card.high_risk:
        yield "high risk: you must confirm it", ()


def question(card: ReviewCard, values: Mapping[str, Any], now: int) -> list[str]:
    """Return the whole review card: the question, the full text of its subject and the allowed answers."""
    lines = card_lines(card, now)
    subject = card.request.subject
    if subject is not None and values.get(subject) not in (None, PRIVATE):
        shown = value_lines(values[subject], "text")
        lines += [
            f"The text of {name(subject)}:",
            *content(shown[:_SUBJECT], _SUBJECT, f"v {name(subject)} shows it whole"),
        ]
        if len(shown) > _SUBJECT:
            lines.append(f"({len(shown) - _SUBJECT} more lines: v {name(subject)} shows them)")
    if card.choices:
        usual = [choice.id for choice in card.choices if choice.recommended]
        choices = [
            choice_line(choice) + (" (recommended)" if choice.id in usual else "")
            for choice in card.request.choices
        ]
        lines += ["Allowed answers:", *numbered(choices)]
    return lines


def choice_line(choice: Choice) -> str:
    """Return an allowed answer as "id: label"."""
    return f"{name(choice.id)}: {name(choice.label or choice.id)}"
