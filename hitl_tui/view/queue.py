"""The queue of waiting requests: its rows and their texts, order, filter and marks."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from hitl_tui.drivers.protocol import SourceState, ThreadKey
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.threads import Presence, ThreadSummary, Waiting
from hitl_tui.engine.thread.approval_formats import actions_of
from hitl_tui.errors import UsageError
from hitl_tui.suggest import did_you_mean
from hitl_tui.view.about import about_text, searched_text, sent_back_by, version_words
from hitl_tui.view.answers import APPROVING
from hitl_tui.view.card import answer_form
from hitl_tui.view.format import count, inline
from hitl_tui.view.presence import at_request, claim_of, handed_words
from hitl_tui.view.queue_facts import WaitingRequest
from hitl_tui.view.sanitise import sanitise_line

MOST: Final = 5_000
"""Most waiting threads in a queue: those that have waited longest."""
_MINUTE: Final = 60_000_000
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
SOON: Final = 5 * _MINUTE
"""Microseconds before its deadline from which a request comes first."""
_WORD: Final = 40
_TITLE: Final = 120
_GOAL: Final = 200
_PROBLEM: Final = 300
_NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six")

Key = tuple[str, str, str]
"""A source, a thread and its request; "" if it only stopped."""
Place = tuple[str, ...]
"""The place in a thread where a question is asked (see `QueueRow.place`)."""


class QueueRow(msgspec.Struct, frozen=True, gc=False):
    """A waiting request, or a thread that only stopped, as the queue shows it.

    Args:
        request: the request; None if the thread only stopped between two nodes, or can't be read.
        goal: the purpose of its run, "" if unknown.
        seen: the hash of the newest state, to go with an answer.
        orphan, source: as in `Waiting`.
    """

    thread: ThreadSummary
    request: Request | None
    goal: str = ""
    seen: bytes = b""
    orphan: bool = False
    source: str = ""

    @property
    def name(self) -> str:
        """The thread."""
        return self.thread.info.thread_id

    @property
    def graph(self) -> str:
        """The name of its graph."""
        return self.thread.info.graph_name

    @property
    def key(self) -> Key:
        """A key that is unique among rows."""
        return self.source, self.name, self.request.id if self.request else ""

    @property
    def thread_key(self) -> ThreadKey:
        """A key that is unique among the threads of all sources."""
        return self.source, self.name

    @property
    def place(self) -> Place:
        """The place of the request: a gate that asks again about changed values keeps it.

        A node may make several requests at once, so the place of a request inside a node is its id.
        """
        request = self.request
        if request is None or request.when == "inside":
            return self.key
        return self.source, self.name, request.thread, request.node, request.when, request.policy

    @property
    def title(self) -> str:
        """The request's title on one line, with an advisor's verdict."""
        request = self.request
        if request is None or request.breakpoint:
            return sanitise_line(request.title if request else self.thread.waiting_for, _TITLE)
        node = sanitise_line(request.node, _WORD)
        title = sanitise_line(request.title, _TITLE) or f"Your answer to {node}?"
        payload = request.payload
        verdict = payload.get("verdict") if isinstance(payload, Mapping) else None
        if not isinstance(verdict, str) or not verdict:
            return title
        judge = sanitise_line(str(payload.get("agent") or node), _WORD)
        return f"{title} ({judge}: {sanitise_line(verdict, _WORD)})"

    @property
    def asks(self) -> bool:
        """Whether a person must answer; else the thread only stopped, until somebody continues it."""
        return self.request is not None and not self.request.breakpoint

    def is_like(self, other: QueueRow) -> bool:
        """Whether another row asks the same of another thread: at the same node of the same graph."""
        mine, theirs = self.request, other.request
        return (
            mine is not None
            and theirs is not None
            and self.graph == other.graph
            and (mine.node, mine.when, mine.policy) == (theirs.node, theirs.when, theirs.policy)
        )

    @property
    def since(self) -> int:
        """When it began to wait, in microseconds."""
        asked = self.request.asked_at if self.request else 0
        return asked or self.thread.waiting_since or self.thread.updated_at

    @property
    def deadline(self) -> int | None:
        """When its deadline answers it."""
        return self.request.deadline if self.request else None

    @property
    def high_risk(self) -> bool:
        """Whether it is a decision of high risk."""
        return self.request is not None and self.request.risk == "high"

    def expired(self, now: int) -> bool:
        """Whether its deadline has passed."""
        return self.deadline is not None and self.deadline < now

    def due_soon(self, now: int) -> bool:
        """Whether its deadline is within `SOON`."""
        return self.deadline is not None and now <= self.deadline <= now + SOON

    def handed_to(self, person: str) -> bool:
        """Whether it was handed over to a person, who must decide it."""
        handed = self.request.handed if self.request else None
        return handed is not None and handed.to == person

    def is_new(self, person: str, looked: int | None) -> bool:
        """Whether it was asked, or handed over to a person, since they last looked at the queue."""
        if looked is None or self.request is None or not self.asks:
            return False
        handed = self.request.handed
        return max(self.since, handed.at if handed and handed.to == person else 0) > looked

    def claim(self, now: int) -> Presence | None:
        """The current claim, None if there is none."""
        return claim_of(self.thread.attending, self.request, now) if self.request else None

    def claimed(self, now: int) -> str:
        """The name of who has claimed it, "" for nobody."""
        claim = self.claim(now)
        return claim.actor if claim else ""

    @property
    def looking(self) -> tuple[str, ...]:
        """The names of those who have it open."""
        there = at_request(self.thread.attending, self.request) if self.request else ()
        return tuple(dict.fromkeys(each.actor for each in there if not each.claims))


def rows_of(waiting: Iterable[Waiting]) -> tuple[QueueRow, ...]:
    """Return a row for each request, and one for each thread that only stopped."""
    return tuple(_row(thread, request) for thread in waiting for request in (thread.pending or (None,)))


def _row(waits: Waiting, request: Request | None) -> QueueRow:
    goal = waits.goal if isinstance(waits.goal, str) else "" if waits.goal is None else inline(waits.goal)
    return QueueRow(waits.thread, request, goal, waits.state_hash, waits.orphan, waits.source)


def urgency(row: QueueRow, now: int, me: str) -> tuple[bool, bool, bool, bool, float, bool, int]:
    """Return a row's sort key.

    The order is: expired, due within `SOON`, handed over to the person, due soonest, high risk, waiting
    longest. Threads that only stopped come after all requests.
    """
    due = math.inf if row.deadline is None else float(row.deadline)
    urgent = not row.expired(now), not row.due_soon(now), not row.handed_to(me)
    return not row.asks, *urgent, due, not row.high_risk, row.since


class SortKey(NamedTuple):
    """An order of rows: its letter, its name on screen, and its sort key of a row, a time and a person."""

    key: str
    label: str
    of: Callable[[QueueRow, int, str], Any]


SORTS: Final[Mapping[str, SortKey]] = {
    "urgency": SortKey("u", "urgency", urgency),
    "waits": SortKey("w", "waiting", lambda row, now, me: row.since),
    "due": SortKey("d", "due", lambda row, now, me: math.inf if row.deadline is None else row.deadline),
    "risk": SortKey("r", "risk", lambda row, now, me: not row.high_risk),
    "votes": SortKey("v", "votes", lambda row, now, me: -len(row.request.votes) if row.request else 0),
    "claimed": SortKey("c", "claimed by", lambda row, now, me: (not row.claimed(now), row.claimed(now))),
    "open": SortKey("o", "open elsewhere", lambda row, now, me: -len(row.looking)),
    "title": SortKey("a", "what is asked", lambda row, now, me: row.title.lower()),
    "thread": SortKey("t", "thread", lambda row, now, me: row.name.lower()),
    "graph": SortKey("g", "graph", lambda row, now, me: row.graph.lower()),
    "source": SortKey("s", "source", lambda row, now, me: row.source.lower()),
}
"""The orders, by their names in the settings and `--sort`."""


def read_sort(word: str) -> str:
    """Return the order with a name.

    Raises:
        UsageError: there is no such order.
    """
    if word not in SORTS:
        known = f"sort by {', '.join(SORTS)}"
        raise UsageError(f"there is no column {word!r} to sort by", did_you_mean(word, SORTS) or known)
    return word


class QueueView(msgspec.Struct, frozen=True):
    """The filter and order of the queue, kept between openings.

    Args:
        filter: as typed (see `read_filter`).
        sort: one of `SORTS`.
    """

    filter: str = ""
    sort: str = "urgency"
    reverse: bool = False

    def shown(self, rows: Iterable[QueueRow], now: int, me: str) -> list[QueueRow]:
        """Return the rows that pass the filter, sorted, then by urgency.

        What is due within `SOON` comes first in any order, unless it is reversed.
        """
        wanted = read_filter(self.filter)
        passing = [row for row in rows if wanted.passes(row, now, me)]
        passing.sort(key=lambda row: (urgency(row, now, me), row.key))
        by = SORTS.get(self.sort, SORTS["urgency"])
        if by.of is not urgency or self.reverse:
            passing.sort(key=lambda row: by.of(row, now, me), reverse=self.reverse)
        if by.of is not urgency and not self.reverse:
            passing.sort(key=lambda row: not row.due_soon(now))
        return passing

    @property
    def sort_words(self) -> str:
        """Describe the order."""
        by = SORTS.get(self.sort, SORTS["urgency"])
        if by.of is urgency:
            return "least urgent first" if self.reverse else "most urgent first"
        return f"sorted by {by.label}{', reversed' if self.reverse else ''}"


# -- the filter ------------------------------------------------------------------------------------


class Term(NamedTuple):
    """One condition of a filter; `unless` negates it."""

    field: str
    value: str
    unless: bool = False


class Filter(NamedTuple):
    """The conditions that rows must meet; `problems` are its unreadable parts, which are ignored."""

    terms: tuple[Term, ...] = ()
    problems: tuple[str, ...] = ()

    def passes(self, row: QueueRow, now: int, me: str) -> bool:
        """Whether a row meets all terms."""
        return all(_TESTS[term.field](row, term.value, now, me) is not term.unless for term in self.terms)


_WORDS_OF_FILTER: Final = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
_SPAN: Final = re.compile(r"[<>]?(\d+)([mhd])")
_UNITS: Final = {"m": _MINUTE, "h": _HOUR, "d": _DAY}


def read_filter(text: str) -> Filter:
    """Read a filter such as `graph:advisor risk:high due:today -thread:test "two words"`.

    A word without a field matches a part of the title, the thread, the graph, the goal, or of what it is
    about: the first words of its subject, or its arguments. "-" before a word negates it.
    """
    terms: list[Term] = []
    problems: list[str] = []
    for word in _WORDS_OF_FILTER.findall(text):
        unless = word.startswith("-") and len(word) > 1
        field, colon, value = word.removeprefix("-" if unless else "").partition(":")
        if not colon or not field.isalpha():
            field, value = "text", field + colon + value
        value = value.replace('"', "").strip().lower()
        problem = _problem(field, value)
        if problem:
            problems.append(problem)
        elif value:
            terms.append(Term(field, value, unless))
    return Filter(tuple(terms), tuple(problems))


def _problem(field: str, value: str) -> str:
    """Return why a term can't be read; "" if it can. A term that is being typed is no problem yet."""
    if field not in _TESTS:
        hint = did_you_mean(field, _TESTS) or f"there are {', '.join(_TESTS)}"
        return f"there is no {field}: to filter by; {hint}"
    known = _VALUES.get(field)
    if known is None or not value or any(word.startswith(value) for word in known) or _SPAN.fullmatch(value):
        return ""
    spans = ", or a time as 4h" if field in ("due", "waits") else ""
    return f"{field}:{value} is none of {', '.join(known)}{spans}"


