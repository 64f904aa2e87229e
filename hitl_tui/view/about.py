"""Describes what a request is about on one line: the words of its subject, its arguments, its fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread.approval_formats import actions_of
from hitl_tui.engine.thread.listed import first_words
from hitl_tui.view.card import answer_form, choice_view, words_first
from hitl_tui.view.format import inline
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Span, plain_text, trusted

MOST: Final = 240
"""Most cells of a description."""
_NAME: Final = 40
_PARTS: Final = 12
_KNOWN: Final = frozenset({"verdict", "agent", "round", "rounds", "draft"})
"""Parts of an advisor's payload that its title says."""
_HEADING: Final = re.compile(r"\s*(#+|>|[*-])\s+")
_RULE: Final = re.compile(r"\s*([-=*_`~]{3,}\w*|\|?[\s:|-]*)\s*")
_DOT: Final = trusted(" · ", "dim")


def about_line(request: Request) -> Line:
    """Return what a request is about, the names of parts dim; () if nothing is known besides its title."""
    if request.breakpoint:
        return ()
    if actions := actions_of(request.shape, request.payload):
        return _clipped(part for action in actions for part in _call(action.name, action.args, len(actions)))
    if request.excerpt:
        return (Span(sanitise_line(text_words(request.excerpt), MOST)),)
    if isinstance(request.payload, Mapping):
        if isinstance(feedback := request.payload.get("feedback"), str) and "verdict" in request.payload:
            return (Span(sanitise_line(text_words(feedback), MOST)),)
        if request.policy == "on_taint":
            return ()
        return _clipped(_parts(request.payload))
    if request.payload not in (None, request.title):
        return (Span(sanitise_line(text_words(first_words(request.payload)), MOST)),)
    form = answer_form(request)
    return _clipped(Span(sanitise_line(field.label, _NAME)) for field in form.fields) if form else ()


def about_text(request: Request) -> str:
    """Return what a request is about as text; "" if nothing is known besides its title."""
    return plain_text(about_line(request))


def searched_text(request: Request) -> str:
    """Return the words of a request that a search looks at, besides its title, in lower case."""
    return f"{request.excerpt}\n{first_words(request.payload)}".lower()


def text_words(text: str) -> str:
    """Return a text on one line: without marks of Markdown at the beginning of lines, a heading set apart."""
    words: list[str] = []
    for line in text.splitlines():
        if _RULE.fullmatch(line):
            continue
        mark = _HEADING.match(line)
        words.append(" ".join(line[mark.end() if mark else 0 :].replace("**", "").split()))
        if mark and mark[1].startswith("#"):
            words.append("·")
    return " ".join(words).removesuffix(" ·")


def version_words(request: Request, me: str) -> str:
    """Return "version 3, back from you"; "" for what has no versions and was not sent back."""
    parts = [f"version {request.version}"] if request.version > 1 else []
    if who := sent_back_by(request):
        parts.append(f"back from {'you' if who == me else sanitise_line(who, _NAME)}")
    return ", ".join(parts)


def sent_back_by(request: Request) -> str:
    """Return who sent the last version back, "" if nobody did: who approved it did not."""
    last = request.last_answer
    if last is None:
        return ""
    chosen = last.answer.get("choice") if isinstance(last.answer, Mapping) else last.answer
    views = (choice_view(choice, None) for choice in request.choices if choice.id == chosen)
    return last.actor if any(words_first(view) for view in views) else ""


def sent_back_why(request: Request) -> str:
    """Return the words with which the last version was sent back, "" without any."""
    last = request.last_answer
    if last is None or not sent_back_by(request):
        return ""
    said = last.answer.get("text") if isinstance(last.answer, Mapping) else None
    return sanitise_line(text_words(str(said or last.note or "")), MOST)


def _call(name: str, args: Any, calls: int) -> Iterator[Span]:
    """Yield the arguments of a call as parts, after its name if it is one of several."""
    parts = list(_parts(args)) if isinstance(args, Mapping) else [Span(inline(args, MOST))] if args else []
    if calls > 1:
        yield Span(sanitise_line(name, _NAME), "name")
    yield from parts


def _parts(payload: Mapping[str, Any]) -> Iterator[Span]:
    """Yield each part of a payload as its name, dim, and its value."""
    for number, (name, value) in enumerate(payload.items()):
        if number == _PARTS:
            return
        if value not in (None, "", [], {}) and not (name in _KNOWN and "verdict" in payload):
            yield Span(f"{sanitise_line(str(name), _NAME)} ", "dim")
            yield Span(_value(value))


def _value(value: Any) -> str:
    if isinstance(value, str):
        shown = sanitise_line(text_words(value[:MOST]), _NAME * 2)
        return f"“{shown}”" if " " in shown else shown
    if isinstance(value, Sequence) and value and all(isinstance(item, Mapping) for item in value[:_PARTS]):
        return " · ".join(f"{number} {_item(item)}" for number, item in enumerate(value[:_PARTS], 1))
    if isinstance(value, (Mapping, Sequence)):
        return sanitise_line(text_words(first_words(value)), _NAME * 2)
    return inline(value, _NAME)


def _item(item: Mapping[str, Any]) -> str:
    """Return an item of a list as its first value, then the others: "trains: find a night train"."""
    first, *others = (first_words(value) for value in item.values()) if item else ("",)
    words = f"{first}: {', '.join(other for other in others if other)}" if any(others) else first
    return sanitise_line(text_words(words), _NAME * 2)


def _clipped(parts: Iterator[Span]) -> Line:
    """Return parts with dots between them: a dim name belongs to the value that follows it."""
    line: list[Span] = []
    length = 0
    for part in parts:
        if line and line[-1].role not in ("dim",):
            line.append(_DOT if line[-1].role != "name" else trusted(" "))
        line.append(part)
        length += len(part.text) + 3
        if length > MOST and part.role not in ("dim", "name"):
            break
    return tuple(line)
