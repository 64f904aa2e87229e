"""Loads what the reader shows: a value, the versions to compare it with, and what became of earlier comments.

When a person last saw a value is kept in the user's data directory, so that the reader can mark what has
changed since.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.units import about
from hitl_tui.engine.thread.comments import Comment, comments_of
from hitl_tui.view.document import Document, document
from hitl_tui.view.format import count, identity
from hitl_tui.view.reader import MarginNote, Pages, document_changes, place_in_newer, text_changes
from hitl_tui.view.sanitise import sanitise, sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Role, plain_text, trusted, untrusted

Fate = Literal["changed", "unchanged", "gone"]
"""What became of a passage that was commented on."""

_VERSIONS: Final = 50
_KEPT: Final = 2_000
_LARGEST: Final = 1 << 20
_SAID: Final = 240
_QUOTED: Final = 24
_NAME: Final = 24
_FATES: Final[Mapping[Fate, Role]] = {"changed": "added", "unchanged": "dim", "gone": "removed"}


class Baseline(msgspec.Struct, frozen=True):
    """A value to compare with; `since` continues "7 changes"."""

    since: str
    value: Any


class Earlier(msgspec.Struct, frozen=True):
    """A comment on the last version, and what became of it.

    Args:
        at: where its passage, or what replaced it, is in the sanitised text now.
        reply: what the author of the text says about it, "" for nothing.
    """

    number: Annotated[int, about("Its number.")]
    who: Annotated[str, about("Who made it.")]
    comment: Annotated[Comment, about("The passage and the comment.")]
    fate: Annotated[Fate, about("Whether the passage is `changed`, `unchanged` or `gone`.")]
    at: Annotated[int, about("Where it is in the text now.")]
    reply: Annotated[str, about("The author's reply, empty for none.")]
    mine: Annotated[bool, about("Whether you made it.")]


class ReadValue(msgspec.Struct, frozen=True):
    """A value with its versions, and what became of the comments on the last one.

    Args:
        step: the step that it is of.
        version: which version of the channel it is, from 1; 0 if that is not known.
        baselines: the versions to compare it with, the first one to begin with.
    """

    channel: str
    value: Any
    step: int
    version: int = 0
    baselines: tuple[Baseline, ...] = ()
    earlier: tuple[Earlier, ...] = ()


async def load_reading(
    session: ViewSession, channel: str, request: Request | None, actor: str, looked: Looked | None
) -> ReadValue:
    """Load a channel's value at the shown step with its versions.

    Args:
        looked: where it is noted that the person has looked at it; None if nobody has.
    """
    shown = session.step_view
    value = shown.values.get(channel)
    if value is PRIVATE:
        return ReadValue(channel, value, shown.step)
    versions = await session.versions(channel, shown.step, _VERSIONS)
    number = len(versions.found) if not versions.since and len(versions.found) < _VERSIONS else 0
    baselines: list[Baseline] = []
    thread_id = session.shown[0] if session.shown else session.thread_id
    seen_step = looked.note(thread_id, channel, shown.step, value) if looked is not None else None
    if seen_step is not None:
        driver = await session.driver_of(thread_id)
        seen = (await driver.state_at(seen_step)).get(channel)
        baselines.append(Baseline("since you last saw it", seen))
    for place, (point, _, older) in enumerate(versions.found[1:], 2):
        name = f"version {number - place + 1}" if number else f"step {point.step}"
        if not (place == 2 and baselines and baselines[0].value == older):
            baselines.append(Baseline(f"since {name}", older))
    earlier = await _earlier(session, channel, value, request, actor)
    return ReadValue(channel, value, shown.step, number, tuple(baselines), earlier)


def payload_reading(request: Request, channel: str) -> ReadValue:
    """Return the payload of a request that is not about a channel, to be read."""
    return ReadValue(channel, request.payload, request.step)


# What became of comments.


async def _earlier(
    session: ViewSession, channel: str, value: Any, request: Request | None, actor: str
) -> tuple[Earlier, ...]:
    commented = [
        (entry, comments)
        for entry in session.view.ledger
        if entry.kind in ("answer", "vote") and (comments := _comments_on(channel, entry))
        if entry.step < (request.step if request is not None else session.step_view.step)
    ]
    if not commented:
        return ()
    step = max(entry.step for entry, _ in commented)
    before = document(channel, (await session.driver.state_at(step)).get(channel))
    now = document(channel, value)
    replies = replies_of(request.payload if request is not None else None)
    found: list[Earlier] = []
    for entry, comments in commented:
        for comment in comments if entry.step == step else ():
            fate, at = what_became_of(comment, before, now)
            number = len(found) + 1
            who = identity(entry.actor, entry.login)
            mine = entry.actor == actor
            found.append(Earlier(number, who, comment, fate, at, replies.get(number, ""), mine))
    return tuple(found)


def _comments_on(channel: str, entry: LedgerEntry) -> list[Comment]:
    comments = comments_of(entry.data)
    return [each for each in comments if each.path.partition(".")[0].partition("[")[0] == channel]


def replies_of(payload: Any) -> dict[int, str]:
    """Return the author's replies in a request's payload, by the number of the comment.

    `replies` is a list of texts in the order of the comments, or texts by their numbers.
    """
    replies = payload.get("replies") if isinstance(payload, Mapping) else None
    if isinstance(replies, list | tuple):
        return {at: text for at, text in enumerate(replies, 1) if isinstance(text, str) and text.strip()}
    if isinstance(replies, Mapping):
        items = ((str(number), text) for number, text in replies.items())
        return {int(n): text for n, text in items if n.isdecimal() and isinstance(text, str) and text.strip()}
    return {}


def what_became_of(comment: Comment, before: Document, now: Document) -> tuple[Fate, int]:
    """Return whether a passage has changed, and where it is in the newer text."""
    old = next((part for part in before if part.path == comment.path), None)
    new = next((part for part in now if part.path == comment.path), None)
    if new is None:
        return "gone", 0
    quote = sanitise(comment.quote)
    if old is None:
        at = new.text.find(quote)
        return ("unchanged", at) if at >= 0 else ("changed", 0)
    start = old.clean_offset(comment.offset)
    end = start + len(quote)
    for change in text_changes(old.text, new.text):
        if change.old_start < end and change.old_end > start:
            if (at := new.text.find(quote)) >= 0:  # the passage is elsewhere now
                return "unchanged", at
            whole = change.old_start <= start and change.old_end >= end
            replaced = change.end > change.start
            return ("gone" if whole and not replaced else "changed"), max(change.start, 0)
    return "unchanged", place_in_newer(old.text, new.text, start)


def earlier_notes(pages: Document, earlier: Sequence[Earlier]) -> Iterator[MarginNote]:
    """Yield the notes of comments on the last version, at their places."""
    for each in earlier:
        part = next((at for at, part in enumerate(pages) if part.path == each.comment.path), 0)
        who = "you" if each.mine else sanitise_line(each.who, _NAME)
        said: Line = (
            trusted(f"({each.number}) {who}, last time: ", "human"),
            trusted("“", "human"), untrusted(each.comment.text, "human", _SAID), trusted("”", "human"),
        )  # fmt: skip
        lines: list[Line] = [said]
        if each.fate != "unchanged":
            lines.append(
                (trusted("on “", "dim"), untrusted(each.comment.quote, "dim", _QUOTED), trusted("”", "dim"))
            )
        if each.reply:
            lines.append((trusted("author: ", "name"), untrusted(each.reply, "plain", _SAID)))
        lines.append((trusted(f"passage {each.fate}", _FATES[each.fate]),))
        yield MarginNote(part, each.at, tuple(lines))


def comment_notes(pages: Document, comments: Sequence[Comment]) -> Iterator[MarginNote]:
    """Yield the notes of comments that are not sent yet, with their numbers."""
    for number, comment in enumerate(comments, 1):
        part = next((at for at, part in enumerate(pages) if part.path == comment.path), -1)
        if part >= 0:
            said: Line = (trusted(f"{number} ", "human"), untrusted(comment.text, "plain", _SAID))
            unsent: Line = (trusted("not sent yet", "dim"),)
            yield MarginNote(part, pages[part].clean_offset(comment.offset), (said, unsent))


def addressed_words(earlier: Sequence[Earlier]) -> str:
    """Return how many earlier comments led to a change: "3 of your 4 comments addressed"; "" for none."""
    if not earlier:
        return ""
    mine = [each for each in earlier if each.mine]
    counted = mine or earlier
    done = sum(each.fate != "unchanged" or bool(each.reply) for each in counted)
    return f"{done} of {'your ' if mine else ''}{count(len(counted), 'comment')} addressed"


def pages_of(reading: ReadValue, width: int, *, source: bool = False) -> Pages:
    """Return a value laid out for a width, compared with the first version, without colours."""
    shown = document(reading.channel, reading.value, source=source)
    changes = {}
    if reading.baselines:
        before = document(reading.channel, reading.baselines[0].value, source=source)
        changes = document_changes(before, shown)
    return Pages(
        shown, width, changes=changes, notes=tuple(earlier_notes(shown, reading.earlier)), marked=True
    )


def reading_lines(reading: ReadValue, width: int, *, source: bool = False) -> list[str]:
    """Return a value as lines of plain text, headed by what has changed in it."""
    pages = pages_of(reading, width, source=source)
    facts = [sanitise_line(reading.channel, _NAME)]
    facts += [f"version {reading.version}"] if reading.version else []
    if reading.baselines:
        facts.append(f"{count(len(pages.change_rows), 'change')} {reading.baselines[0].since}")
    facts += [addressed] if (addressed := addressed_words(reading.earlier)) else []
    lines = [" · ".join(facts), ""]
    for row in pages.rows:
        words = plain_text(row.note) if row.note else "".join(piece.text for piece in row.pieces)
        lines.append(f"{'|' if row.changed else '>' if row.note else ' '} {words}".rstrip())
    return lines


# What a person has looked at.


class _Seen(msgspec.Struct):
    """The step at which a value was seen, a digest of it, and the step of the value seen before that."""

    step: int
    digest: str
    before: int | None = None
    before_digest: str = ""


class Looked:
    """What a person has seen of each thread's channels, kept in a file.

    A damaged or unwritable file only means that nothing was seen.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def note(self, thread_id: str, channel: str, step: int, value: Any) -> int | None:
        """Note that a value was seen; return the step at which another one was seen before, None if none."""
        seen, key, now = self._load(), f"{thread_id}\n{channel}", digest(value)
        last = seen.pop(key, None)
        if last is None or last.step > step:
            entry = _Seen(step, now)
        elif last.digest == now:
            entry = last
        else:
            entry = _Seen(step, now, last.step, last.digest)
        seen[key] = entry
        self._save(dict(list(seen.items())[-_KEPT:]))
        return entry.before

    def _load(self) -> dict[str, _Seen]:
        try:
            if self._file.stat().st_size <= _LARGEST:
                return msgspec.json.decode(self._file.read_bytes(), type=dict[str, _Seen])
        except (OSError, ValueError, msgspec.MsgspecError):
            pass
        return {}

    def _save(self, seen: dict[str, _Seen]) -> None:
        temporary = ""
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=self._file.parent, suffix=".tmp")
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(seen))
            os.replace(temporary, self._file)
        except OSError:
            if temporary:
                with suppress(OSError):
                    os.unlink(temporary)


def digest(value: Any) -> str:
    """Return a short digest of a value."""
    data = value.encode(errors="surrogatepass") if isinstance(value, str) else repr(value).encode()
    return hashlib.sha256(data).hexdigest()[:16]