_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "risk": ("high", "normal", "low"),
    "due": ("expired", "today", "tomorrow", "none", "any"),
    "waits": ("today",),
    "asks": ("yes", "no"),
    "form": ("yes", "no"),
}


def _span(value: str) -> int | None:
    """Return the microseconds of "4h" or "<4h"."""
    given = _SPAN.fullmatch(value)
    return int(given[1]) * _UNITS[given[2]] if given else None


def _due(row: QueueRow, value: str, now: int, me: str) -> bool:
    deadline = row.deadline
    if "none".startswith(value):
        return deadline is None
    if deadline is None:
        return False
    if (span := _span(value)) is not None:
        return deadline - now >= span if value[0] == ">" else deadline - now <= span
    if "expired".startswith(value):
        return deadline < now
    if "tomorrow".startswith(value) and not "today".startswith(value):
        return _days(now, deadline) == 1
    return "any".startswith(value) or _days(now, deadline) <= 0


def _waits(row: QueueRow, value: str, now: int, me: str) -> bool:
    span = _span(value)
    if span is None:
        return _days(row.since, now) == 0
    return now - row.since < span if value[0] == "<" else now - row.since >= span


def _people(names: Sequence[str], value: str, me: str) -> bool:
    """Whether a name is among the people; "none", "any" and "me" are keywords."""
    if value == "none":
        return not names
    if value == "any":
        return bool(names)
    return any((value == "me" and name == me) or value in name.lower() for name in names)


