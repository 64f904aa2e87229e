"""Makes a reviewer's comments on passages, and shows them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread.comments import Comment
from hitl_tui.errors import UsageError
from hitl_tui.view.revision import Revision
from hitl_tui.view.rows import TAB, untabbed
from hitl_tui.view.sanitise import sanitise, sanitise_line
from hitl_tui.view.spans import Line, trusted, untrusted
from hitl_tui.view.value_lines import JsonLines

_SPACED: Final = ".!?؟۔।"
"""Marks that end a sentence if a blank follows."""
_FULL: Final = "。！？｡"
"""Marks that always end a sentence, as Chinese and Japanese have no blanks; closing quotes belong to it."""
_SENTENCE: Final = re.compile(
    rf"[^{_SPACED}{_FULL}\n]*(?:[{_SPACED}]+(?!\s|$)[^{_SPACED}{_FULL}\n]*)*"
    rf"(?:[{_FULL}]+[」』”’）〉》]*|[{_SPACED}]*)"
)
_MOST: Final = 2_000
_LONGEST: Final = 1_000
"""Most characters of a passage."""
_QUOTED: Final = 60
_SAID: Final = 240
_DEPTH: Final = 50
_NOT_IN_IT: Final = frozenset({"removed", "removed-word", "human", "moved"})
"""Roles and kinds of text in a diff that is not part of the newest version."""


def pin(channel: str, value: Any, quote: str, text: str) -> Comment:
    """Return a comment on a passage of a channel's value.

    Raises:
        UsageError: the value lacks the passage, the comment is empty, or the value is private.
    """
    if value is PRIVATE:
        raise UsageError(f"{channel!r} is private", "a comment would quote it in the log")
    if not quote.strip() or not text.strip():
        raise UsageError("a comment needs a passage and a text", '--comment "PASSAGE" "TEXT"')
    for path, leaf in _texts(channel, value, 0):
        offset = _place(leaf, quote.strip())
        if offset >= 0:
            return Comment(quote.strip(), text.strip(), path, offset)
    short = sanitise_line(quote, _QUOTED)
    raise UsageError(f"“{short}” is not in {channel!r}", "quote it word for word")


def pinned(
    request: Request, values: Mapping[str, Any], given: Sequence[tuple[str, str]]
) -> tuple[Comment, ...]:
    """Return comments on a request's subject, in the order of its text.

    Args:
        given: passages, each with its comment.

    Raises:
        UsageError: as for `pin`, or the request is not about a channel.
    """
    if given and request.subject is None:
        raise UsageError(f"{request.title!r} is not about a channel", "write it as your reason: --note")
    comments = [pin(request.subject or "", values.get(request.subject or ""), *pair) for pair in given]
    return in_order(comments)


def in_order(comments: Sequence[Comment]) -> tuple[Comment, ...]:
    """Sort comments in the order of the text."""
    return tuple(sorted(comments, key=lambda comment: (comment.path, comment.offset)))


class Passage(msgspec.Struct, frozen=True):
    """A sentence or line of a value's text that can be commented on.

    Args:
        whole: the text that contains it; `offset` is its position in that text.
    """

    path: str
    offset: int
    text: str
    whole: str


def passages(channel: str, value: Any) -> tuple[Passage, ...]:
    """Return the passages of a value, in order; only the first of a large value."""
    return tuple(islice(_passages(channel, value), _MOST)) if value is not PRIVATE else ()


def _passages(channel: str, value: Any) -> Iterator[Passage]:
    for path, text in _texts(channel, value, 0):
        if path == channel and not isinstance(value, str):
            return  # the whole value once more, as JSON
        for start, end in sentences(text):
            for at in range(start, end, _LONGEST):
                yield Passage(path, at, text[at : min(at + _LONGEST, end)], text)


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence of a text begins and ends, without the blanks around it."""
    for match in _SENTENCE.finditer(text):
        if sentence := match[0].strip():
            start = match.start() + len(match[0]) - len(match[0].lstrip())
            yield start, start + len(sentence)


