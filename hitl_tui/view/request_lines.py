"""A request that waits, in lines: what is asked, about what, of whom and until when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.requests import Choice
from hitl_tui.view.card import ReviewCard
from hitl_tui.view.lines import content, name, numbered, sentence, spans
from hitl_tui.view.spans import plain_text
from hitl_tui.view.value_lines import value_lines

_WORDS = 60
_SUBJECT = 500


def card_lines(card: ReviewCard) -> list[str]:
    """The review question: what is asked, about what, the asker's words; the answers come after it."""
    verdict = f" {card.badge}" if card.badge else ""
    lines = [sentence(f"Question: {card.title}{verdict}")]
    if card.facts:
        lines.append(f"About the run: {plain_text(card.facts)}.")
    if card.words:
        lines += ["Their words:", *spans(card.words, _WORDS)]
    if card.about:
        lines += ["It is about:", *spans(card.about)]
    if card.before:
        lines += ["Decided here last time:", *spans(card.before)]
    if card.votes:
        lines += ["Votes so far:", *spans(card.votes)]
    if card.signing:
        lines.append(sentence(f"Signature: {plain_text(card.signing)}"))
    if card.high_risk:
        lines.append("This decision is of high risk: it must be confirmed.")
    return [*lines, f"It is {card.bound}."]


def question(card: ReviewCard, values: Mapping[str, Any]) -> list[str]:
    """The review card in lines, with the whole text that is decided about and the allowed answers."""
    lines = card_lines(card)
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
            choice_line(choice) + (", the usual one" if choice.id in usual else "")
            for choice in card.request.choices
        ]
        lines += ["Allowed answers:", *numbered(choices)]
    return lines


def choice_line(choice: Choice) -> str:
    """An allowed answer, as a line tells it."""
    return f"{name(choice.id)}: {name(choice.label or choice.id)}"