def _votes(row: QueueRow, value: str, now: int, me: str) -> bool:
    return _people([vote.actor for vote in row.request.votes] if row.request else [], value, me)


def _claimed(row: QueueRow, value: str, now: int, me: str) -> bool:
    claimed = row.claimed(now)
    return _people([claimed] if claimed else [], value, me)


def _handed(row: QueueRow, value: str, now: int, me: str) -> bool:
    handed = row.request.handed if row.request else None
    return _people([handed.to] if handed else [], value, me)


def _back(row: QueueRow, value: str, now: int, me: str) -> bool:
    who = sent_back_by(row.request) if row.request else ""
    return _people([who] if who else [], value, me)


def _form(row: QueueRow, value: str, now: int, me: str) -> bool:
    return (row.request is not None and answer_form(row.request) is not None) is "yes".startswith(value)


def _text(row: QueueRow, value: str, now: int, me: str) -> bool:
    asked = row.request.title if row.request else ""
    parts = (row.title, asked, row.name, row.graph, row.goal, row.source)
    if any(value in part.lower() for part in parts):
        return True
    return row.request is not None and value in searched_text(row.request)


_TESTS: Final[Mapping[str, Callable[[QueueRow, str, int, str], bool]]] = {
    "graph": lambda row, value, now, me: value in row.graph.lower(),
    "thread": lambda row, value, now, me: value in row.name.lower(),
    "title": lambda row, value, now, me: value in row.title.lower(),
    "source": lambda row, value, now, me: value in row.source.lower(),
    "goal": lambda row, value, now, me: value in row.goal.lower(),
    "risk": lambda row, value, now, me: row.high_risk is "high".startswith(value),
    "due": _due,
    "waits": _waits,
    "votes": _votes,
    "claimed": _claimed,
    "handed": _handed,
    "back": _back,
    "open": lambda row, value, now, me: _people(row.looking, value, me),
    "form": _form,
    "asks": lambda row, value, now, me: row.asks is "yes".startswith(value),
    "text": _text,
}