def first_changed(found: Sequence[Passage], revised: Revision | None) -> int:
    """Return the index of the first changed passage, 0 if none changed."""
    lines = [revised[at] for at in revised.changed[:50]] if revised is not None else []
    new = (
        part.text.strip()
        for line in lines
        for part in line.parts
        if part.kind == "added" and part.text.strip()
    )
    wanted = next(new, "")
    return next((at for at, passage in enumerate(found) if wanted and wanted in passage.text), 0)


def selected_passages(
    found: Sequence[Passage], words: str, before: Iterable[Line] = ()
) -> tuple[Passage, ...]:
    """Return a passage for text that was selected on screen; () if the value does not contain it.

    Args:
        before: the rows shown before it, which decide between equal passages.
    """
    wanted = sum(_solid(_newest(row, marked=True)) for row in before)
    texts = {(passage.path, passage.whole): passage for passage in found}
    passed = 0
    best: tuple[int, int, Passage] | None = None
    for passage in texts.values():
        for at, solid in _places(passage.whole, words):
            distance = abs(passed + solid - wanted)
            if best is None or distance < best[0]:
                best = distance, at, passage
        passed += _solid(passage.whole)
    if best is None:
        return ()
    _, at, passage = best
    end = at
    left = _solid(words)
    while left:
        left -= not passage.whole[end].isspace()
        end += 1
    return (Passage(passage.path, at, passage.whole[at:end], passage.whole),)


def _places(text: str, words: str) -> Iterator[tuple[int, int]]:
    """Find words in a text; returns positions with the number of non-blank characters before each."""
    at, last, solid = text.find(words), 0, 0
    if at < 0 and (at := _place(text, words)) >= 0:
        yield at, _solid(text[:at])
        return
    while at >= 0:
        solid += _solid(text[last:at])
        yield at, solid
        last, at = at, text.find(words, at + 1)


def numbers_at(passage: Passage, comments: Sequence[Comment]) -> str:
    """Return the numbers of the comments that begin in a passage."""
    end = passage.offset + len(passage.text)
    numbers = [
        str(number)
        for number, comment in enumerate(comments, 1)
        if comment.path == passage.path and passage.offset <= comment.offset < end
    ]
    return ",".join(numbers)


def numbered_rows(
    rows: Sequence[Line], text: str, comments: Sequence[tuple[int, Comment]], *, marked: bool
) -> dict[int, str]:
    """Return the rows at which comments begin, each with the numbers of the comments.

    Args:
        rows: a text with removed and added words; its wrapping does not matter.
        text: its newest version.
        comments: each with its number.
        marked: as for `fragment_spans`.
    """
    ends = list(accumulate(_solid(_newest(row, marked=marked)) for row in rows))
    numbers: dict[int, str] = {}
    for number, comment in comments:
        row = bisect_right(ends, _solid(sanitise(text[: comment.offset])))
        if row < len(ends):
            numbers[row] = f"{numbers[row]},{number}" if row in numbers else str(number)
    return numbers


def standing(text: str, comments: Sequence[tuple[int, Comment]]) -> list[tuple[int, Comment]]:
    """Return the comments whose passages a version of a text still contains, with their positions."""
    placed: list[tuple[int, Comment]] = []
    for number, comment in comments:
        same = text.startswith(comment.quote, comment.offset)
        at = comment.offset if same else _place(text, comment.quote)
        if at >= 0:
            placed.append((number, replace(comment, offset=at)))
    return placed


