"""The decisions in a store, found by words, time, thread and person, with the log after each."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from hitl_tui.drivers.history import AROUND, leaves
from hitl_tui.engine.log.outcomes import HASHED
from hitl_tui.engine.log.records import Checkpoint, LedgerEntry
from hitl_tui.engine.log.signing import DECIDING
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import DecisionPlace, ThreadSummary
from hitl_tui.engine.thread.logged import logged_digest, logged_graph
from hitl_tui.engine.thread.rebuild import Decoded, state_at
from hitl_tui.errors import HitlError, UnknownThread

_LOOKED_AT: Final = 500
"""Most steps after a decision that are read."""
_AT_ONCE: Final = 200
"""Most decisions whose texts are searched before a page ends, so that the searcher can say how far it is."""
_THREADS_KEPT: Final = 64


class Decided(NamedTuple):
    """A decision, and the log of its thread from there on.

    Attributes:
        ledger: the thread's entries, from the answered request to the next one.
        points: the steps from the one that it is about on, oldest first.
        found: where the first searched word is: the name of the text ("" for none), and the text before,
            at and after the word.
    """

    thread: str
    status: str
    reason: str
    entry: LedgerEntry
    ledger: Sequence[LedgerEntry]
    points: Sequence[Checkpoint]
    found: tuple[str, str, str, str] = ("", "", "", "")


class Wanted(NamedTuple):
    """A part that a text must contain, in lower case; must not contain, with `unless`."""

    part: str
    unless: bool = False

    def fits(self, text: str) -> bool:
        """Whether a text is as wanted."""
        return (self.part in text.casefold()) is not self.unless


class DecisionFilter(NamedTuple):
    """Which decisions are wanted; times are microseconds since the epoch.

    Args:
        words: each is in the question, the reason, the answer, or the values decided about.
        people: parts of the name of who decided.
        person: the whole name of who decided; "" for anyone.
        threads: parts of the thread's name.
        thread: the whole name of the thread; "" for all.
        since, until: the earliest time, and the one before which it was.
    """

    words: tuple[Wanted, ...] = ()
    people: tuple[Wanted, ...] = ()
    person: str = ""
    threads: tuple[Wanted, ...] = ()
    thread: str = ""
    since: int | None = None
    until: int | None = None

    def places(self, places: Iterator[DecisionPlace]) -> Iterator[DecisionPlace]:
        """Yield those of the places, newest first, that fit in all but words."""
        for place in places:
            if self.since is not None and place.at < self.since:
                return
            if self.until is not None and place.at >= self.until:
                continue
            if (
                self.thread in ("", place.thread_id)
                and self.person in ("", place.actor)
                and all(wanted.fits(place.thread_id) for wanted in self.threads)
                and all(wanted.fits(place.actor or "") for wanted in self.people)
            ):
                yield place


class DecisionSearch:
    """The decisions that fit a filter, newest first, read page by page; usable from any thread.

    Attributes:
        looked: how many decisions were searched so far.
        ended: whether all have been.
    """

    def __init__(self, store: Store, wanted: DecisionFilter) -> None:
        self._store = store
        self._wanted = wanted
        self._places = wanted.places(store.decisions())
        self._threads: OrderedDict[str, _ReadThread] = OrderedDict()
        self._public: dict[str, frozenset[str]] = {}
        self._lock = threading.Lock()
        self.looked = 0
        self.ended = False

    def page(self, limit: int) -> tuple[Decided, ...]:
        """Return at most so many further decisions; fewer, even none, if many had to be searched for them."""
        page: list[Decided] = []
        with self._lock:
            looked = 0
            while len(page) < limit and looked < _AT_ONCE:
                place = next(self._places, None)
                if place is None:
                    self.ended = True
                    break
                looked += 1
                if (decided := self._read(place)) is not None:
                    page.append(decided)
            self.looked += looked
        return tuple(page)

    def all(self, limit: int) -> Iterator[Decided]:
        """Yield at most so many further decisions, however many have to be searched for them."""
        while limit > 0 and not self.ended:
            page = self.page(limit)
            limit -= len(page)
            yield from page

    def _read(self, place: DecisionPlace) -> Decided | None:
        """Return a decision if it has the wanted words; None also if it was deleted meanwhile."""
        name = place.thread_id
        thread = self._threads.get(name)
        if thread is None:
            summary = self._store.summary(name)
            if summary is None:
                return None
            try:
                thread = _ReadThread(self._store, summary, self._public)
            except UnknownThread:
                return None
            self._threads[name] = thread
            if len(self._threads) > _THREADS_KEPT:
                self._threads.popitem(last=False)
        self._threads.move_to_end(name)
        return thread.decided(place.n, self._wanted.words)


class _ReadThread:
    """A thread of which several decisions are read; nothing is read twice.

    Args:
        public: the public channels of graphs, by digest, shared by all threads of a search.
    """

    def __init__(self, store: Store, summary: ThreadSummary, public: dict[str, frozenset[str]]) -> None:
        self._store = store
        self._summary = summary
        self._name = summary.info.thread_id
        self._ledger = store.ledger(self._name, call_data=False)
        self._questions = [at for at, entry in enumerate(self._ledger) if entry.kind == "request"]
        self._asked: dict[str | None, list[int]] = {}
        for at in self._questions:
            self._asked.setdefault(self._ledger[at].request_id, []).append(at)
        self._known_public = public
        self._public: frozenset[str] | None = None
        self._decoded = Decoded()
        self._points: list[Checkpoint] = []

    def decided(self, n: int, words: Sequence[Wanted]) -> Decided | None:
        """Return a decision with what followed it; None if it lacks one of the words."""
        at = n - self._ledger[0].n if self._ledger else 0
        if not 0 <= at < len(self._ledger):
            return None
        entry = self._ledger[at]
        asked = self._asked.get(entry.request_id, []) if entry.request_id else []
        before = bisect_right(asked, at)
        request = asked[before - 1] if before else None
        found = ("", "", "", "")
        if words:
            hit = self._find(entry, None if request is None else self._ledger[request], words)
            if hit is None:
                return None
            found = hit
        following = bisect_right(self._questions, at)
        end = self._questions[following] + 1 if following < len(self._questions) else len(self._ledger)
        return Decided(
            self._name, self._summary.status, self._summary.reason, entry,
            self._ledger[at if request is None else request : end], self._points_from(entry.step), found,
        )  # fmt: skip

    def _points_from(self, step: int) -> list[Checkpoint]:
        """Return the steps from one on; a search goes back in time, so those after them are mostly known."""
        if self._points and self._points[0].step < step:
            self._points = []
        known = self._points[0].step if self._points else step + _LOOKED_AT
        if known > step:
            last = min(known, step + _LOOKED_AT)
            read = self._store.checkpoints(self._name, last, last - step)
            older = [point for point in reversed(read) if point.step >= step]
            self._points = [*older, *(self._points if last == known else ())][:_LOOKED_AT]
        return self._points

    def _find(
        self, entry: LedgerEntry, request: LedgerEntry | None, words: Sequence[Wanted]
    ) -> tuple[str, str, str, str] | None:
        """Return where the first wanted word is; None if a word is missing, or one is there that must not."""
        refused = [wanted.part for wanted in words if wanted.unless]
        parts = [wanted.part for wanted in words if not wanted.unless]
        missing, hit = set(parts), ("", "", "", "")
        for name, text in self._texts(entry, request):
            folded = text.casefold()
            if any(part in folded for part in refused):
                return None
            here = {part for part in missing if part in folded}
            if here and parts[0] in here:
                hit = (name, *_cut(text, folded, parts[0]))
            missing -= here
            if not missing and not refused:
                break
        return None if missing else hit

    def _texts(self, entry: LedgerEntry, request: LedgerEntry | None) -> Iterator[tuple[str, str]]:
        """Yield the texts of a decision with their names, those that are read already first."""
        yield "question", (request.note if request is not None else "") or ""
        yield "reason", entry.note or ""
        yield "answer", _flat(entry.data.get("answer") if isinstance(entry.data, Mapping) else None)
        if request is not None and isinstance(request.data, Mapping):
            yield "payload", _flat(request.data.get("payload"))
        about = subjects_of(entry, request)
        if not about:
            return
        try:
            wanted = [name for name in about if name in self._public_channels()]
            values = state_at(self._store, self._name, entry.step, only=wanted, decoded=self._decoded)
        except HitlError:  # a damaged log has no text to find; opening the thread reports it
            return
        for name in wanted:
            yield name, _flat(values.get(name))

    def _public_channels(self) -> frozenset[str]:
        if self._public is None:
            info, cursor = self._summary.info, self._store.cursor(self._name)
            assert cursor is not None
            digest = logged_digest(info, cursor)
            public = self._known_public.get(digest)
            if public is None:
                channels = logged_graph(self._store, info, cursor).channels
                public = frozenset(channel.name for channel in channels if channel.visibility == "public")
                if digest:
                    self._known_public[digest] = public
            self._public = public
        return self._public


def subjects_of(entry: LedgerEntry, request: LedgerEntry | None) -> tuple[str, ...]:
    """Return the channels whose values a decision is about: the question's subject, or those edited."""
    if request is not None:
        hashed = request.data.get(HASHED) if isinstance(request.data, Mapping) else None
        subject = hashed.get("subject") if isinstance(hashed, Mapping) else None
        return (subject.partition(".")[0],) if isinstance(subject, str) else ()
    channels = entry.data.get("channels", ()) if isinstance(entry.data, Mapping) else ()
    return tuple(name for name in channels if isinstance(name, str))


def _flat(value: Any) -> str:
    """Return all texts in a value, a line each."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return "\n".join(leaf for _, leaf in leaves(value))


def _cut(text: str, folded: str, part: str) -> tuple[str, str, str]:
    """Return the text before a part of it, the part, and the text after it."""
    if len(folded) != len(text):  # positions in one are not those in the other
        return "", text[: 2 * AROUND], ""
    at = folded.find(part)
    end = at + len(part)
    return text[max(0, at - AROUND) : at], text[at:end], text[end : end + 2 * AROUND]


def decisions_of(entries: Sequence[LedgerEntry], person: str) -> list[LedgerEntry]:
    """Return the decisions of a person, newest first."""
    return [entry for entry in entries if entry.actor == person and entry.kind in DECIDING][::-1]