def _days(first: int, then: int) -> int:
    """Count the local midnights between two moments."""
    return _day(then) - _day(first)


def _day(at: int) -> int:
    return datetime.fromtimestamp(min(at, _LAST) / 1e6).toordinal()


_LAST: Final = 253_370_000_000_000_000
"""A moment in the year 9999: none is later for a calendar."""


# -- the texts of a row ----------------------------------------------------------------------------


def span_words(span: int) -> str:
    """ "now", "12 m", "4 h", "3 d" of microseconds."""
    for unit, length in (("d", _DAY), ("h", _HOUR), ("m", _MINUTE)):
        if span >= length:
            return f"{span // length} {unit}"
    return "now"


def due_words(row: QueueRow, now: int) -> str:
    """Return the time until a deadline: "expired", "in 18 m", "tomorrow", "in 3 d"; "" without one."""
    if row.deadline is None:
        return ""
    left = row.deadline - now
    if left < 0:
        return "expired"
    if left < _MINUTE:
        return "in < 1 m"
    days = _days(now, row.deadline)
    if left < 12 * _HOUR or (left < _DAY and not days):
        return f"in {span_words(left)}"
    return "tomorrow" if days == 1 else f"in {days} d"


def votes_words(request: Request | None) -> str:
    """Return how many have voted and how: "1 of 2, one yes"; "" if one person decides."""
    if request is None or request.quorum <= 1:
        return ""
    said: dict[str, int] = {}
    for vote in request.votes:
        answer = vote.answer
        if isinstance(answer, Mapping) and "choice" in answer:
            answer = answer["choice"]
        word = answer if isinstance(answer, str) else inline(answer, _WORD)
        word = "yes" if word in APPROVING else sanitise_line(word, _WORD)
        said[word] = said.get(word, 0) + 1
    tally = [f"{_number(times)} {word}" for word, times in said.items()]
    return ", ".join([f"{len(request.votes)} of {request.quorum}", *tally])


