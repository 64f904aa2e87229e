"""Lays out the payload of a request as people read it: rows of key and value, mails, chats, real line breaks.

Nothing is left out: what has no row of its own is named, and shown as JSON elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.view.cells import cells
from hitl_tui.view.dangers import marked
from hitl_tui.view.format import PRIVATE_TEXT, kind, scalar
from hitl_tui.view.rows import wrap_rich
from hitl_tui.view.sanitise import sanitise, sanitise_line
from hitl_tui.view.spans import Line, Role, Span, plain_text, trusted, untrusted
from hitl_tui.view.value_lines import json_spans, laid_out

_LARGEST: Final = 5_000
"""Most parts of a value that are laid out in rows; a larger one is shown as JSON, line by line."""
_LONGEST: Final = 200_000
_DEEPEST: Final = 6
_NAME: Final = 40
_COLUMN: Final = 16
"""Most cells of the column of keys."""
_GAP: Final = 2
_SHORT: Final = 60
_BOX: Final = 76
_NARROWEST: Final = 8
_LEAST: Final = 24
"""Cells from which a mail gets a border."""
_HEADS: Final = ("from", "to", "cc", "bcc", "reply_to", "date", "subject")
_BODIES: Final = ("body", "text", "content", "message")


def payload_rows(value: Any, width: int) -> list[Line]:
    """Return a value as rows of at most `width` cells."""
    width = max(width, _NARROWEST)
    if _is_large(value):
        return [row for line in laid_out(value) for row in wrap_rich(json_spans(line), width)]
    return list(_trimmed(_rows(value, width, 0)))


def reads_like_json(value: Any) -> bool:
    """Whether the rows of a value say the same as its JSON: it is a text, or has no parts."""
    return not isinstance(value, (list, tuple, Mapping))


def _trimmed(rows: Iterator[Line]) -> Iterator[Line]:
    """Leave out blank rows at the start and the end, and the second of two."""
    blank, any_yet = False, False
    for row in rows:
        if not row:
            blank = any_yet
            continue
        if blank:
            yield ()
        blank, any_yet = False, True
        yield row


def _rows(value: Any, width: int, depth: int) -> Iterator[Line]:
    if isinstance(value, str) and value:
        yield from _text(value, width)
    elif _is_scalar(value):
        yield from wrap_rich(_flat(value), width)
    elif depth > _DEEPEST:
        yield from (row for line in laid_out(value) for row in wrap_rich(json_spans(line), width))
    elif messages := _messages(value):
        yield from _chat(messages, width, depth)
    elif isinstance(value, Mapping):
        yield from _mail(value, width, depth) if _body(value) else _object(value, width, depth)
    else:
        yield from _list(value, width, depth)


def _object(value: Mapping[str, Any], width: int, depth: int) -> Iterator[Line]:
    """Yield a row for each key; what takes several rows is below its key."""
    names = {key: sanitise_line(str(key), _NAME) for key in value}
    flat = [cells(names[key]) for key, item in value.items() if _fits(item)]
    column = min(max((size for size in flat if size <= _COLUMN), default=0), max(width // 3, 1))
    indent = " " * (column + _GAP)
    before = False
    for key, item in value.items():
        name = names[key]
        if _fits(item) and cells(name) <= column:
            yield from [()] if before else []
            lead = trusted(name + " " * (column + _GAP - cells(name)), "dim")
            yield from wrap_rich((lead, *_flat(item)), width, indent)
            before = False
        else:
            yield ()
            yield from wrap_rich((trusted(name, "dim"),), width)
            yield from _below(item, width, depth)
            before = True


def _below(item: Any, width: int, depth: int) -> Iterator[Line]:
    """Yield a value below its key: a box begins at the margin, anything else is indented."""
    if isinstance(item, Mapping) and _body(item) and width >= _LEAST:
        yield from _rows(item, width, depth + 1)
    else:
        for row in _rows(item, max(width - 2, _NARROWEST), depth + 1):
            yield (Span("  "), *row) if row else ()


def _list(items: Sequence[Any], width: int, depth: int) -> Iterator[Line]:
    if not items:
        yield (trusted("an empty list", "dim"),)
    lead = len(str(len(items))) + _GAP
    for number, item in enumerate(items, 1):
        first = True
        for row in _trimmed(_rows(item, max(width - lead, _NARROWEST), depth + 1)):
            head = f"{number}".ljust(lead) if first else " " * lead
            yield (trusted(head, "dim"), *row) if row else ()
            first = False
        if not _fits(item):
            yield ()


def _text(text: str, width: int, role: Role = "value") -> Iterator[Line]:
    for line in sanitise(text).replace("\r\n", "\n").split("\n"):
        yield from wrap_rich(marked(line, role), width) if line.strip() else [()]


# Mails and chats.


def _body(value: Mapping[str, Any]) -> str:
    """Return the key of a mail's text, "" if the value is no mail."""
    named = {str(key).lower(): key for key in value}
    heads = [name for name in ("to", "from", "subject") if name in named]
    bodies = (named[name] for name in _BODIES if isinstance(value.get(named.get(name, name)), str))
    return str(next(bodies, "")) if len(heads) > 1 else ""


