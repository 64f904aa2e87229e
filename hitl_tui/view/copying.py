"""Makes copies of a thread's parts as text: a value, its path, its diff, a card, a command.

All copies are as on screen: sanitised, with private values masked.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any, Final

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.requests import Request
from hitl_tui.shell import command_line
from hitl_tui.view.card import ReviewCard, newest_versions
from hitl_tui.view.diff_lines import changes
from hitl_tui.view.revision import Revision, revision
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, plain_text
from hitl_tui.view.value_lines import value_lines

_MOST: Final = 10_000_000
"""Most characters of a value that are copied."""


def value_copy(value: Any) -> str:
    """Return a value to copy: a text as it is, anything else as JSON."""
    lines = value_lines(value, "text" if isinstance(value, str) else "json")
    return "\n".join(_bounded(lines))


def _bounded(lines: Sequence[str]) -> Iterator[str]:
    left = _MOST
    for number, line in enumerate(lines):
        left -= len(line) + 1
        if left < 0:
            yield f"… {len(lines) - number:,} more lines"
            return
        yield line


def diff_copy(revised: Revision) -> str:
    """Return the changes, as `[-old-]{+new+}` in lines of which some words changed."""
    return "\n".join(plain_text(line) for line in changes(revised))


def show_command(thread_id: str, step: int) -> str:
    """Return the command that shows a step."""
    return command_line("show", sanitise(f"{thread_id}@{step}", multiline=False))


def answer_command(thread_id: str, request: Request, choice: str, words: str) -> str:
    """Return the command that answers a request; with CHOICE if none is chosen."""
    options = ["--step", str(request.step)]
    if words.strip():
        options += ["--note", sanitise(words.strip())]
    if request.risk == "high":
        options.append("--yes")
    given = (sanitise(thread_id), request.id, sanitise(choice or "ANSWER"))
    return command_line("answer", *given, options=shlex.join(options))


def card_copy(card: ReviewCard, value: Any) -> str:
    """Return a review card with its subject as Markdown; text by others is never parsed as Markdown.

    Args:
        value: the value that is decided about.
    """
    badge = f" ({card.badge})" if card.badge else ""
    parts = [f"# {_words(card.title)}{_words(badge)}", f"{_words(plain_text(card.facts))}\n\n{card.bound}."]
    parts += [_fenced(card.words)]
    parts += ["## About", _listed(card.about)] if card.about else []
    if card.revised is not None and card.revised.changed:
        parts += ["## What changed", _fenced(tuple(changes(card.revised)))]
    if value not in (None, PRIVATE):
        parts += ["## Full text", _block(value_copy(value))]
    parts += ["## Last time", _listed(card.before)] if card.before else []
    parts += ["## Votes", _listed(card.votes)] if card.votes else []
    if card.choices:
        answers = [f"- `{choice.id}`: {_words(choice.label)}" for choice in card.choices]
        parts += ["## Answers", "\n".join(answers)]
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


async def became(session: ViewSession, channel: str, step: int) -> Revision | None:
    """Return a channel's changes since its previous version, up to a step; None if there is none."""
    version, previous = await newest_versions(session, channel, step)
    return revision(previous.value, version.value) if version and previous else None


def _words(text: str) -> str:
    """Return text on its own line, with all Markdown escaped."""
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>#|!" else char for char in text)


def _listed(lines: Sequence[Line]) -> str:
    return "\n".join(f"- {_words(plain_text(line))}" for line in lines)


def _fenced(lines: Sequence[Line]) -> str:
    return _block("\n".join(map(plain_text, lines))) if lines else ""


def _block(text: str) -> str:
    """Return a text between fences that it does not contain."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"