def _number(times: int) -> str:
    return _NUMBERS[times] if times < len(_NUMBERS) else str(times)


def who_words(row: QueueRow, now: int, me: str) -> str:
    """Return who has claimed a row and for how long, and who else has it open; "" for nobody."""
    claim, parts = row.claim(now), []
    if claim:
        whose = "yours" if claim.actor == me else f"claimed by {sanitise_line(claim.actor, _WORD)}"
        parts.append(f"{whose}, {left_words(claim, now)}")
    claimed = claim.actor if claim else me
    others = [sanitise_line(name, _WORD) for name in row.looking if name not in (me, claimed)]
    if others:
        parts.append(f"{others[0]} has it open" if len(others) == 1 else f"{len(others)} have it open")
    return " · ".join(parts)


def left_words(claim: Presence, now: int) -> str:
    """Return how long a claim still lasts: "9 m left"."""
    return f"{span_words(max(claim.until - now, _MINUTE))} left"


def kind_words(request: Request | None) -> str:
    """Return the kind of answer that is wanted, unless a choice: "form, 4 fields", "tainted: page"."""
    if request is None or request.breakpoint:
        return "stopped"
    if request.policy == "on_taint":
        return f"tainted: {', '.join(_taint_sources(request))}"
    if form := answer_form(request):
        return f"form, {count(len(form.fields), 'field')}"
    if request.shape:
        return count(len(actions_of(request.shape, request.payload)), "action")
    if request.choices:
        return "signed" if request.signed else ""
    return "an edit" if request.kind == "edit" else "a text"


def _taint_sources(request: Request) -> list[str]:
    channels = request.payload.get("channels") if isinstance(request.payload, Mapping) else None
    sources = {
        str(source): None
        for channel in (channels or ())
        if isinstance(channel, Mapping)
        for source in channel.get("sources") or ()
    }
    return [sanitise_line(source, _WORD) for source in sources] or ["a channel"]


def notes_words(row: QueueRow, now: int, me: str) -> str:
    """Return a row's notes: source, whether it can continue, who attends, votes, version, kind of answer."""
    parts = (
        sanitise_line(row.source, _WORD),
        "no worker has its graph" if row.orphan else "", who_words(row, now, me), _for_others(row, me),
        votes_words(row.request), version_words(row.request, me) if row.request else "",
        kind_words(row.request),
    )  # fmt: skip
    return " · ".join(part for part in parts if part)


def _for_others(row: QueueRow, me: str) -> str:
    if row.request and row.request.handed:
        return handed_words(row.request.handed, me)
    reviewers = row.request.reviewers if row.request else ()
    logins = row.request.logins if row.request else ()
    if logins and not reviewers:
        return f"for login {sanitise_line(', '.join(logins), _WORD)}"
    if row.request and me in row.request.authors:
        return "for somebody else"
    if not reviewers or me in reviewers:
        return ""
    return f"for {sanitise_line(', '.join(reviewers), _WORD)}"


