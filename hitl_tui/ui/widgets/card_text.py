"""The words of a review card as rows of a given width."""

from __future__ import annotations

from typing import Final, cast

from hitl_tui.ui.rows import wrap_line
from hitl_tui.ui.widgets.lines import ours
from hitl_tui.view.card import ReviewCard
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Role, Span, plain_text, trusted, untrusted

_MOST: Final = 4_000
_BADGES: Final = {"ok": "badge-ok", "error": "badge-error", "accent": "badge"}


def card_lines(card: ReviewCard, width: int, since: tuple[Line, ...] = ()) -> list[Line]:
    """The card's text for a width, below what has changed `since` a refused answer was made up."""
    badge = (
        (trusted("  "), ours(f" {card.badge} ", _BADGES.get(card.badge_role, "badge-dim")))
        if card.badge
        else ()
    )
    lines: list[Line] = [*_wrapped(since, width), ()] if since else []
    lines.append((untrusted(card.title, "title"), *badge))
    if card.facts:
        lines += _wrapped((card.facts,), width)
    if card.words:
        lines.append(())
        lines += _wrapped(card.words, width)
    if card.why:
        lines += [(), *_wrapped(card.why, width)]
    if card.about:
        lines += [(), (Span("You are deciding on", "dim"),), *_wrapped(card.about, width)]
    if card.before:
        lines += [(), (Span("Decided here last time", "dim"),), *_wrapped(card.before, width)]
    if card.votes:
        lines += [(), *card.votes]
    if card.signing:
        lines += [(), *_wrapped((card.signing,), width)]
    return [*lines, ()]


def note_lines(note: tuple[str, str], width: int) -> list[Line]:
    """What is said below the choices, in rows; anybody's words may be in it; one row where `width` is 0."""
    words, role = note
    return [(untrusted(row, cast(Role, role)),) for row in wrap_line(sanitise_line(words, _MOST), width)]


def _wrapped(lines: tuple[Line, ...], width: int) -> list[Line]:
    """Lines of one role are wrapped; others are short and are cut."""
    rows: list[Line] = []
    for line in lines:
        if len(line) == 1:
            rows += [(Span(piece, line[0].role),) for piece in wrap_line(plain_text(line), width)]
        else:
            rows.append(line)
    return rows