def numbered_lines(
    text: str, revised: Revision | None, comments: Sequence[tuple[int, Comment]], *, marked: bool
) -> dict[int, list[tuple[int, int]]]:
    """Return the lines in which comments begin, with the column and number of each; tabs count as blanks.

    Args:
        revised: the lines, if they show changes since an older version of the text.
        marked: as for `fragment_spans`.
    """
    places: dict[int, list[tuple[int, int]]] = {}
    for number, comment in comments:
        start = text.rfind("\n", 0, comment.offset) + 1
        column = len(sanitise(text[start : comment.offset]).replace("\t", TAB))
        places.setdefault(text.count("\n", 0, comment.offset), []).append((column, number))
    if revised is None or not places:
        return places
    shown: dict[int, list[tuple[int, int]]] = {}
    newest, last = -1, max(places)
    for at, kind in enumerate(revised.kinds):
        newest += kind not in _NOT_IN_IT
        if kind not in _NOT_IN_IT and newest in places:
            line = untabbed(revised[at].spans(marked=marked)) if kind == "changed" else ()
            shown[at] = [
                (_shown_column(line, column, marked=marked), number) for column, number in places[newest]
            ]
        if newest > last:
            break
    return shown


def _shown_column(line: Line, column: int, *, marked: bool) -> int:
    """Return the column of a character of the newest version in a line that also shows removed words."""
    at = 0
    for span in line:
        signs = len("{+") if marked and span.role == "added-word" else 0
        held = 0 if span.role in _NOT_IN_IT else len(span.text) - 2 * signs
        if column < held:
            return at + signs + column
        column, at = column - held, at + len(span.text)
    return at + column


def _newest(row: Line, *, marked: bool) -> str:
    """Return the part of a row that is in the newest version."""
    texts = []
    for span in row:
        if span.role == "added-word" and marked:
            texts.append(span.text.replace("{+", "").replace("+}", ""))
        elif span.role not in _NOT_IN_IT:
            texts.append(span.text)
    return "".join(texts)


def _solid(text: str) -> int:
    """Count the characters that are not blanks."""
    return sum(map(len, text.split()))


def destination(request: Request) -> str:
    """Describe where comments go besides the ledger: into the answer's text, if it takes one."""
    alone = "only logged: this answer takes no text"
    if request.shape:
        return alone
    if not request.choices:
        text = (request.schema or {}).get("type", "string") == "string" and request.kind != "edit"
        return "sent with your answer" if text else alone
    wordy = [choice.label or choice.id for choice in request.choices if choice.text != "none"]
    if not wordy:
        return "only logged: no answer here takes a text"
    if len(wordy) == len(request.choices):
        return "sent with your answer"
    labels = " or ".join(f"“{sanitise_line(label, _QUOTED)}”" for label in wordy)
    return f"sent with the answer {labels}; with any other answer only logged"


def comment_lines(comments: Sequence[Comment], who: str = "") -> tuple[Line, ...]:
    """Return a line for each comment, with its number and passage."""
    lead = f"{sanitise_line(who, _QUOTED)}: " if who else ""
    return tuple(
        (
            trusted(f"{number} ", "human"),
            trusted(lead, "dim"),
            untrusted(comment.text, "human", _SAID),
            trusted("  on “", "dim"),
            untrusted(comment.quote, "dim", _QUOTED),
            trusted("”", "dim"),
        )
        for number, comment in enumerate(comments, 1)
    )


def _place(text: str, quote: str) -> int:
    """Return where a passage begins, whatever its line breaks; -1 if the text does not contain it."""
    at = text.find(quote)
    if at >= 0:
        return at
    words = quote.split()
    folded = " ".join(text.split())
    if " ".join(words) not in folded:
        return -1
    # Found without blanks: it begins after the same number of non-blank characters.
    before = len("".join(folded[: folded.index(" ".join(words))].split()))
    for place, char in enumerate(text):
        if not char.isspace():
            if before == 0:
                return place
            before -= 1
    return -1


def _texts(path: str, value: Any, depth: int) -> Iterator[tuple[str, str]]:
    """Return the texts in a value with their paths; other scalars and whole objects as JSON."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping) and depth < _DEPTH:
        for key, child in value.items():
            yield from _texts(f"{path}.{key}", child, depth + 1)
    elif isinstance(value, list | tuple) and depth < _DEPTH:
        for place, child in enumerate(value):
            yield from _texts(f"{path}[{place}]", child, depth + 1)
    if depth == 0 and not isinstance(value, str):
        yield path, "\n".join(JsonLines(value, breaks=True))