def summary_words(rows: Sequence[QueueRow], now: int, me: str) -> str:
    """Return what is urgent: "3 due today · 1 expired · 2 other people are here"; "" for nothing.

    What is due within `SOON` is in `soon_words`.
    """
    deadlines = [deadline for row in rows if (deadline := row.deadline) is not None]
    expired = sum(deadline < now for deadline in deadlines)
    due = sum(deadline > now + SOON and _days(now, deadline) == 0 for deadline in deadlines)
    attended = [row for row in rows if row.thread.attending]
    others = {name for row in attended for name in (*row.looking, row.claimed(now)) if name and name != me}
    parts = [f"{due} due today"] if due else []
    parts += [f"{expired} expired"] if expired else []
    if others:
        people = "other person is" if len(others) == 1 else "other people are"
        parts.append(f"{len(others)} {people} here")
    return " · ".join(parts)


def soon_words(rows: Iterable[QueueRow], now: int) -> str:
    """Return "2 due in 3 m", the time until the first of those due within `SOON`; "" without any."""
    left = [row.deadline - now for row in rows if row.deadline is not None and row.due_soon(now)]
    if not left:
        return ""
    return f"{len(left)} due in {'< 1 m' if min(left) < _MINUTE else span_words(min(left))}"


def about_words(row: QueueRow) -> str:
    """Return what a row is about: the first words of its subject, its arguments, else the goal of its run."""
    about = about_text(row.request) if row.request else ""
    return about or sanitise_line(row.goal, _GOAL)


def source_problems(sources: Iterable[SourceState], *, retries: bool = False) -> list[str]:
    """Return what is wrong with the sources that can't be read now: "finance is unavailable: ...".

    Args:
        retries: whether they are tried again by themselves.
    """
    words = []
    again = " (trying again)" if retries else ""
    for source in sources:
        name = sanitise_line(source.name, _WORD)
        if source.status == "connecting":
            words.append(f"{name}: connecting…")
        elif source.status == "unavailable":
            words.append(f"{name} is unavailable{again}: {sanitise_line(source.problem, _PROBLEM)}")
    return words


def fact_of(row: QueueRow, now: int, me: str = "", looked: int | None = None) -> WaitingRequest:
    """Convert a row to its form in documents.

    Args:
        me: for whom.
        looked: when they last looked at the queue, None if they never did.
    """
    request, claim = row.request, row.claim(now)
    return WaitingRequest(
        source=row.source,
        thread=row.name,
        graph=row.graph,
        goal=row.goal,
        request=request.id if request else "",
        request_kind=request.kind if request and row.asks else None,
        step=request.step if request else row.thread.head,
        title=row.title,
        words=about_words(row),
        version=request.version if request else 0,
        back_from=sent_back_by(request) if request else "",
        new=row.is_new(me, looked),
        since=row.since,
        deadline=row.deadline,
        expired=row.expired(now),
        risk=request.risk if request else "normal",
        quorum=request.quorum if request else 1,
        votes=request.votes if request else (),
        claimed_by=claim.actor if claim else "",
        claimed_until=claim.until if claim else None,
        handed_to=request.handed.to if request and request.handed else "",
        looking=row.looking,
        orphan=row.orphan,
    )


# -- marks -----------------------------------------------------------------------------------------