def _mail(value: Mapping[str, Any], width: int, depth: int) -> Iterator[Line]:
    """Yield a mail in a box: its head, its text, and below the box what else belongs to it."""
    body = _body(value)
    heads = {key: item for key, item in value.items() if str(key).lower() in _HEADS and _fits(item)}
    rest = {key: item for key, item in value.items() if key not in heads and key != body}
    outer = min(width, _BOX)
    inner = outer - 4 if outer >= _LEAST else width
    rows: list[Line] = []
    for key, item in heads.items():
        name = trusted(f"{sanitise_line(str(key), _NAME)} ", "dim")
        rows += wrap_rich((name, *_flat(item)), inner, "  ")
    rows += [(), *_text(value[body].strip("\n"), inner)]
    if inner == width:
        yield from rows
    else:
        yield (trusted(f"╭{'─' * (outer - 2)}╮", "dim"),)
        for row in rows:
            space = " " * max(inner - cells(plain_text(row)), 0)
            yield (trusted("│ ", "dim"), *row, Span(space), trusted(" │", "dim"))
        yield (trusted(f"╰{'─' * (outer - 2)}╯", "dim"),)
    if rest:
        yield ()
        yield from _object(rest, width, depth)


def _messages(value: Any) -> Sequence[Mapping[str, Any]]:
    """Return the messages of a chat, () if the value is none: each has a role and a content."""
    items = value if isinstance(value, (list, tuple)) else ()
    return items if items and all(_is_message(item) for item in items) else ()


def _is_message(item: Any) -> bool:
    if not isinstance(item, Mapping):
        return False
    said = item.get("content")
    named = isinstance(item.get("role"), str) or isinstance(item.get("type"), str)
    return named and (isinstance(said, str) or "tool_calls" in item)


def _chat(messages: Sequence[Mapping[str, Any]], width: int, depth: int) -> Iterator[Line]:
    unnamed: dict[str, None] = {}
    for message in messages:
        who = message.get("role") or message.get("type")
        yield ()
        yield (untrusted(str(who), "human" if who in ("user", "human") else "accent", _NAME),)
        said, calls = message.get("content"), message.get("tool_calls")
        for row in _text(said, width - 2) if isinstance(said, str) and said else ():
            yield (Span("  "), *row) if row else ()
        if calls:
            yield (trusted("  calls", "dim"),)
            for row in _rows(calls, width - 4, depth + 1):
                yield (Span("    "), *row) if row else ()
        unnamed |= dict.fromkeys(str(key) for key in message if key not in ("role", "content", "tool_calls"))
    if unnamed:
        names = ", ".join(sanitise_line(name, _NAME) for name in unnamed)
        yield ()
        yield from wrap_rich((trusted(f"only in the JSON: {names}", "dim"),), width)


# Parts.


def _is_scalar(value: Any) -> bool:
    return value is PRIVATE or not isinstance(value, (list, tuple, Mapping)) or not value


def _fits(value: Any) -> bool:
    """Whether a value fits beside its key."""
    if isinstance(value, str):
        return "\n" not in value.strip("\n") and len(value) <= 2 * _SHORT
    if isinstance(value, (list, tuple)) and value:
        short = all(isinstance(item, str) and "," not in item and "\n" not in item for item in value)
        return short and sum(map(len, value)) <= _SHORT
    return _is_scalar(value)


def _flat(value: Any) -> Line:
    """Return a value that needs no rows of its own."""
    if value is PRIVATE:
        return (trusted(PRIVATE_TEXT, "private"),)
    if isinstance(value, str):
        return marked(sanitise(value.strip("\n"), multiline=False), "value") or (trusted("empty", "dim"),)
    if isinstance(value, bool):
        return (trusted("yes" if value else "no", "value"),)
    if value is None:
        return (trusted("none", "dim"),)
    if isinstance(value, (list, tuple)) and value:
        return marked(", ".join(sanitise(item, multiline=False) for item in value), "value")
    if isinstance(value, (list, tuple, Mapping)):
        return (trusted(f"an empty {kind(value)}", "dim"),)
    return (trusted(scalar(value), "value"),)


def _is_large(value: Any) -> bool:
    parts, letters, left = 0, 0, [value]
    while left and parts < _LARGEST and letters < _LONGEST:
        item = left.pop()
        parts += 1
        if isinstance(item, str):
            letters += len(item)
        elif isinstance(item, Mapping):
            left += item.values()
        elif isinstance(item, (list, tuple)):
            left += item
    return bool(left)