class Marks:
    """The marked rows, each as it was when marked: that is what gets decided."""

    def __init__(self) -> None:
        self._marked: dict[Key, QueueRow] = {}
        self._keys: dict[Place, Key] = {}
        self.reasons: dict[Key, str] = {}
        """Why some of them were refused, and stay."""

    def __len__(self) -> int:
        return len(self._marked)

    def __contains__(self, row: QueueRow) -> bool:
        return row.place in self._keys

    @property
    def rows(self) -> tuple[QueueRow, ...]:
        """The rows as they were when marked, in the order of marking."""
        return tuple(self._marked.values())

    def turn(self, row: QueueRow) -> None:
        """Mark a row, or unmark it."""
        if (key := self._keys.get(row.place)) is not None:
            self.forget(key)
        else:
            self._mark(row)

    def turn_all(self, rows: Sequence[QueueRow]) -> None:
        """Mark all rows with a request; if all are marked, unmark them."""
        asking = [row for row in rows if row.asks]
        unmarked = [row for row in asking if row not in self]
        for row in unmarked or asking:
            self.turn(row)

    def _mark(self, row: QueueRow) -> None:
        self._marked[row.key] = row
        self._keys[row.place] = row.key

    def reason(self, row: QueueRow) -> str:
        """Return why the marked request at a row's place was refused, "" if it was not."""
        key = self._keys.get(row.place)
        return self.reasons.get(key, "") if key else ""

    def forget(self, key: Key) -> None:
        """Remove a row's mark."""
        if (row := self._marked.pop(key, None)) is not None:
            del self._keys[row.place]
        self.reasons.pop(key, None)

    def refused(self, key: Key, why: str) -> None:
        """Keep a row marked, with the reason why it was not decided."""
        if key in self._marked:
            self.reasons[key] = why


# -- one after another -----------------------------------------------------------------------------


class QueueChoice(NamedTuple):
    """A row that was chosen in the queue, with all shown rows and the queue's view."""

    row: QueueRow
    rows: Sequence[QueueRow]
    view: QueueView


class WaitingQueue:
    """Returns each waiting thread once, in the order of a view, then starts again.

    A thread with a new request counts as not shown yet.

    Attributes:
        view: the view in which a person last chose a row; before that all rows, most urgent first.
        place: the number of the last thread in its round, and the round's size; (0, 0) at first.
    """

    def __init__(self) -> None:
        self._shown: dict[tuple[ThreadKey, int | None], None] = {}
        self.view = QueueView()
        self.place = (0, 0)

    def chosen(self, choice: QueueChoice) -> None:
        """Note a person's choice of a row; it counts for the round, and another view starts a new one."""
        if choice.view != self.view:
            self.view = choice.view
            self._shown.clear()
        self._take(choice.row, _threads(choice.rows))

    def following(
        self, rows: Iterable[QueueRow], open_now: Collection[ThreadKey], now: int, me: str
    ) -> QueueRow | None:
        """Return the next row; None if no other waiting thread passes the filter.

        Args:
            open_now: the keys of the open thread and its parents.
        """
        order = _threads(self.view.shown(rows, now, me))
        here = dict.fromkeys(_asked(row) for row in order if row.thread_key in open_now)
        self._shown |= here
        others = [row for row in order if row.thread_key not in open_now]
        left = [row for row in others if _asked(row) not in self._shown]
        if not left:
            self._shown = here
            left = others
        if not left:
            return None
        self._take(left[0], order)
        return left[0]

    def preceding(
        self, rows: Iterable[QueueRow], open_now: Collection[ThreadKey], now: int, me: str
    ) -> QueueRow | None:
        """Return the still waiting row shown before the open one, None if there is none."""
        order = _threads(self.view.shown(rows, now, me))
        shown = list(self._shown)
        waits = {_asked(row): row for row in order}
        here = [
            shown.index(asked)
            for asked, row in waits.items()
            if row.thread_key in open_now and asked in shown
        ]
        before = [asked for asked in shown[: min(here, default=len(shown))] if asked in waits]
        if not before:
            return None
        self._take(waits[before[-1]], order)
        return waits[before[-1]]

    def _take(self, row: QueueRow, order: Sequence[QueueRow]) -> None:
        self._shown.setdefault(_asked(row))
        left = sum(_asked(other) not in self._shown for other in order)
        self.place = (list(self._shown).index(_asked(row)) + 1, len(self._shown) + left)


def _threads(rows: Iterable[QueueRow]) -> Sequence[QueueRow]:
    """Return the first row of each thread."""
    order: dict[ThreadKey, QueueRow] = {}
    for row in rows:
        order.setdefault(row.thread_key, row)
    return list(order.values())


def _asked(row: QueueRow) -> tuple[ThreadKey, int | None]:
    return row.thread_key, row.thread.waiting_since
